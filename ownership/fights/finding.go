package fights

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Kind is the kind of a finding.
type Kind string

// The kinds of findings: a fight over a field, a side that reverts its own values of a field, a side that writes
// but changes nothing except times, and managed fields that grow.
const (
	Fight      Kind = "Fight"
	Flap       Kind = "Flap"
	IdleWriter Kind = "IdleWriter"
	Growth     Kind = "Growth"
)

// Finding is the result of an observation. It shares no memory with the Tracker.
type Finding struct {
	Kind Kind `json:"kind"`
	Object
	// Path is the field that is fought over or flaps; nil for the other kinds.
	Path fieldpath.Path `json:"field,omitempty"`
	// Sides are the sides of a fight, sorted by name. For a flap, they are the side that flaps, once for each of its
	// two values, the last value first. For idle writes, it is the idle writer.
	Sides []Participant `json:"sides,omitempty"`
	// Returns is the number of returns within the window; for a flap, the number of reverts; for an idle writer, the
	// number of writes that changed nothing except times. Turns is the number of turns of a fight, counted from two turns
	// before the first of these returns.
	Turns   int `json:"-"`
	Returns int `json:"returns,omitempty"`
	// Since and Last are the times of the first and the last counted write; for growth, of the write that was found, and
	// of the write that made the managed fields largest.
	Since time.Time `json:"since"`
	Last  time.Time `json:"last"`
	// Before and After are the sizes of growing managed fields: at first, and at most.
	Before Size `json:"before,omitzero"`
	After  Size `json:"after,omitzero"`
}

// Participant is a side, with the value that it set last.
type Participant struct {
	Side
	Value string `json:"value,omitempty"`
	Turns int    `json:"turns,omitempty"`
	// Forced is the number of its turns that began with a forced apply, which took the field.
	Forced int `json:"forced,omitempty"`
}

// Size is the size of an object's managed fields.
type Size struct {
	Entries int `json:"entries"`
	Bytes   int `json:"bytes"`
}

// growsTo reports whether growth from s to size is a finding.
func (s Size) growsTo(size Size) bool {
	return size.Entries > s.Entries && size.Bytes >= s.Bytes+1024 && size.Bytes*2 >= s.Bytes*3
}

// Rate returns the number of counted writes per minute; 0 if they were all at the same time.
func (f Finding) Rate() float64 {
	elapsed := f.Last.Sub(f.Since).Minutes()
	if elapsed <= 0 {
		return 0
	}
	return float64(max(f.Turns, f.Returns)-1) / elapsed
}

// String returns the finding on one line.
func (f Finding) String() string {
	where := f.Object.Kind + "/" + f.Object.Name
	if f.Object.Namespace != "" {
		where = f.Object.Namespace + "/" + where
	}
	switch f.Kind {
	case Flap:
		return fmt.Sprintf("%s: %s: %s sets %s and %s by turns; reverted its own value %d times", where, f.Path,
			f.Sides[0].Side, f.Sides[0].Value, f.Sides[1].Value, f.Returns)
	case IdleWriter:
		return fmt.Sprintf("%s: %s wrote %d times and changed nothing except times", where, f.Sides[0].Side, f.Returns)
	case Growth:
		return fmt.Sprintf("%s: managed fields grew from %d entries (%d bytes) to %d (%d bytes)", where,
			f.Before.Entries, f.Before.Bytes, f.After.Entries, f.After.Bytes)
	}
	sides := make([]string, len(f.Sides))
	for i, s := range f.Sides {
		sides[i] = fmt.Sprintf("%s sets %s", s.Side, s.Value)
	}
	return fmt.Sprintf("%s: %s: %s; put back %d times", where, f.Path, strings.Join(sides, ", "), f.Returns)
}

func (f Finding) compare(o Finding) int {
	order := []Kind{Fight, Flap, IdleWriter, Growth}
	return cmp.Or(
		cmp.Compare(slices.Index(order, f.Kind), slices.Index(order, o.Kind)),
		cmp.Compare(o.Returns, f.Returns),
		cmp.Compare(f.Object.Namespace, o.Object.Namespace),
		cmp.Compare(f.Object.Kind, o.Object.Kind),
		cmp.Compare(f.Object.Name, o.Object.Name),
		cmp.Compare(f.Object.UID, o.Object.UID),
		f.Path.Compare(o.Path),
		slices.CompareFunc(f.Sides, o.Sides, func(a, b Participant) int { return a.Side.compare(b.Side) }),
	)
}

// fight makes the finding for a field. The counted turns begin two turns before the first return in the window.
func (h *history) fight(f *field, last time.Time, o Options) Finding {
	from := slices.IndexFunc(f.turns, func(t turn) bool { return t.isReturn && last.Sub(t.first) <= o.Window })
	from = max(0, from-2) // the turn whose value was restored, and the turn between
	turns := f.turns[from:]
	out := Finding{
		Kind: Fight, Object: h.object, Path: slices.Clone(f.path),
		Since: turns[0].last, Last: f.lastWrite(), Turns: len(turns), Returns: f.returns(last, o.Window),
	}
	for _, t := range turns {
		i := slices.IndexFunc(out.Sides, func(p Participant) bool { return p.Side == t.side })
		if i < 0 {
			i = len(out.Sides)
			out.Sides = append(out.Sides, Participant{Side: t.side})
		}
		p := &out.Sides[i]
		p.Value = t.value.text
		p.Turns++
		if t.isForced {
			p.Forced++
		}
	}
	slices.SortFunc(out.Sides, func(a, b Participant) int { return a.Side.compare(b.Side) })
	return out
}

// flap makes the finding for a field that flaps in turn t. reverts are the reverts in the window.
func (h *history) flap(f *field, t *turn, reverts []time.Time) Finding {
	return Finding{
		Kind: Flap, Object: h.object, Path: slices.Clone(f.path),
		Sides: []Participant{{Side: t.side, Value: t.value.text}, {Side: t.side, Value: t.previous.text}},
		Since: reverts[0], Last: reverts[len(reverts)-1], Returns: len(reverts),
	}
}

func (h *history) idleFinding(side Side, times []time.Time) Finding {
	return Finding{
		Kind: IdleWriter, Object: h.object, Sides: []Participant{{Side: side}},
		Since: times[0], Last: times[len(times)-1], Returns: len(times),
	}
}
