package planning

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/planning/cluster"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership"
	"github.com/tenure-ssa/tenure/ownership/advice"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Budget is how many dry runs a command sends for suggestions.
type Budget struct {
	// Left is how many it still sends; Unasked counts those that it did not.
	Left, Unasked int
}

// take reports whether one more dry run may be sent.
func (b *Budget) take() bool {
	if b.Left == 0 {
		b.Unasked++
		return false
	}
	b.Left--
	return true
}

// Asking is how suggestions are tried: by dry runs on a server.
type Asking struct {
	Place  place.Place
	Budget *Budget // nil if the server is not asked
}

// take reports whether one more dry run may be sent for an object.
func (a Asking) take(t *place.Target) bool {
	if a.Budget == nil {
		return false
	}
	isServed, canDryRun := t.IsServed()
	return isServed && canDryRun && a.Budget.take()
}

// ObjectsOf returns the object of a target for suggestions.
func ObjectsOf(t *place.Target) advice.Objects {
	return advice.Objects{
		Kinds: []string{document.Resource(t.Kind.GroupKind())}, Namespace: t.Namespace, Name: t.Name,
	}
}

// Objects returns the object for suggestions.
func (p *Planned) Objects() advice.Objects { return ObjectsOf(p.Target) }

// way is a move that may be a way out of a refusal.
type way struct {
	owner  *managedfields.Key
	fields []fieldpath.Path
	keeps  bool // the owner gets the fields
}

// Unblocks returns moves after which the server accepts the apply that it rejected, the least harmful first: the fields
// that the apply removes move back to the owner of the rest of their item; fields that nobody, an updater or another
// applier owns move to the manager, so that the same apply removes them. There is one only where the refusal names a
// field that the apply removes or leaves. Each is tried: the object that results from it and from the same apply is
// sent as a dry run.
func (p *Planned) Unblocks(
	ctx context.Context, now func() time.Time, asking Asking, refusal error,
) (out []advice.Suggestion) {
	var named []string
	for _, field := range place.FieldsOf(refusal) {
		named = append(named, "/"+strings.NewReplacer(".", "/", "[", "/", "]", "").Replace(field))
	}
	if len(named) == 0 {
		return nil
	}
	for _, w := range append(p.givenBack(named), p.left(named)...) {
		if !asking.take(p.Target) {
			continue
		}
		s := advice.GiveBack(w.fields, p.Desired.Manager, deref(w.owner))
		if !w.keeps {
			s = advice.Remove(w.fields, p.Desired.Manager, w.owner, advice.Promise{Unblocks: true})
		}
		removes, isAccepted := p.try(ctx, now, asking, s.Action.(advice.Move).Move)
		if isAccepted {
			if !w.keeps {
				s.Promise.Removes = removes
			}
			out = append(out, s.For(p.Objects()))
		}
	}
	return out
}

func deref(k *managedfields.Key) managedfields.Key {
	if k == nil {
		return managedfields.Key{}
	}
	return *k
}

// givenBack returns the moves of what the apply removes from items that others keep, where the refusal names it.
func (p *Planned) givenBack(named []string) (out []way) {
	for _, half := range p.Halves() {
		w := way{owner: &half.Owner, keeps: true}
		for path := range p.removes().All() {
			isBelow := len(path) > len(half.Item) && path[:len(half.Item)].Equal(half.Item)
			text := Pointer(p.Kind.Typ, path, place.Unwrap(p.Plan.Object)) + "/"
			isNamed := func(field string) bool { return strings.HasPrefix(text, field+"/") }
			if isBelow && slices.ContainsFunc(named, isNamed) {
				w.fields = append(w.fields, slices.Clone(path))
			}
		}
		if len(w.fields) > 0 {
			out = append(out, w)
		}
	}
	return out
}

// left returns the moves to the manager of what the apply leaves although the intent lacks it, by owner, where the
// refusal names it, something in it, or another item of its list: what nobody owns, what updaters own, what appliers
// own.
func (p *Planned) left(named []string) []way {
	t, after := p.Kind.Typ, place.Unwrap(p.Plan.Object)
	list, err := managedfields.Read(p.Plan.Object)
	if err != nil {
		return nil
	}
	var nobody, updaters, appliers []way
	seen := map[string]bool{}
	for leaf := range t.FieldSet(after).Leaves().RecursiveDifference(managedfields.Unowned()).All() {
		n := 1
		for ; n < len(leaf); n++ {
			if _, isThere := t.Get(p.Tree, leaf[:n]); !isThere {
				break
			}
		}
		field := slices.Clone(leaf[:n])
		if _, isThere := t.Get(p.Tree, field); isThere || seen[field.String()] {
			continue
		}
		seen[field.String()] = true
		if !isNamedIn(named, Pointer(t, field, after), field[n-1].IsKey()) {
			continue
		}
		isOwned := false
		for i := range list {
			e := &list[i]
			isApply := e.Operation == metav1.ManagedFieldsOperationApply
			if e.Owned().AtOrBelow(fieldpath.NewSet(field)).IsEmpty() || e.Manager == p.Desired.Manager && isApply {
				continue
			}
			isOwned = true
			if isApply {
				appliers = addTo(appliers, &e.Key, field)
			} else {
				updaters = addTo(updaters, &e.Key, field)
			}
		}
		if !isOwned {
			nobody = addTo(nobody, nil, field)
		}
	}
	return slices.Concat(nobody, updaters, appliers)
}

// isNamedIn reports whether one of the fields is at, below or above a pointer, or in an item beside it.
func isNamedIn(named []string, pointer string, isItem bool) bool {
	list := pointer
	if isItem {
		list = pointer[:strings.LastIndexByte(pointer, '/')]
	}
	return slices.ContainsFunc(named, func(field string) bool {
		return strings.HasPrefix(pointer+"/", field+"/") || strings.HasPrefix(field+"/", list+"/")
	})
}

// addTo adds a field to the move from an owner.
func addTo(ways []way, owner *managedfields.Key, field fieldpath.Path) []way {
	for i := range ways {
		if deref(ways[i].owner) == deref(owner) {
			ways[i].fields = append(ways[i].fields, field)
			return ways
		}
	}
	return append(ways, way{owner: owner, fields: []fieldpath.Path{field}})
}

// removes returns the leaves that the apply removes.
func (p *Planned) removes() (out *fieldpath.Set) {
	for _, change := range p.Ownership {
		out = out.Union(change.Removes.Leaves())
	}
	return out
}

// LeftOut suggests to leave preconditions out of a manifest whose apply the server refused, if it accepts it then.
func (p *Planned) LeftOut(ctx context.Context, asking Asking, subresource string) []advice.Suggestion {
	w := p.Desired.Stored()
	intent := runtime.DeepCopyJSON(w.Tree)
	metadata, _ := intent["metadata"].(map[string]any)
	live, _ := w.Object["metadata"].(map[string]any)
	var names []string
	for _, name := range []string{"uid", "resourceVersion", "managedFields"} {
		if given, ok := metadata[name]; ok && (name == "managedFields" || given != live[name]) {
			delete(metadata, name)
			names = append(names, name)
		}
	}
	if len(names) == 0 || !asking.take(p.Target) {
		return nil
	}
	_, err := asking.Place.Apply(ctx, w.Target, intent, cluster.WriteOptions{
		Manager: w.Manager, Force: p.Options.Force, DryRun: true, Subresource: subresource,
	})
	if err != nil {
		return nil
	}
	return []advice.Suggestion{advice.LeaveOut(names, live != nil)}
}

// AskWays asks the server about the ways out of the conflicts, each as a dry run of the apply that follows from it.
func (p *Planned) AskWays(
	ctx context.Context, now func() time.Time, asking Asking, subresource string,
) {
	w := p.Desired.Stored()
	p.Refused = map[conflicts.Decision]string{}
	for _, way := range []conflicts.Decision{conflicts.Force, conflicts.GiveUp, conflicts.Share} {
		decide := func(all conflicts.Conflicts) []conflicts.Decision {
			return slices.Repeat([]conflicts.Decision{way}, len(all))
		}
		r, err := plans.Resolve(ctx, w.Fields, place.Wrap(w.Object), place.Wrap(w.Tree), decide, p.Options)
		if err != nil || !asking.take(p.Target) {
			continue
		}
		_, err = asking.Place.Apply(ctx, w.Target, r.Intent.Object, cluster.WriteOptions{
			Manager: w.Manager, Force: r.Force, DryRun: true, Subresource: subresource,
		})
		if err != nil {
			p.Refused[way] = place.ServerError(err).Error()
		}
	}
	for _, s := range advice.OwnUpdates(w.Manager, p.Conflicts) {
		move := s.Action.(advice.Move).Move
		_, err := w.Mover(now).Do(ctx, place.Wrap(w.Object), move)
		p.MoveRefused = err != nil // between versions that only the server converts
		if err == nil && s.Promise.Unblocks && asking.take(p.Target) {
			_, isAccepted := p.try(ctx, now, asking, move)
			p.MoveRefused = !isAccepted
		}
	}
}

// try makes a move and plans the same apply after it, which it sends as a dry run; it returns what that apply removes,
// and whether the server accepts it.
func (p *Planned) try(
	ctx context.Context, now func() time.Time, asking Asking, move ownership.Move,
) (removes []fieldpath.Path, isAccepted bool) {
	w := p.Desired.Stored()
	moved, err := w.Mover(now).Do(ctx, place.Wrap(w.Object), move)
	if err != nil {
		return nil, false
	}
	next, err := p.next(ctx, w, moved.Object)
	if err != nil || next.Outcome == plans.Conflict {
		return nil, false
	}
	served, err := p.send(ctx, asking, next)
	return p.removedBy(next, served), err == nil
}

// send sends the object that another plan of the apply expects as a dry run of an update. It returns what the server
// would store.
func (p *Planned) send(ctx context.Context, asking Asking, plan *plans.Plan) (served map[string]any, err error) {
	w := p.Desired.Stored()
	options := cluster.WriteOptions{Manager: w.Manager, DryRun: true}
	return asking.Place.Update(ctx, w.Target, place.Unwrap(plan.Object), options)
}

// errVersions reports an object whose plan is not certain: it has entries of versions that can't be converted here.
var errVersions = errors.New("entries of other versions can't be compared without the server")

// next plans the same apply to another object.
func (p *Planned) next(ctx context.Context, w *place.Desired, live runtime.Object) (*plans.Plan, error) {
	list, err := managedfields.Read(live)
	if err != nil {
		return nil, err
	}
	for i := range list {
		if w.Converter() == nil && list[i].Subresource == "" && list[i].APIVersion != w.Kind.GroupVersion().String() {
			return nil, errVersions
		}
	}
	options := p.Options
	options.Found = nil
	return plans.New(ctx, w.Fields, live, place.Wrap(w.Tree), options)
}

// removedBy returns the leaves that the object loses by another plan of the same apply, as the server answers it;
// without an answer, as it is planned. A field that nobody owns is removed with its map. A server sets defaults again.
func (p *Planned) removedBy(plan *plans.Plan, served map[string]any) (out []fieldpath.Path) {
	after := *p
	after.Desired, after.Plan, after.Served = p.Desired.Stored(), plan, served
	t := p.Kind.Typ
	gone := t.FieldSet(after.Desired.Object).Leaves().Difference(t.FieldSet(after.ObjectAfter()))
	for _, change := range plan.Ownership {
		if change.Manager.Manager == p.Desired.Manager {
			removed, _ := after.Fate(change)
			gone = gone.Union(removed)
		}
	}
	for path := range gone.Leaves().All() {
		out = append(out, slices.Clone(path))
	}
	return out
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// Pointer returns a path as a JSON pointer (RFC 6901). An item of a list has its index in the object; for an item that
// the object lacks, the pointer is the list's.
func Pointer(t *typed.Type, path fieldpath.Path, value any) (text string) {
	for _, e := range path {
		if name, ok := e.Field(); ok {
			text += "/" + pointerEscapes.Replace(name)
		} else {
			items, _ := value.([]any)
			i, isIndex := e.Index()
			if !isIndex {
				i = slices.IndexFunc(items, func(item any) bool {
					_, ok := t.Get([]any{item}, fieldpath.Path{e})
					return ok
				})
			}
			if i < 0 || i >= len(items) {
				return text
			}
			text += "/" + strconv.Itoa(i)
		}
		value, _ = t.Get(value, fieldpath.Path{e})
		if t, _ = t.Child(e); t == nil {
			t = &typed.Type{} // the schema does not know it: no item is found
		}
	}
	return text
}
