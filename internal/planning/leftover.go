package planning

import (
	"context"
	"encoding/base64"
	"errors"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/defaulted"
	"github.com/tenure-ssa/tenure/internal/fieldsets"
	"github.com/tenure-ssa/tenure/internal/lastapplied"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/internal/secrets"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership"
	"github.com/tenure-ssa/tenure/ownership/advice"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
	"github.com/tenure-ssa/tenure/upgrade"
)

// KubectlManager is the default manager of kubectl apply --server-side.
const KubectlManager = lastapplied.Manager

// annotationPath is the annotation of client-side apply. Servers update it when the manager kubectl applies.
var annotationPath = fieldpath.NewPath("metadata", "annotations", fieldmanager.LastAppliedAnnotation)

// FindLeftovers suggests moves after which the next apply removes fields that would otherwise stay although the intent
// lacks them. If the server refuses a move, or the apply after it, the suggestion only names the fields. FindLeftovers
// considers only updaters that own a field of the intent, updaters with the name of the intent's manager, and commands
// of kubectl, because other updaters, such as controllers, add fields of their own. Defaults, and fields that another
// manager applied, are not leftovers. The promise of a suggestion is what the next apply removes after the move. A dry
// run determines the promise if there is a server and the budget allows one more dry run. Otherwise, a plan determines
// the promise. FindLeftovers also plans the changes of [Planned].Migration.
func (p *Planned) FindLeftovers(ctx context.Context, asking Asking) error {
	list, err := managedfields.Read(place.Wrap(p.Desired.Object))
	if err != nil || !slices.ContainsFunc(list, p.isUpdater) {
		return err
	}
	t, version := p.Kind.Typ, p.Kind.GroupVersion().String()
	intended := t.FieldSet(p.Tree)
	kept := fieldpath.UnionOf(intended, managedfields.Unowned(), fieldpath.NewSet(annotationPath), upgrade.RestartedAt())
	alone := intended // what only the manager owns after the apply
	for i := range list {
		isApply := list[i].Operation == metav1.ManagedFieldsOperationApply
		if isApply && list[i].Manager != p.Desired.Manager {
			kept = kept.Union(list[i].Owned())
		}
		if !isApply || list[i].Manager != p.Desired.Manager {
			alone = alone.Difference(list[i].Owned())
		}
	}
	for i := range list {
		e := &list[i]
		owned := t.Reconcile(e.Owned())
		isAnnotated := owned.Has(annotationPath)
		isOther := e.Manager != p.Desired.Manager && !IsKubectl(e.Manager)
		if !p.isUpdater(*e) || isOther && owned.Leaves().Intersection(intended).IsEmpty() {
			continue
		}
		if isAnnotated && p.Desired.Manager == KubectlManager {
			continue // kubectl itself moves these fields
		}
		isLeft := func(d Decided) bool { return d.Owner == e.Key && d.Decision != conflicts.Force }
		if slices.ContainsFunc(p.Decided, isLeft) {
			continue // after a move of all fields, the policy would not leave fields to their owner
		}
		beyond := owned.Leaves().Difference(kept)
		if reset := p.Fields.Options().ResetFields[version]; reset != nil {
			beyond = reset.Filter(beyond)
		}
		beyond = defaulted.Without(t, p.Desired.Object, beyond, p.Options.Defaulter)
		if !beyond.IsEmpty() {
			l := advice.Leftover{
				Objects: p.Objects(), Manager: p.Desired.Manager, Updater: e.Key, IsAnnotated: isAnnotated, Fields: beyond,
			}
			if err := p.letGo(ctx, asking, l, alone); err != nil {
				return err
			}
		}
	}
	if slices.ContainsFunc(list, isClientSide) {
		return p.planMigration(ctx, asking)
	}
	return nil
}

// IsKubectl reports whether a manager is a command of kubectl, such as kubectl-edit.
func IsKubectl(manager string) bool {
	return manager == KubectlManager || strings.HasPrefix(manager, KubectlManager+"-")
}

// letGo suggests moving the fields of an updater to the intent's manager. l.Fields are the updater's leaves that the
// intent lacks; alone is what only the manager owns after the apply. letGo suggests the move only if the manager's next
// apply then removes leaves of l.Fields that would otherwise stay. If the updater is in conflict with the intent, only
// these leaves move, so that the suggestion does not also decide the conflict. If the updater owns the annotation of
// client-side apply, the suggestion is always the whole migration to server-side apply.
func (p *Planned) letGo(ctx context.Context, asking Asking, l advice.Leftover, alone *fieldpath.Set) error {
	w, owned := p.Desired.Stored(), l.Fields
	var live runtime.Object
	isOwn := func(c conflicts.Conflict) bool { return c.Owner == l.Updater }
	if !l.IsAnnotated && slices.ContainsFunc(p.Conflicts, isOwn) {
		l.Move = ownership.Transfer{
			Fields: withItems(owned), From: l.Updater, To: managedfields.Key{Manager: w.Manager},
		}
		moved, err := w.Mover(asking.Now).Do(ctx, place.Wrap(w.Object), l.Move)
		if err != nil {
			return nil //nolint:nilerr // nothing to suggest
		}
		live = moved.Object
	} else {
		o := upgrade.ServerSideOptions{Types: p.Types, Converter: p.Converter(), Manager: w.Manager}
		if !l.IsAnnotated {
			o.From, o.Everything = []string{l.Updater.Manager}, true
		}
		moved, err := upgrade.ToServerSide(ctx, place.Wrap(w.Object), o)
		if err != nil || !moved.Changed {
			return nil //nolint:nilerr // nothing to suggest
		}
		live = moved.Object
	}
	removed := func(removes *fieldpath.Set) *fieldpath.Set { return p.beyond(removes).Intersection(owned) }
	promise, ok, err := p.promise(ctx, asking, live, func(removes *fieldpath.Set) bool {
		return !removed(removes).IsEmpty()
	})
	if errors.Is(err, errVersions) {
		return nil // what the next apply removes is not known
	}
	l.Fields, l.IsRefused = removed(fieldpath.NewSet(promise.Removes...)), !ok
	if err != nil || l.Fields.IsEmpty() {
		return err
	}
	for path := range l.Fields.All() {
		for n := 1; n < len(path); n++ {
			if alone.Has(path[:n]) {
				l.Inside++
				break
			}
		}
	}
	p.Leftovers = append(p.Leftovers, advice.LetGo(l, promise))
	return nil
}

// withItems replaces list items whose key fields are in a set by the whole items, because key fields move only with
// their item.
func withItems(fields *fieldpath.Set) *fieldpath.Set {
	return fieldsets.Rewrite(fields, func(e fieldpath.Element, entry fieldpath.Entry) fieldpath.Entry {
		key, _ := e.Key()
		for _, name := range fieldsets.NamesOf(key) {
			if hasKey, _ := entry.Below.At(fieldpath.FieldElement(name)); hasKey {
				return fieldpath.Entry{Member: true}
			}
		}
		return fieldpath.Entry{Member: entry.Member, Below: withItems(entry.Below)}
	})
}

// beyond returns the leaves that another apply removes and this apply does not. The argument removes has the leaves
// that the other apply removes.
func (p *Planned) beyond(removes *fieldpath.Set) *fieldpath.Set {
	return removes.Difference(p.removes()).Difference(fieldpath.NewSet(annotationPath))
}

// isUpdater reports whether an entry is an Update entry for the main resource, at the version of the intent.
func (p *Planned) isUpdater(e managedfields.Entry) bool {
	return e.Operation == metav1.ManagedFieldsOperationUpdate && e.Subresource == "" &&
		e.APIVersion == p.Kind.GroupVersion().String()
}

// isClientSide reports whether an entry is of client-side apply: kubectl apply --server-side moves its fields to the
// manager, whatever the manager's name.
func isClientSide(e managedfields.Entry) bool {
	return e.Operation == metav1.ManagedFieldsOperationUpdate && e.Subresource == "" && e.Owned().Has(annotationPath)
}

// Migrated returns the fields in conflict that kubectl apply --server-side moves to the manager after the apply, and
// then removes if the intent lacks them. It omits defaults, which a server sets again.
func (p *Planned) Migrated() (out []fieldpath.Path) {
	list, err := managedfields.Read(place.Wrap(p.Desired.Object))
	if err != nil {
		return nil
	}
	for _, c := range p.Conflicts {
		if e := list.Get(c.Owner); e != nil && p.isUpdater(*e) && isClientSide(*e) {
			out = append(out, c.Path)
		}
	}
	fields := defaulted.Without(p.Kind.Typ, p.Desired.Object, fieldpath.NewSet(out...), p.Options.Defaulter)
	return slices.DeleteFunc(out, func(path fieldpath.Path) bool { return !fields.Has(path) })
}

// TakeOver suggests a migration before the apply. It is for applies without kubectl, because only kubectl makes the
// changes of p.Migration after its apply.
func (p *Planned) TakeOver() advice.Suggestion {
	var fields []fieldpath.Path
	for _, change := range p.Migration {
		fields = append(fields, change.Path)
	}
	updater := ""
	list, _ := managedfields.Read(place.Wrap(p.Desired.Object)) // as after a plan, there is no error
	for i := range list {
		if isClientSide(list[i]) {
			updater = list[i].Manager
		}
	}
	return advice.TakeOver(p.Objects(), p.Desired.Manager, updater, fields)
}

// withoutKubectl are the managers of tools that apply without kubectl.
var withoutKubectl = []string{"argocd-controller", "flux-operator", "helm", "helm-controller", "kustomize-controller"}

// MayMigrate reports whether kubectl may be what applies the intent, as kubectl accepts any manager.
func (p *Planned) MayMigrate() bool { return !slices.Contains(withoutKubectl, p.Desired.Manager) }

// isRefusal reports whether a server rejected a request because of its content. Other errors, such as a timeout, say
// nothing about the content. A webhook may reject with any code.
func isRefusal(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return false
	}
	switch code := status.Status().Code; code {
	case http.StatusUnauthorized, http.StatusNotFound, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	default:
		return code >= 400 && code < 500
	}
}

// planMigration plans the second step of kubectl apply --server-side: after the apply, kubectl moves the fields of
// client-side apply to the manager, and applies again. If there are conflicts, the apply is planned as forced: fields
// that the intent lacks are removed after any way out.
func (p *Planned) planMigration(ctx context.Context, asking Asking) error {
	isKubectl := p.Desired.Manager == KubectlManager
	if !p.MayMigrate() {
		return nil
	}
	moved, err := upgrade.ToServerSide(ctx, p.Plan.Object, upgrade.ServerSideOptions{
		Types: p.Types, Converter: p.Converter(), Manager: p.Desired.Manager, Everything: true, KeepLastApplied: isKubectl,
	})
	if err != nil && !isKubectl {
		return nil //nolint:nilerr // other appliers do not migrate, so their plans do not fail
	}
	if err != nil || !moved.Changed {
		return err
	}
	first := *p
	first.Options.Force = p.Options.Force || p.Outcome == plans.Conflict
	second, err := first.next(ctx, p.Desired, moved.Object)
	if p.IsMigrationUnknown = errors.Is(err, errVersions); p.IsMigrationUnknown {
		return nil
	}
	switch {
	case err != nil && isKubectl:
		return err
	case err != nil:
		return nil //nolint:nilerr // as above
	case second.Outcome == plans.Conflict:
		return nil // kubectl warns, and tries again with the next apply
	}
	p.setMigration(second.Changes())
	isServed, canDryRun := p.IsServed()
	isAsked := isServed && canDryRun && asking.Budget != nil && !p.Moved
	if p.Migration == nil || !isAsked || secrets.Is(p.Tree) { // the plan has no values of a Secret
		return nil
	}
	// Like the dry run of the apply itself, this dry run does not use the budget.
	served, err := p.send(ctx, asking, moved.Object, second)
	switch {
	case apierrors.IsForbidden(err) && !p.MayWrite(ctx, asking.Place, ""): // the plan is all that is known
	case err != nil && ctx.Err() == nil: // kubectl warns of any error, and tries again with the next apply
		p.Migration, p.IsMigrationUnknown = nil, !isRefusal(err)
	case err != nil:
		return err
	case p.Served != nil:
		p.setMigration(p.Target.Changes(p.Served, served))
	case p.Outcome == plans.Unchanged:
		p.setMigration(p.Target.Changes(p.Desired.Object, served))
	default: // the server has not responded to a forced apply, and may keep fields
		p.setMigration(slices.Values(slices.DeleteFunc(p.Migration, func(c plans.Change) bool {
			_, stays := p.Kind.Typ.Get(served, c.Path)
			return stays && c.Kind == plans.Removed
		})))
	}
	return nil
}

// setMigration sets the changes of kubectl's second apply. There are none if this apply only removes the annotation of
// client-side apply, which kubectl's default manager keeps.
func (p *Planned) setMigration(changes iter.Seq[plans.Change]) {
	p.Migration = slices.Collect(changes)
	isData := func(c plans.Change) bool {
		all, _ := c.Before.(map[string]any)
		return !c.Path.Equal(annotationPath) && (!c.Path.Equal(annotationPath[:2]) || len(all) != 1)
	}
	if !slices.ContainsFunc(p.Migration, isData) {
		p.Migration = nil
	}
}

// StringData is an effect of a Secret's stringData on a field of data. If Owner is set, the apply overwrites the
// owner's value without a conflict. Otherwise, the field stays although the intent dropped it.
type StringData struct {
	Field fieldpath.Path
	Owner managedfields.Key
}

// LetGo suggests how the next apply can remove an unowned field of data.
func (p *Planned) LetGo(suggestion StringData) advice.Suggestion {
	fields := []fieldpath.Path{suggestion.Field}
	return advice.Remove(fields, p.Desired.Manager, nil, advice.Promise{Removes: fields, Done: true}).For(p.Objects())
}

// StringData returns the effects of an apply of a Secret with stringData. Servers copy stringData to data without
// checking ownership: the apply overwrites values of other managers without a conflict, and if the intent drops keys,
// their values stay in data.
func (p *Planned) StringData() (out []StringData) {
	if p.Desired.Object == nil || !secrets.Is(p.Tree) {
		return nil
	}
	list, err := managedfields.Read(place.Wrap(p.Desired.Object))
	if err != nil {
		return nil
	}
	given, _ := p.Tree["stringData"].(map[string]any)
	data, _ := p.Desired.Object["data"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(given)) {
		path := fieldpath.NewPath("data", key)
		text, _ := given[key].(string)
		if live, ok := data[key]; !ok || live == base64.StdEncoding.EncodeToString([]byte(text)) {
			continue
		}
		for i := range list {
			if list[i].Manager != p.Desired.Manager && list[i].Owned().Has(path) {
				out = append(out, StringData{path, list[i].Key})
			}
		}
	}
	mine := list.Get(managedfields.KeyOf(p.Desired.Manager, metav1.ManagedFieldsOperationApply, "", ""))
	if mine == nil {
		return out
	}
	intended := p.Kind.Typ.FieldSet(p.Tree)
	for _, key := range slices.Sorted(maps.Keys(data)) {
		path := fieldpath.NewPath("data", key)
		was := fieldpath.NewPath("stringData", key)
		isDecided := func(d Decided) bool { return d.Path.Equal(path) }
		if slices.ContainsFunc(p.Decided, isDecided) {
			continue // the policy leaves the field to its owner
		}
		isOwner := func(e managedfields.Entry) bool { return e.Owned().Has(path) }
		if mine.Owned().Has(was) && !intended.Has(was) && !intended.Has(path) && !slices.ContainsFunc(list, isOwner) {
			out = append(out, StringData{Field: path})
		}
	}
	return out
}

// ClientSide suggests how the intent's manager can hand over fields. It returns suggestions only if the manager applies
// client-side, and the annotation of client-side apply contains some of the fields. Client-side apply removes such
// fields once the manifest lacks them.
func ClientSide(ctx context.Context, w *place.Desired, fields *fieldpath.Set) []advice.Suggestion {
	appliers, err := upgrade.Owners(place.Wrap(w.Object), metav1.ManagedFieldsOperationUpdate,
		fieldpath.NewSet(annotationPath))
	manager := w.Manager
	isManager := func(e managedfields.Entry) bool { return e.Manager == manager }
	switch {
	case err != nil || len(appliers) == 0:
		return nil
	case manager == upgrade.ClientSideManager:
		manager = KubectlManager
	case manager != KubectlManager && !slices.ContainsFunc(appliers, isManager):
		return nil
	}
	moved, err := upgrade.ToServerSide(ctx, place.Wrap(w.Object), upgrade.ServerSideOptions{
		Types: w.Types, Converter: w.Converter(), Manager: manager,
	})
	if err != nil {
		return nil //nolint:nilerr // nothing to suggest
	}
	var removed []fieldpath.Path
	for _, e := range moved.Preview.Moves {
		for path := range e.Owned().AtOrBelow(fields).Leaves().All() {
			removed = append(removed, slices.Clone(path))
		}
	}
	if removed == nil {
		return nil
	}
	return advice.NotClientSide(ObjectsOf(w.Target), removed, manager)
}
