package planning

import (
	"context"
	"encoding/base64"
	"errors"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/defaulted"
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
// lacks them. It considers only updaters that own a field of the intent, updaters with the name of the intent's
// manager, and commands of kubectl, because other updaters, such as controllers, add fields of their own. Defaults, and
// fields that another manager applied, are not leftovers. The promise of a suggestion is what the next apply removes
// after the move. A dry run determines the promise if there is a server and the budget allows one more dry run.
// Otherwise, a plan determines the promise.
func (p *Planned) FindLeftovers(ctx context.Context, asking Asking) error {
	list, err := managedfields.Read(place.Wrap(p.Desired.Object))
	if err != nil || !slices.ContainsFunc(list, p.isUpdater) {
		return err
	}
	t, version := p.Kind.Typ, p.Kind.GroupVersion().String()
	intended := t.FieldSet(p.Tree)
	kept := fieldpath.UnionOf(intended, managedfields.Unowned(), fieldpath.NewSet(annotationPath), upgrade.RestartedAt())
	for i := range list {
		if list[i].Operation == metav1.ManagedFieldsOperationApply && list[i].Manager != p.Desired.Manager {
			kept = kept.Union(list[i].Owned())
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
			if err := p.letGo(ctx, asking, e.Key, beyond, isAnnotated); err != nil {
				return err
			}
		}
	}
	if p.Desired.Manager == KubectlManager && p.Outcome != plans.Conflict {
		return p.planMigration(ctx, asking)
	}
	return nil
}

// IsKubectl reports whether a manager is a command of kubectl, such as kubectl-edit.
func IsKubectl(manager string) bool {
	return manager == KubectlManager || strings.HasPrefix(manager, KubectlManager+"-")
}

// letGo suggests moving the fields of an updater to the intent's manager. The argument owned has the updater's leaves
// that the intent lacks. letGo suggests the move only if the manager's next apply then removes leaves of owned that
// would otherwise stay. If the updater is in conflict with the intent, only the leaves of owned move, so that the
// suggestion does not also decide the conflict. If the updater owns the annotation of client-side apply, the suggestion
// is always the whole migration to server-side apply.
func (p *Planned) letGo(
	ctx context.Context, asking Asking, updater managedfields.Key, owned *fieldpath.Set, isAnnotated bool,
) error {
	w := p.Desired.Stored()
	var move ownership.Move
	var live runtime.Object
	isOwn := func(c conflicts.Conflict) bool { return c.Owner == updater }
	if !isAnnotated && slices.ContainsFunc(p.Conflicts, isOwn) {
		move = ownership.Transfer{Fields: owned, From: updater, To: managedfields.Key{Manager: w.Manager}}
		moved, err := w.Mover(asking.Now).Do(ctx, place.Wrap(w.Object), move)
		if err != nil {
			return nil //nolint:nilerr // nothing to suggest
		}
		live = moved.Object
	} else {
		o := upgrade.ServerSideOptions{Types: p.Types, Converter: p.Converter(), Manager: w.Manager}
		if !isAnnotated {
			o.From, o.Everything = []string{updater.Manager}, true
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
	if ok {
		kept := removed(fieldpath.NewSet(promise.Removes...))
		s := advice.LetGo(p.Objects(), w.Manager, updater, isAnnotated, move, kept, promise)
		p.Leftovers = append(p.Leftovers, s)
	}
	return err
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

// Migrated returns the fields in conflict that kubectl apply --server-side moves to its manager after the apply, and
// then removes if the intent lacks them. It omits defaults, which a server sets again.
func (p *Planned) Migrated() (out []fieldpath.Path) {
	list, err := managedfields.Read(place.Wrap(p.Desired.Object))
	if err != nil || p.Desired.Manager != KubectlManager {
		return nil
	}
	for _, c := range p.Conflicts {
		if e := list.Get(c.Owner); e != nil && p.isUpdater(*e) && e.Owned().Has(annotationPath) {
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
		if p.isUpdater(list[i]) && list[i].Owned().Has(annotationPath) {
			updater = list[i].Manager
		}
	}
	return advice.TakeOver(p.Objects(), p.Desired.Manager, updater, fields)
}

// planMigration plans the second step of kubectl apply --server-side: after the apply, kubectl moves the fields of
// client-side apply, and applies again.
func (p *Planned) planMigration(ctx context.Context, asking Asking) error {
	moved, err := upgrade.ToServerSide(ctx, p.Plan.Object, upgrade.ServerSideOptions{
		Types: p.Types, Converter: p.Converter(), Manager: KubectlManager, Everything: true, KeepLastApplied: true,
	})
	if err != nil || !moved.Changed {
		return err
	}
	second, err := p.next(ctx, p.Desired, moved.Object)
	if p.IsMigrationUnknown = errors.Is(err, errVersions); p.IsMigrationUnknown {
		return nil
	}
	if err != nil {
		return err
	}
	p.Migration = slices.Collect(second.Changes())
	if len(p.Migration) == 0 || p.Served == nil || secrets.Is(p.Tree) { // the plan has no values of a Secret
		return nil
	}
	// Like the dry run of the apply itself, this dry run does not use the budget.
	served, err := p.send(ctx, asking, moved.Object, second)
	switch {
	case apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsConflict(err):
		p.Migration = nil // kubectl warns of the error, and tries again with the next apply
	case err != nil:
		return place.ServerError(err)
	default:
		p.Migration = slices.Collect(p.Target.Changes(p.Served, served))
	}
	return nil
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
