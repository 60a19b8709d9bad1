package planning

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/planning/cluster"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/internal/secrets"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership"
	"github.com/tenure-ssa/tenure/ownership/advice"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Budget is the number of suggested actions that a command tries. To try an action, the command sends a dry run of the
// apply after it. If the action is a move, the command first sends a dry run of the move.
type Budget struct {
	// Left is the number of actions that may still be tried. Unasked is the number of actions that were not tried
	// because the budget was used up.
	Left, Unasked int
}

// take reports whether one more action may be tried, and counts this action.
func (b *Budget) take() bool {
	if b.Left == 0 {
		b.Unasked++
		return false
	}
	b.Left--
	return true
}

// Asking says how to try suggestions with dry runs.
type Asking struct {
	Place  place.Place
	Now    func() time.Time
	Budget *Budget // nil to send no dry runs
}

// take reports whether one more action may be tried for an object, and counts this action.
func (a Asking) take(t *place.Target) bool {
	if a.Budget == nil {
		return false
	}
	isServed, canDryRun := t.IsServed()
	return isServed && canDryRun && a.Budget.take()
}

// ObjectsOf returns the object of a target, for suggestions.
func ObjectsOf(t *place.Target) advice.Objects {
	t = t.Parent()
	return advice.Objects{Kinds: []string{t.Kind.Argument()}, Namespace: t.Namespace, Name: t.Name}
}

// ObjectsAt returns the object of a target for a suggestion that reads it at a version. ok is false if the object can't
// be read at that version. isServed reports whether the cluster of the target serves a kind.
func ObjectsAt(
	t *place.Target, version string, isServed func(schema.GroupVersionKind) bool,
) (o advice.Objects, ok bool) {
	o = ObjectsOf(t)
	hasCluster, _ := t.IsServed()
	if version == t.Kind.GroupVersion().String() || t.Converter() != nil && !hasCluster {
		return o, true
	}
	gvk := schema.FromAPIVersionAndKind(version, t.Kind.Kind)
	o.Kinds = []string{place.ArgumentOf(gvk)}
	return o, hasCluster && isServed(gvk)
}

// Objects returns the object of the plan, for suggestions.
func (p *Planned) Objects() advice.Objects { return ObjectsOf(p.Target) }

// way is a move after which the server may accept the apply.
type way struct {
	owner  *managedfields.Key
	fields []fieldpath.Path
	keeps  bool // whether the fields move to owner; if false, they move from owner
	// isGuess is true if the error names none of these fields, only a field beside them.
	isGuess bool
}

// Unblocks returns moves after which the server accepts the apply that it rejected, the least harmful first. There are
// two kinds of moves. The first kind is for fields that the apply removes: they move to the owner of the fields beside
// them, so that the apply no longer removes them. The second kind is for fields that the apply leaves behind, because
// they are unowned, or because an updater or another applier owns them: they move to the manager, so that the apply
// removes them. Unblocks first tries fields that the server's error names. If no move of these fields helps, it tries
// the fields beside them: a server often names the field that was set, not the field that excludes it. To try a move,
// Unblocks sends its result, and the result of the same apply after the move, as dry runs. Moves to the manager have as
// few fields as possible.
func (p *Planned) Unblocks(ctx context.Context, asking Asking, refusal error) (out []advice.Suggestion) {
	var named []string
	for _, field := range place.FieldsOf(refusal) {
		named = append(named, "/"+strings.NewReplacer(".", "/", "[", "/", "]", "").Replace(strings.ToLower(field)))
	}
	if len(named) == 0 {
		return nil
	}
	if all := asking.Budget; all != nil { // one refusal must not use up the budget
		given := min(all.Left, MaxPerRefusal)
		own := &Budget{Left: given}
		asking.Budget = own
		defer func() { all.Left, all.Unasked = all.Left-given+own.Left, all.Unasked+own.Unasked }()
	}
	for _, w := range append(p.givenBack(named), p.left(named)...) {
		if w.isGuess && len(out) > 0 {
			break
		}
		suggest := p.removal
		if w.keeps {
			suggest = p.keeping
		}
		if s, ok := suggest(ctx, asking, w); ok {
			out = append(out, s.For(p.Objects()))
		}
	}
	return out
}

// MaxPerRefusal is the maximum number of moves that are tried for one refused apply.
const MaxPerRefusal = 20

// keeping returns the suggestion for a way whose fields move to the owner of the fields beside them. If the apply after
// the move would remove a field all the same, there is no suggestion.
func (p *Planned) keeping(ctx context.Context, asking Asking, w way) (s advice.Suggestion, ok bool) {
	if !asking.take(p.Target) {
		return s, false
	}
	s = advice.GiveBack(w.fields, p.Desired.Manager, *w.owner)
	removes, ok := p.try(ctx, asking, s.Action.(advice.Move).Move)
	return s, ok && fieldpath.NewSet(removes...).AtOrBelow(fieldpath.NewSet(w.fields...)).IsEmpty()
}

// maxAlone is the maximum number of fields of a way that are tried one by one before all of them together.
const maxAlone = 8

// removal returns the suggestion for a way whose fields move to the manager. It leaves out fields that may stay, so
// that the apply does not remove them needlessly. There is no suggestion if the budget is used up before all such
// fields are found, or if the apply after the move would not remove each remaining field.
func (p *Planned) removal(ctx context.Context, asking Asking, w way) (s advice.Suggestion, ok bool) {
	isCut, all := false, w.fields
	accepts := func(fields []fieldpath.Path) bool {
		if isCut = isCut || !asking.take(p.Target); isCut {
			return false
		}
		next := advice.Remove(fields, p.Desired.Manager, w.owner, advice.Promise{Unblocks: true})
		removes, isAccepted := p.try(ctx, asking, next.Action.(advice.Move).Move)
		// An apply that removes the last owned field of a struct also removes the struct and its unowned fields.
		others := fieldpath.NewSet(all...).Difference(fieldpath.NewSet(fields...))
		if !isAccepted || !fieldpath.NewSet(removes...).AtOrBelow(others).IsEmpty() {
			return false
		}
		s, s.Promise.Removes = next, removes
		return true
	}
	sets := slices.Collect(slices.Chunk(w.fields[:min(len(w.fields), maxAlone)], 1))
	if len(w.fields) > 1 {
		sets = append(sets, w.fields)
	}
	i := slices.IndexFunc(sets, accepts)
	if i < 0 {
		return s, false
	}
	fields := needed(sets[i], accepts)
	for i := 0; i < len(fields); {
		all = p.parts(fields[i], w.owner)
		some := needed(all, func(parts []fieldpath.Path) bool {
			return accepts(slices.Concat(fields[:i], parts, fields[i+1:]))
		})
		if len(some) == len(all) {
			i++
		} else {
			fields = slices.Concat(fields[:i], some, fields[i+1:])
		}
	}
	removed := fieldpath.NewSet(s.Promise.Removes...)
	stays := func(field fieldpath.Path) bool { return removed.AtOrBelow(fieldpath.NewSet(field)).IsEmpty() }
	return s, !isCut && !slices.ContainsFunc(fields, stays)
}

// needed leaves out fields as long as accepts is true for the remaining fields. It never calls accepts with all fields
// or without fields.
func needed(fields []fieldpath.Path, accepts func([]fieldpath.Path) bool) []fieldpath.Path {
	for size := len(fields) / 2; size > 0; size /= 2 {
		for i := 0; i < len(fields); {
			rest := slices.Delete(slices.Clone(fields), i, min(i+size, len(fields)))
			if len(rest) > 0 && accepts(rest) {
				fields = rest
			} else {
				i += size
			}
		}
	}
	return fields
}

// parts returns the parts of a field: the fields or list items on the first level below it that has at least two. A
// list item has no parts, because it is removed as a whole. If owner is not nil, parts returns only parts that the
// owner owns at least partly.
func (p *Planned) parts(field fieldpath.Path, owner *managedfields.Key) (out []fieldpath.Path) {
	in := p.Kind.Typ.FieldSet(place.Unwrap(p.Plan.Object)).Leaves()
	if owner != nil {
		list, _ := managedfields.Read(p.Plan.Object) // no error: the method left has read it
		in = in.Intersection(p.Kind.Typ.Reconcile(list.Get(*owner).Owned()))
	}
	for len(out) < 2 && field[len(field)-1].IsField() {
		out = nil
		for leaf := range in.AtOrBelow(fieldpath.NewSet(field)).All() {
			if len(leaf) == len(field) {
				return nil
			}
			if part := leaf[:len(field)+1]; len(out) == 0 || !out[len(out)-1].Equal(part) {
				out = append(out, slices.Clone(part))
			}
		}
		if len(out) == 0 {
			return nil
		}
		field = out[0]
	}
	return out
}

func deref(k *managedfields.Key) managedfields.Key {
	if k == nil {
		return managedfields.Key{}
	}
	return *k
}

// givenBack returns moves of fields that the apply removes and the error names. The new owner is another manager that
// owns a field nearby: in the innermost item or struct around the moved field that stays after the apply.
func (p *Planned) givenBack(named []string) (out []way) {
	t, after := p.Kind.Typ, place.Unwrap(p.Plan.Object)
	list, err := managedfields.Read(p.Plan.Object)
	if err != nil {
		return nil
	}
	for path := range p.removes().All() {
		text := strings.ToLower(Pointer(t, path, after)) + "/"
		isNamed := func(field string) bool { return strings.HasPrefix(text, field+"/") }
		if name, _ := path[0].Field(); name == "metadata" || !slices.ContainsFunc(named, isNamed) {
			continue // fields of metadata are independent of each other
		}
		rest := path[:len(path)-1]
		for len(rest) > 1 {
			if _, stays := t.Get(after, rest); stays {
				break
			}
			rest = rest[:len(rest)-1]
		}
		i := slices.IndexFunc(list, func(e managedfields.Entry) bool {
			return e.Manager != p.Desired.Manager && e.Subresource == "" &&
				!e.Owned().AtOrBelow(fieldpath.NewSet(rest)).IsEmpty()
		})
		if len(rest) > 1 && i >= 0 {
			out = addTo(out, way{owner: &list[i].Key, keeps: true}, slices.Clone(path))
		}
	}
	return out
}

// left returns moves of fields to the manager, one move for each owner. They are for fields that the apply leaves
// although the intent lacks them: first unowned fields, then fields of updaters, then fields of appliers. The error
// must name the field itself, a field in or around it, or another item of the same list. Guesses come last. A guess
// moves one owned field if the error names another field in the same item or struct.
func (p *Planned) left(named []string) []way {
	t, after := p.Kind.Typ, place.Unwrap(p.Plan.Object)
	list, err := managedfields.Read(p.Plan.Object)
	if err != nil {
		return nil
	}
	var nobody, updaters, appliers, guesses []way
	seen := map[string]bool{}
	for leaf := range t.FieldSet(after).Leaves().Difference(managedfields.Unowned()).All() {
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
		pointer := strings.ToLower(Pointer(t, field, after))
		isNamed, isBeside := isNamedIn(named, pointer, field[n-1].IsKey())
		if !isNamed && (!isBeside || n < 3) {
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
			switch w := (way{owner: &e.Key}); {
			case !isNamed:
				guesses = append(guesses, way{owner: &e.Key, fields: []fieldpath.Path{field}, isGuess: true})
			case isApply:
				appliers = addTo(appliers, w, field)
			default:
				updaters = addTo(updaters, w, field)
			}
		}
		if !isOwned && isNamed {
			nobody = addTo(nobody, way{}, field)
		}
	}
	return slices.Concat(nobody, updaters, appliers, guesses)
}

// isNamedIn compares the named fields with a pointer. isNamed reports whether one of them is at, below or above the
// pointer. If the pointer is to a list item, isNamed is also true for a named field in the same list. isBeside reports
// whether one of the named fields is in the value that directly contains the field of the pointer.
func isNamedIn(named []string, pointer string, isItem bool) (isNamed, isBeside bool) {
	around := pointer[:strings.LastIndexByte(pointer, '/')]
	list := pointer
	if isItem {
		list = around
	}
	for _, field := range named {
		isNamed = isNamed || strings.HasPrefix(pointer+"/", field+"/") || strings.HasPrefix(field+"/", list+"/")
		isBeside = isBeside || strings.HasPrefix(field, around+"/")
	}
	return isNamed, isBeside
}

// addTo adds a field to the way for the owner of w. If ways has no such way, addTo adds w first.
func addTo(ways []way, w way, field fieldpath.Path) []way {
	i := slices.IndexFunc(ways, func(other way) bool { return deref(other.owner) == deref(w.owner) })
	if i < 0 {
		i, ways = len(ways), append(ways, w)
	}
	ways[i].fields = append(ways[i].fields, field)
	return ways
}

// removes returns the leaves that the apply removes.
func (p *Planned) removes() (out *fieldpath.Set) {
	for _, change := range p.Ownership {
		out = out.Union(change.Removes.Leaves())
	}
	return out
}

// LeftOut suggests removing preconditions from a manifest whose apply the server rejected, if without them the server
// accepts the apply or reports only conflicts.
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
	options := cluster.WriteOptions{
		Manager: w.Manager, Force: p.Options.Force, DryRun: true, Subresource: subresource,
	}
	_, err := asking.Place.Apply(ctx, w.Target, intent, options)
	s := advice.LeaveOut(names, live != nil)
	if apierrors.IsConflict(err) { // these conflicts have their own ways out
		s.Promise.Unblocks, options.Force = false, true
		_, err = asking.Place.Apply(ctx, w.Target, intent, options)
	}
	if err != nil {
		return nil
	}
	return []advice.Suggestion{s}
}

// AskWays sends a dry run for each way out of the conflicts.
func (p *Planned) AskWays(ctx context.Context, asking Asking, subresource string) {
	w := p.Desired.Stored()
	p.Refused, p.Also = map[conflicts.Decision]string{}, map[conflicts.Decision][]fieldpath.Path{}
	p.Overruled = nil
	for _, way := range []conflicts.Decision{conflicts.Force, conflicts.GiveUp, conflicts.Share} {
		decide := func(all conflicts.Conflicts) []conflicts.Decision {
			return slices.Repeat([]conflicts.Decision{way}, len(all))
		}
		r, err := plans.Resolve(ctx, w.Fields, place.Wrap(w.Object), place.Wrap(w.Tree), decide, p.Options)
		if err != nil || !asking.take(p.Target) {
			continue
		}
		served, err := asking.Place.Apply(ctx, w.Target, r.Intent.Object, cluster.WriteOptions{
			Manager: w.Manager, Force: r.Force, DryRun: true, Subresource: subresource,
		})
		p.saw(served, err)
		if err != nil {
			p.Refused[way] = place.ServerError(err).Error()
			continue
		}
		p.Also[way] = changedByServer(w.Kind.Typ, w.Manager, w.Object, served, r.Intent.Object)
		if way == conflicts.Force {
			p.Also[way] = slices.DeleteFunc(p.Also[way], func(path fieldpath.Path) bool { // stringData sets these
				return slices.ContainsFunc(p.Conflicts, func(c conflicts.Conflict) bool { return c.Path.Equal(path) })
			})
			p.Overruled = p.overruled(r.Plan, served)
		}
	}
	for _, s := range advice.OwnUpdates(w.Manager, p.Conflicts) {
		move := s.Action.(advice.Move).Move
		_, err := w.Mover(asking.Now).Do(ctx, place.Wrap(w.Object), move)
		isRefused := err != nil // for versions that only the server can convert
		if err == nil && s.Promise.Unblocks && asking.take(p.Target) {
			_, isAccepted := p.try(ctx, asking, move)
			isRefused = !isAccepted
		}
		p.MoveRefused = p.MoveRefused || isRefused
	}
}

// overruled returns the fields in conflict that differ between a plan that forces them and the server's response, which
// admission may have changed.
func (p *Planned) overruled(plan *plans.Plan, served map[string]any) (out []plans.Change) {
	forced := *p
	forced.Desired, forced.Plan, forced.Served = p.Desired.Stored(), plan, nil
	forced.Options = p.PlanOptions(false) // the server sets defaults even if the plan is to compare literally
	// Whole objects are compared: an empty list, for example, means the same as null only as a field of a struct.
	var differing []fieldpath.Path
	for change := range plans.Changes(p.Kind.Typ, forced.Options.Semantics, forced.ObjectAfter(), served) {
		if change.Kind != plans.Reordered { // then the items keep their values
			differing = append(differing, change.Path)
		}
	}
	differs := fieldpath.NewSet(differing...)
	for _, c := range p.Conflicts {
		isDifferent := !differs.AtOrBelow(fieldpath.NewSet(c.Path)).IsEmpty()
		for n := range c.Path {
			isDifferent = isDifferent || differs.Has(c.Path[:n])
		}
		if c.Equal || c.APIVersion != p.Kind.GroupVersion().String() || !isDifferent {
			continue
		}
		is, _ := p.Kind.Typ.Get(secrets.Shown(served), c.Path)
		out = append(out, plans.Change{
			Kind: plans.Modified, Path: p.InParent(c.Path), Before: c.Applied, After: is,
		})
	}
	return out
}

// changedByServer returns the fields of other managers whose values differ after an apply although the intent lacks
// them. The server changes them for reasons of its own: it removes the node ports of a Service, for example, if the
// apply drops the type of the Service.
func changedByServer(
	t *typed.Type, manager string, before, after, intent map[string]any,
) (changed []fieldpath.Path) {
	list, err := managedfields.Read(place.Wrap(before))
	if err != nil {
		return nil
	}
	leaves, leavesAfter := t.FieldSet(before).Leaves(), t.FieldSet(after).Leaves()
	others := fieldpath.NewSet()
	for i := range list {
		if e := &list[i]; e.Manager != manager && e.APIVersion == after["apiVersion"] {
			others = others.Union(t.Reconcile(e.Owned()))
		}
	}
	for path := range others.Intersection(leaves).RecursiveDifference(t.FieldSet(intent).Leaves()).All() {
		was, _ := t.Get(before, path)
		is, exists := t.Get(after, path)
		hasMembers := exists && !leavesAfter.Has(path) // the apply added members to an empty list or map
		if !hasMembers && !typed.Equal(was, is) && !path.Equal(annotationPath) {
			changed = append(changed, slices.Clone(path))
		}
	}
	return changed
}

// try plans the same apply after a move, and sends the results of both as dry runs. It returns the leaves that this
// apply removes, and whether the server accepts both.
func (p *Planned) try(
	ctx context.Context, asking Asking, move ownership.Move,
) (removes []fieldpath.Path, isAccepted bool) {
	w := p.Desired.Stored()
	moved, err := w.Mover(asking.Now).Do(ctx, place.Wrap(w.Object), move)
	if err != nil {
		return nil, false
	}
	next, err := p.next(ctx, w, moved.Object)
	if err != nil || next.Outcome == plans.Conflict {
		return nil, false
	}
	served, err := p.send(ctx, asking, moved.Object, next)
	return p.removedBy(next, served), err == nil
}

// send sends two objects as dry runs: the result of a move, which an admission policy may reject, and the result of the
// apply after it. It returns the object that the server would store in the last of these dry runs.
func (p *Planned) send(
	ctx context.Context, asking Asking, moved runtime.Object, plan *plans.Plan,
) (served map[string]any, err error) {
	w := p.Desired.Stored()
	for _, object := range []runtime.Object{moved, plan.Object} {
		served, err = place.ClusterOf(asking.Place).Try(ctx, w.Target, place.Unwrap(object), w.Manager)
		if err != nil {
			break
		}
	}
	p.saw(served, err)
	return w.WithoutChosen(served), err
}

// errVersions reports an object whose plan is uncertain, because the object has entries of versions that can't be
// converted here.
var errVersions = errors.New("entries of other versions can't be compared without the server")

// next plans the same apply to another live object.
func (p *Planned) next(ctx context.Context, w *place.Desired, live runtime.Object) (*plans.Plan, error) {
	isUncompared := false
	with := w.Fields.Options()
	with.Warnings = func(warning fieldmanager.Warning) {
		var other *fieldmanager.NoConverterError
		isUncompared = isUncompared || errors.As(warning.Err, &other)
	}
	fields, err := fieldmanager.New(w.Fields.Kind(), w.Types, with)
	if err == nil && with.Converter == nil && with.Subresource == "" {
		live, err = ownership.WithoutOtherStatus(live, w.Kind.GroupVersion().String())
	}
	if err != nil {
		return nil, err
	}
	options := p.Options
	options.Found = nil
	plan, err := plans.New(ctx, fields, live, place.Wrap(w.Tree), options)
	if err == nil && isUncompared {
		return nil, errVersions
	}
	return plan, err
}

// removedBy returns the leaves that the object loses by a plan of the same apply. It compares the object with served,
// which the server returned, or, if served is nil, with the planned object. Unowned fields are removed with the map
// that contains them. The server may set defaults in place of removed fields.
func (p *Planned) removedBy(plan *plans.Plan, served map[string]any) (out []fieldpath.Path) {
	after := *p
	after.Desired, after.Plan, after.Served = p.Desired.Stored(), plan, served
	t := p.Kind.Typ
	gone := t.FieldSet(after.Desired.Object).Leaves().Difference(t.FieldSet(after.ObjectAfter()))
	gone = gone.Difference(managedfields.Unowned())
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

// Pointer returns a path as a JSON pointer (RFC 6901). List items are given by their index in the object. If the object
// lacks the item, the result is the pointer to the list.
func Pointer(t *typed.Type, path fieldpath.Path, value any) (text string) {
	for _, e := range path {
		if name, ok := e.Field(); ok {
			text += "/" + place.PointerToken.Replace(name)
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
			t = &typed.Type{} // unknown to the schema: no item is found
		}
	}
	return text
}
