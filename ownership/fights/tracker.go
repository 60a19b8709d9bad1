package fights

import (
	"cmp"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/tenure-ssa/tenure/ownership/internal/components"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Options limit the memory of a Tracker, and say when it reports. A zero field has its default.
type Options struct {
	// Window is the period in which returns, reverts and idle writes are counted; 10 minutes by default.
	Window time.Duration
	// Returns is the number of returns that make a fight, and of reverts that make a flap; 3 by default.
	Returns int
	// IdleWrites is how many writes make a side an idle writer, if they change nothing except times; 10 by default.
	IdleWrites int
	// Fields is the maximal number of fields of an object that are tracked at a time; 64 by default.
	Fields int
}

const (
	maxTurns = 16
	// maxSides is the maximal number of idle writers that are tracked for each object.
	maxSides = 32
)

// Tracker observes the versions of objects, and finds fights and similar problems.
type Tracker struct {
	options Options
	objects map[Object]*history // by identity
}

// New returns a Tracker that has observed nothing.
func New(options Options) *Tracker {
	options.Window = cmp.Or(options.Window, 10*time.Minute)
	options.Returns = cmp.Or(options.Returns, 3)
	options.IdleWrites = cmp.Or(options.IdleWrites, 10)
	options.Fields = cmp.Or(options.Fields, 64)
	return &Tracker{options: options, objects: map[Object]*history{}}
}

// Object names an object.
type Object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"objectKind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	UID        string `json:"uid,omitempty"`
}

// identity returns the part of o that is the same at all API versions: the UID or, if there is none, o with its group
// in place of its version.
func (o Object) identity() Object {
	if o.UID != "" {
		return Object{UID: o.UID}
	}
	gv, _ := schema.ParseGroupVersion(o.APIVersion)
	o.APIVersion = gv.Group
	return o
}

// history is the known history of one object.
type history struct {
	object   Object // at the version that was observed first
	last     *snapshot
	isBehind bool              // only the Scale of a later version was observed
	fields   map[string]*field // by path
	idle     map[Side][]time.Time
	first    Size
	growth   *Finding // the largest growth so far, since it was first found; nil if there was none
}

// field is a field that was written.
type field struct {
	path  fieldpath.Path
	turns []turn
}

// turn is a series of writes of one side. value is the value after the last write.
type turn struct {
	side        Side
	value       value
	first, last time.Time
	isReturn    bool
	isForced    bool // the turn began with a forced apply that took the field

	previous    value // the value that the side had set before value
	hasPrevious bool
	reverts     []time.Time // times of the uninterrupted reverts at the end
}

// Observe takes the next version of an object and the time of its write. It returns the findings: fights and flaps that
// begin or continue, idle writers, and growth. Observe ignores an object that still has the last observed
// resourceVersion. An object without a resourceVersion is always a new version. obj is kept until the next version, and
// must not be changed.
func (t *Tracker) Observe(obj map[string]any, when time.Time) []Finding {
	return t.observe(newSnapshot(obj), Nobody, when)
}

// ObserveWrite is [Tracker.Observe] for the object that a server returned for a write of a side, as in an audit log.
// The side is the writer of removed fields even if it has no entry. If the object has the last observed version, the
// write changed nothing and is an idle write. The side of a patch may lack its operation. Then the operation is Apply
// if the side has an Apply entry in obj or in the version before, and otherwise Update.
func (t *Tracker) ObserveWrite(obj map[string]any, side Side, when time.Time) []Finding {
	next := newSnapshot(obj)
	h := t.objects[next.object.identity()]
	if h == nil {
		return t.observe(next, side, when)
	}
	if side.Manager == "" {
		side = Nobody
	} else if side.Operation == "" {
		side.Operation = metav1.ManagedFieldsOperationApply
		isSide := func(e ownedEntry) bool { return e.side == side }
		// After an apply that gave up all fields, the side has no entry any more.
		if !slices.ContainsFunc(next.entries, isSide) && !slices.ContainsFunc(h.last.entries, isSide) {
			side.Operation = metav1.ManagedFieldsOperationUpdate
		}
	}
	if next.version == "" || next.version != h.last.version {
		return t.observe(next, side, when)
	}
	return h.idleWrite(side, when, t.options)
}

// observe takes a version that writer wrote; Nobody if the writer is not known.
func (t *Tracker) observe(next *snapshot, writer Side, when time.Time) []Finding {
	h := t.objects[next.object.identity()]
	if h == nil {
		t.objects[next.object.identity()] = &history{
			object: next.object, last: next, first: next.size(), fields: map[string]*field{}, idle: map[Side][]time.Time{},
		}
		return nil
	}
	if next.version != "" && next.version == h.last.version {
		return nil
	}
	touched := next.touchedSince(h.last)
	changes, isIdle := changesBetween(h.last, next, touched, writer)
	isIdle = isIdle && !h.isBehind // the write may revert a change that was seen only in the Scale
	h.last, h.isBehind = next, false
	var found []Finding
	for _, c := range changes {
		if f := h.write(c, when, t.options); f != nil {
			found = append(found, h.fieldFindings(f, when, t.options)...)
		}
	}
	// The idle writer is the side that was touched last. If a side writes twice in a second, no side is touched, and
	// the idle writer is the side that wrote the times.
	idle := sets.New[Side]()
	for _, c := range changes {
		idle.Insert(c.side)
	}
	if writer = only(idle); len(touched) > 0 {
		writer = touched[0]
	}
	if isIdle && writer != Nobody {
		found = append(found, h.idleWrite(writer, when, t.options)...)
	}
	switch current := next.size(); {
	case !h.first.growsTo(current):
	case h.growth == nil:
		h.growth = &Finding{Kind: Growth, Object: h.object, Since: when, Last: when, Before: h.first, After: current}
		found = append(found, *h.growth)
	case current.Bytes > h.growth.After.Bytes:
		h.growth.After, h.growth.Last = current, when
	}
	return found
}

// Forget removes the history of a deleted object.
func (t *Tracker) Forget(o Object) { delete(t.objects, o.identity()) }

// Objects returns the number of tracked objects.
func (t *Tracker) Objects() int { return len(t.objects) }

// Findings returns the findings that are still true at a time, sorted: fights first, and findings with more returns
// before others.
func (t *Tracker) Findings(when time.Time) []Finding {
	var out []Finding
	for _, h := range t.objects {
		for _, f := range h.fields {
			out = append(out, h.fieldFindings(f, when, t.options)...)
		}
		for side, times := range h.idle {
			if times = within(times, when, t.options.Window); len(times) >= t.options.IdleWrites {
				out = append(out, h.idleFinding(side, times))
			}
		}
		if h.growth != nil {
			out = append(out, *h.growth)
		}
	}
	slices.SortFunc(out, Finding.compare)
	return out
}

// writesTimes are the kinds whose objects exist to be written again and again.
var writesTimes = map[string]bool{"Lease": true, "Event": true}

// write adds a change of a field to its turns. It returns nil if the writer is not known.
func (h *history) write(c change, when time.Time, o Options) *field {
	if c.side == Nobody && c.new != absent {
		return nil
	}
	key := c.path.String()
	f := h.fields[key]
	if f == nil {
		h.makeRoom(o.Fields)
		f = &field{path: slices.Clone(c.path)}
		h.fields[key] = f
		if before := only(c.before); before != Nobody && before != c.side {
			f.turns = append(f.turns, turn{side: before, value: c.old, first: when, last: when})
		}
	}
	if n := len(f.turns); n > 0 && f.turns[n-1].side == c.side {
		f.turns[n-1].goOn(c.new, when, o)
		return f
	}
	next := turn{side: c.side, value: c.new, first: when, last: when, isForced: c.isForced}
	if len(f.turns) == 0 && only(c.before) == c.side {
		next.previous, next.hasPrevious = c.old, true
	}
	for i := len(f.turns) - 1; i >= 0; i-- {
		if f.turns[i].side == c.side {
			next.isReturn = f.turns[i].value.hash == c.new.hash
			break
		}
	}
	if len(f.turns) == maxTurns {
		f.turns = slices.Delete(f.turns, 0, 1)
	}
	f.turns = append(f.turns, next)
	return f
}

// goOn adds a write of the side to its turn.
func (t *turn) goOn(v value, when time.Time, o Options) {
	if t.hasPrevious && v.hash == t.previous.hash {
		t.reverts = append(t.reverts, when)
		t.reverts = t.reverts[max(0, len(t.reverts)-10*o.Returns):] // enough for the rate
	} else {
		t.reverts = nil
	}
	t.previous, t.hasPrevious, t.value, t.last = t.value, true, v, when
}

// makeRoom forgets one field if the limit is reached: the field whose last write is the oldest. If several fields have
// the same age, it forgets the first of them by path.
func (h *history) makeRoom(limit int) {
	if len(h.fields) < max(limit, 1) {
		return
	}
	oldest := slices.MinFunc(slices.Collect(maps.Keys(h.fields)), func(a, b string) int {
		return cmp.Or(h.fields[a].lastWrite().Compare(h.fields[b].lastWrite()), cmp.Compare(a, b))
	})
	delete(h.fields, oldest)
}

func (f *field) lastWrite() time.Time { return f.turns[len(f.turns)-1].last }

// returns counts the returns within the window.
func (f *field) returns(when time.Time, window time.Duration) (n int) {
	for _, turn := range f.turns {
		if turn.isReturn && when.Sub(turn.first) <= window {
			n++
		}
	}
	return n
}

// fieldFindings returns the fight over a field and the last flap of the field, if there are any.
func (h *history) fieldFindings(f *field, when time.Time, o Options) (found []Finding) {
	if f.returns(when, o.Window) >= o.Returns {
		found = append(found, h.fight(f, when, o))
	}
	for i := len(f.turns) - 1; i >= 0; i-- {
		t := &f.turns[i]
		reverts := within(t.reverts, when, o.Window)
		if len(reverts) >= o.Returns && !isStatus(t.side, f.path) && !writesTimes[h.object.Kind] {
			return append(found, h.flap(f, t, reverts))
		}
	}
	return found
}

// isStatus reports whether side may use a field to report what it observes. This is true for fields of the status, and
// for fields that Kubernetes components write. The values of such fields may alternate.
func isStatus(side Side, path fieldpath.Path) bool {
	first, _ := path[0].Field()
	return first == "status" || side.Subresource == "status" || components.Has(side.Manager)
}

// idleWrite adds a write that changed nothing, and returns the finding if the limit is reached.
func (h *history) idleWrite(side Side, when time.Time, o Options) []Finding {
	if writesTimes[h.object.Kind] || h.idle[side] == nil && len(h.idle) == maxSides {
		return nil
	}
	times := append(within(h.idle[side], when, o.Window), when)
	// These are enough times to compute the rate of writes.
	h.idle[side] = times[max(0, len(times)-10*o.IdleWrites):]
	if len(times) < o.IdleWrites {
		return nil
	}
	return []Finding{h.idleFinding(side, h.idle[side])}
}

// within returns the times that are in the window. times are sorted, so these are the last ones.
func within(times []time.Time, when time.Time, window time.Duration) []time.Time {
	for len(times) > 0 && when.Sub(times[0]) > window {
		times = times[1:]
	}
	return times
}

// Side is a writer: a manager with its operation and subresource.
type Side struct {
	Manager     string                            `json:"manager"`
	Operation   metav1.ManagedFieldsOperationType `json:"operation,omitempty"`
	Subresource string                            `json:"subresource,omitempty"`
}

// Nobody is the side of a manager that removed a field and owns nothing, so that it has no entry.
var Nobody Side

// String returns the manager, and the parts of the side that distinguish it from other sides with the same manager.
func (s Side) String() string {
	if s == Nobody {
		return "a manager without an entry"
	}
	text := s.Manager
	if s.Subresource != "" {
		text += "/" + s.Subresource
	}
	if s.Operation == metav1.ManagedFieldsOperationApply {
		text += " (apply)"
	}
	return text
}

func (s Side) compare(o Side) int {
	return cmp.Or(
		cmp.Compare(s.Manager, o.Manager),
		cmp.Compare(s.Operation, o.Operation),
		cmp.Compare(s.Subresource, o.Subresource),
	)
}
