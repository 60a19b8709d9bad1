package typed

import (
	"fmt"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Owned is what a manager owns, in the form in which its entry holds it: a FieldsV1
// as maps of maps, as in an unstructured object, or a set. A nil Tree says that it is
// the set; {} is a FieldsV1 that owns nothing.
type Owned struct {
	Tree map[string]any
	Set  *fieldpath.Set
}

// ApplyOptions say how [Type.Apply] works.
type ApplyOptions struct {
	// Semantics say which values are equal; nil for those that are the same JSON.
	Semantics *Semantics
	// Unowned are paths that no intent comes to own. A leaf of Unowned also covers
	// everything below it.
	Unowned *fieldpath.Set
	// Compare asks for the Comparison.
	Compare bool
	// ValuesOnly says that what the intent owns and dropped is not asked for.
	ValuesOnly bool
	// Guess is a guess of what the intent owns, of the same paths as last; nil for none.
	Guess *Guess
}

// Applied is what [Type.Apply] finds.
type Applied struct {
	// Merged is live with the intent merged into it: live itself, the same value in
	// memory, unless Changed. Where live is a [Container], Merged is a map that holds
	// what did not change as live has it: scalars and Containers.
	Merged  any
	Changed bool
	// Owned is what the intent owns, in the form of last: last itself, unless Moved.
	Owned Owned
	Moved bool
	// Dropped is what last owned and the intent does not. Nil for nothing.
	Dropped *fieldpath.Set
	// Comparison is how Merged differs from live, if it was asked for.
	Comparison Comparison
}

// Apply merges applied, an intent, into live, and says what the intent owns, what
// its manager dropped, and how live changes. It is all that an apply asks of the
// values, in one walk down the intent.
//
// A worked example. ports is keyed by port, args is a set, the rest are fields:
//
//	live       spec: {image: a, ports: [{port: 80, name: x}, {port: 90}], args: [q]}
//	last       f:spec: {f:image, f:args: {v:"q"}, f:ports: {k:{"port":80}: {., f:port}}}
//	applied    spec: {image: b, args: [q, r]}
//
//	the walk   spec           a struct: walk the entries of applied
//	             image        a became b          Modified
//	             args         "q" is the same     nothing
//	                          "r" is new          Added, and gained
//	           last has three members below spec and two of them were met: the third,
//	           ports, was dropped
//
//	Merged     spec: {image: b, ports: [{port: 80, name: x}, {port: 90}], args: [q, r]}
//	Owned      f:spec: {f:image, f:args: {v:"q", v:"r"}}
//	Dropped    .spec.ports[port=80], .spec.ports[port=80].port
//	Added      .spec.args["r"]
//	Modified   .spec.image
//
// What was dropped is still in Merged: whether it goes depends on what others own.
//
// The walk has one cursor into live, one into last and one into Unowned, and goes
// down where applied goes. It decodes nothing, copies only what changes, and does not
// visit what applied does not mention. So its cost follows the size of applied, and
// what it allocates follows the size of the change. The plain operations are its twins;
// at every place it comes to what they come to:
//
//	t.Validate(applied, Rules{Live: live}) == nil
//	Merged      equals  t.Merge(live, applied), and is live where that equals live
//	Owned       is      t.FieldSet(applied) without Unowned
//	Dropped     is      last without Owned
//	Comparison  is      t.Compare(live, Merged)
//
// A place of a rare kind (a value that takes another shape, a list of live that holds an
// item twice) goes to the twins, with all below it, and the walk goes on behind it.
// The walk ends early only where applied is invalid, or larger than [MaxValues].
//
// The error is the one of [Type.Validate]; a *[LastError] if last can't be decoded
// although something of it may have been dropped; or what is wrong with a [Container].
// live is nil for an object that is new, and may hold a Container in the place of any
// map or list. Merged shares memory with live and applied, and Owned with last.
func (t *Type) Apply(live, applied any, last Owned, options ApplyOptions) (Applied, error) {
	if live == nil {
		live = missing
	}
	return t.apply(live, applied, last, options, (*walk).value)
}

// applyPlainly is Apply by the twins alone.
func (t *Type) applyPlainly(live, applied any, last Owned, options ApplyOptions) (Applied, error) {
	if live == nil {
		live = missing
	}
	return t.apply(live, applied, last, options, (*walk).plain)
}

// stepper walks a place; see [walk.value].
type stepper func(w *walk, t *Type, live, applied any, last owned, unowned *fieldpath.Set, depth int) (place, bool)

func (t *Type) apply(live, applied any, last Owned, options ApplyOptions, step stepper) (Applied, error) {
	w := walk{
		ApplyOptions: options, root: t, last: last, sets: last.Tree == nil,
		name: make([]byte, 0, 128), left: MaxValues, blind: options.ValuesOnly,
	}
	if w.Semantics == nil && !w.Compare {
		w.guessing = w.Guess
	}
	p, ok := step(&w, t, live, applied, last.cursor(), options.Unowned, 0)
	if w.stale {
		// Bring last up to date, so that what was dropped can be told, and begin again.
		var err error
		if w.last, err = t.reconcileOwned(last); err != nil {
			return Applied{}, &LastError{err}
		}
		w.stale, w.current, w.renewed, w.left, w.guessing = false, true, true, MaxValues, nil
		p, ok = step(&w, t, live, applied, w.last.cursor(), options.Unowned, 0)
	}
	if !ok || p.leaf {
		if err := w.check(live, applied); err != nil {
			return Applied{}, err
		}
		// It is valid, and more than the walk looks at.
		w.left = MaxValues
		if p, ok = w.plain(t, live, applied, w.last.cursor(), options.Unowned, 0); !ok {
			return Applied{}, errTooDeep
		}
	}
	return w.result(live, &p), nil
}

// check returns all that is wrong with live, which may be a [Container], or applied.
func (w *walk) check(live, applied any) error {
	tree, err := plainTree(live)
	if err != nil {
		return err
	}
	if isMissing(tree) {
		tree = nil
	}
	return w.root.Validate(applied, Rules{Live: tree})
}

var errTooDeep = fmt.Errorf("nested deeper than %d", MaxDepth)

// LastError says that what a manager owned before can't be decoded.
type LastError struct{ Err error }

func (e *LastError) Error() string { return "fields owned before: " + e.Err.Error() }

// Unwrap returns Err.
func (e *LastError) Unwrap() error { return e.Err }

// walk is one walk of [Type.Apply].
type walk struct {
	ApplyOptions
	root *Type
	last Owned

	sets    bool // last is a set, not a FieldsV1
	current bool // last is known to be reconciled, and in canonical form
	stale   bool // it is known not to be, so that the walk ends
	renewed bool // it was brought up to date
	blind   bool // inside of what no intent owns
	guess   int  // how many guesses of where items are it is inside of
	guessed bool // one of them was wrong, so that there are no more
	lacks   bool // the item whose name is in name lacks a key field
	name    []byte
	left    int // how many more values are looked at

	guessing *Guess // of the current place; nil for none
}

// place is what the walk finds at one place of live and applied.
//
//	changed   ⇒  merged is the value there, and not live's
//	!moved    ⇒  what is owned below is what last has there; fields is nil
//	moved     ⇒  it is fields, with a mark of its own maybe; or, where last is a set,
//	             what last has there without delta.dropped and with delta.gained
//	delta     is nil where neither the value nor what is owned changed; never changed
//	             once it is here, as places share it
type place struct {
	merged  any
	fields  map[string]any
	delta   *delta
	count   int // members below that are owned
	changed bool
	moved   bool
	leaf    bool // the value is a leaf, and owned itself
}

// delta is what changes at a place and below it. gained is only kept where last is a
// set: a FieldsV1 is changed as the walk goes.
type delta struct {
	difference
	gained, dropped fieldpath.Entry
}

var (
	leafAdded    = &delta{difference: difference{added: fieldpath.Entry{Member: true}}}
	leafModified = &delta{difference: difference{modified: fieldpath.Entry{Member: true}}}
)

// deltas gathers the deltas of the children of a container.
type deltas struct {
	differences
	gained, dropped fieldpath.Builder
}

// with adds what changes at a child, whose element is e; gained and dropped say whether the child itself is owned from
// now on, or no more. of is nil for a child in which nothing changes. It returns ds, or new deltas for nil.
func (ds *deltas) with(e fieldpath.Element, of *delta, gained, dropped bool) *deltas {
	if ds == nil {
		ds = &deltas{}
	}
	if of == nil {
		of = &delta{}
	}
	ds.differences.add(e, of.difference)
	ds.gained.Add(e, gained, of.gained.Below)
	ds.dropped.Add(e, dropped, of.dropped.Below)
	return ds
}

// result returns the delta of the container, which itself was added or not.
func (ds *deltas) result(added bool) *delta {
	if ds == nil {
		if added {
			return leafAdded
		}
		return nil
	}
	d := &delta{difference: ds.differences.result()}
	d.gained.Below, d.dropped.Below = ds.gained.Set(), ds.dropped.Set()
	d.added.Member = added
	return d
}

// result returns what was found at the root.
func (w *walk) result(live any, p *place) Applied {
	out := Applied{Merged: live, Owned: w.last, Changed: p.changed, Moved: p.moved || w.renewed}
	if isMissing(live) {
		out.Merged = nil
	}
	if p.changed {
		out.Merged = p.merged
	}
	d := p.delta
	if d == nil {
		d = &delta{}
	}
	out.Dropped = d.dropped.Below
	out.Comparison = Comparison{Added: d.added.Below, Modified: d.modified.Below, Removed: d.removed.Below}
	switch {
	case !p.moved:
	case w.sets:
		out.Owned.Set = w.last.Set.Difference(d.dropped.Below).Union(d.gained.Below)
	default:
		delete(p.fields, ".")
		out.Owned.Tree = p.fields
	}
	return out
}

// value walks one place; live may be missing. ok is false when applied is invalid.
func (w *walk) value(t *Type, live, applied any, last owned, unowned *fieldpath.Set, depth int) (p place, ok bool) {
	if depth > MaxDepth {
		return p, false
	}
	switch a := applied.(type) {
	case string:
		// Most values are texts that stay: they need no more than this.
		if l, ok := live.(string); ok && l == a && (t.Scalar == String || t.Scalar == Untyped) && last.count() == 0 {
			return place{leaf: true}, true
		}
	case map[string]any:
		switch {
		case t.Map == nil || !isMissing(live) && !isLiveMap(live) && !w.isNull(t, live, len(a)):
			return w.plain(t, live, applied, last, unowned, depth)
		case t.Map.Atomic:
			return w.atomic(t, live, a, last, depth)
		case w.guessing != nil && w.isGuessed(live, applied, unowned, depth):
			return place{merged: applied, changed: true, count: len(w.guessing.Below)}, true
		case len(a) > 0:
			return w.entries(t.Map, live, a, last, unowned, depth)
		}
		return w.empty(live, applied, last)
	case []any:
		_, isList := lenOf(live)
		switch {
		case t.List == nil || !isMissing(live) && !isList && !w.isNull(t, live, len(a)):
			return w.plain(t, live, applied, last, unowned, depth)
		case t.List.Kind == AtomicList:
			return w.atomic(t, live, a, last, depth)
		case w.guessing != nil && w.isGuessed(live, applied, unowned, depth):
			return place{merged: applied, changed: true, count: len(w.guessing.Below)}, true
		case len(a) > 0 && unowned.Empty():
			return w.items(t, live, a, last, depth)
		case len(a) > 0: // single items that nobody owns: no host has such a thing
			return w.plain(t, live, applied, last, unowned, depth)
		}
		return w.empty(live, applied, last)
	}
	return w.scalar(t, live, applied, last, unowned, depth)
}

// isGuessed reports whether live has nothing in a place, or nulls, and applied what was guessed: it takes the place of
// live, and last has what it owns. There is a guess.
func (w *walk) isGuessed(live, applied any, unowned *fieldpath.Set, depth int) bool {
	return w.guessing.Set != nil && unowned.Empty() && !w.blind &&
		(isMissing(live) || live == nil || isBlank(live, applied)) && w.guessing.fits(applied, depth)
}

// isNull reports whether live has a null where applied has a map or list that is not
// empty, as a Go struct has of a list that is not omitted. It is walked like one that is
// empty, if a null can be nothing else there.
func (w *walk) isNull(t *Type, live any, applied int) bool {
	shapes := t.shapes()
	return live == nil && applied > 0 && w.Semantics == nil && shapes == shapes.first()
}

// empty walks an empty map or list that is granular: it adds itself, and nothing to
// what live has.
func (w *walk) empty(live, applied any, last owned) (p place, ok bool) {
	if isMissing(live) {
		p = w.changed(live, applied)
	}
	return p, w.dropAll(&p, last)
}

// changed returns the place of a value that is not live's, and that nothing changes
// below.
func (w *walk) changed(live, applied any) place {
	p := place{merged: applied, changed: true}
	switch {
	case !w.Compare:
	case isMissing(live):
		p.delta = leafAdded
	default:
		p.delta = leafModified
	}
	return p
}

// scalar walks a scalar or null.
func (w *walk) scalar(t *Type, live, applied any, last owned, unowned *fieldpath.Set, depth int) (p place, ok bool) {
	switch {
	case applied == nil && t.shapes() == 0:
		return w.plain(t, live, applied, last, unowned, depth)
	case applied != nil && !t.Scalar.accepts(applied), finite(applied) != nil:
		return p, false
	case same(live, applied):
	case isMissing(live):
		p = w.changed(live, applied)
	case applied == nil, kindOf(live) == isMap, kindOf(live) == isList, kindOf(live) == notJSON:
		// A null leaves what is in a container, and a container leaves its content.
		return w.plain(t, live, applied, last, unowned, depth)
	case !w.Semantics.leavesEqual(t, live, applied):
		p = w.changed(live, applied)
	}
	p.leaf = true
	return p, w.dropAll(&p, last)
}

// atomic walks a list or map that is owned as a whole, where live has one of the same
// shape or nothing.
func (w *walk) atomic(t *Type, live, applied any, last owned, depth int) (p place, ok bool) {
	if !isMissing(live) {
		if w.sameJSON(live, applied, depth) {
			return place{leaf: true}, last.count() == 0 || w.dropAll(&p, last)
		}
		tree, err := plainTree(live)
		if err != nil {
			return p, false
		}
		live = tree
	}
	if isMissing(live) || !w.Semantics.leavesEqual(t, live, applied) {
		if isValid(t, applied, depth, MaxValues) < 0 {
			v := validator{depth: depth}
			if v.value(t, applied, nil); len(v.errs) > 0 {
				return p, false
			}
		}
		p = w.changed(live, applied)
	}
	p.leaf = true
	return p, w.dropAll(&p, last)
}

// plain walks a place by the twins.
func (w *walk) plain(t *Type, live, applied any, last owned, unowned *fieldpath.Set, depth int) (p place, ok bool) {
	tree, err := plainTree(live)
	if err != nil {
		return p, false
	}
	v := validator{depth: depth, liveFinder: liveFinder{left: MaxValues}}
	there := tree
	if isMissing(there) {
		there = nil
	}
	if v.value(t, applied, there); len(v.errs) > 0 {
		return p, false
	}
	m := merger{semantics: w.Semantics, depth: depth}
	merged, unchanged := m.merge(t, tree, applied)
	if len(m.errs) > 0 {
		return p, false
	}
	d := &delta{}
	if p.changed = !unchanged && (isMissing(tree) || !Equal(tree, merged)); p.changed {
		p.merged = merged
		if w.Compare {
			c := comparer{s: w.Semantics, left: MaxValues}
			d.difference = c.compare(t, tree, merged, depth)
		}
	}
	leaf, below := t.fieldSet(applied, depth)
	if w.blind {
		leaf, below = false, nil
	}
	p.leaf = leaf
	below = withoutUnowned(below, unowned)
	p.count = below.Width()
	was, ok := w.below(last)
	if !ok {
		return p, false
	}
	if p.moved = !was.Equal(below); p.moved {
		d.gained.Below, d.dropped.Below = below.Difference(was), was.Difference(below)
		if !d.dropped.Below.Empty() && !w.isCurrent() {
			return p, false
		}
		if !w.sets {
			p.fields = below.Tree()
		}
	}
	if !d.difference.none() || p.moved {
		p.delta = d
	}
	return p, true
}

// withoutUnowned returns set without the paths of unowned, a leaf of which covers
// everything below it.
func withoutUnowned(set, unowned *fieldpath.Set) *fieldpath.Set {
	return set.Difference(unowned).RecursiveDifference(unowned.Leaves())
}

// sameJSON is Equal for values whose Go types are the same too, so that one can
// take the place of the other in what is returned.
func (w *walk) sameJSON(a, b any, depth int) bool {
	if depth > MaxDepth {
		return false
	}
	switch x := a.(type) {
	case Container:
		return x.EqualJSON(b)
	case map[string]any:
		y, ok := b.(map[string]any)
		if w.left -= len(x); !ok || len(x) != len(y) || w.left < 0 {
			return false
		}
		for k, v := range x {
			other, ok := y[k]
			if !ok {
				return false
			}
			if text, isText := v.(string); isText && depth < MaxDepth { // as most are; see equal
				if s, ok := other.(string); !ok || text != s {
					return false
				}
			} else if !w.sameJSON(v, other, depth+1) {
				return false
			}
		}
		return true
	case []any:
		y, ok := b.([]any)
		if w.left -= len(x); !ok || len(x) != len(y) || w.left < 0 {
			return false
		}
		for i := range x {
			if !w.sameJSON(x[i], y[i], depth+1) {
				return false
			}
		}
		return true
	}
	return same(a, b)
}
