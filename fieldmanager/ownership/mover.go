package ownership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Mover moves ownership in objects of all kinds that its types know. It is safe for concurrent use.
type Mover struct {
	types   fieldmanager.Types
	options func(kind schema.GroupVersionKind, subresource string) fieldmanager.Options
	plans   fieldmanager.PlanOptions
	now     func() time.Time
}

// New returns a Mover. options, which may be nil, returns the server's options for a kind and a subresource ("" for
// the main resource): reset fields and converters. Without a converter, fields of entries at other versions than
// live's can neither be moved nor planned.
func New(types fieldmanager.Types,
	options func(kind schema.GroupVersionKind, subresource string) fieldmanager.Options) *Mover {
	return &Mover{types: types, options: options, now: time.Now}
}

// Clock returns a Mover that dates the entry of an adoption by now, in whole seconds; the default is time.Now. Other
// moves keep the time of the entry that the fields come from. A handover sets no time: its first apply does not
// change the object (spec rule 2.3).
func (m *Mover) Clock(now func() time.Time) *Mover {
	out := *m
	out.now = now
	return &out
}

// Planning returns a Mover that plans [Next] and [Step] with options: how the server compares values, and whether it
// sets defaults. Without it values are compared as JSON, so 1 instead of 1000m looks like a change.
func (m *Mover) Planning(options fieldmanager.PlanOptions) *Mover {
	out := *m
	out.plans = options
	return &out
}

// planning returns how the Mover plans an apply of a manager.
func (m *Mover) planning(manager string) fieldmanager.PlanOptions {
	options := m.plans
	options.Manager = manager
	return options
}

// manager returns the field manager for writes at a version through a subresource.
func (m *Mover) manager(kind schema.GroupVersionKind, version, subresource string) (*fieldmanager.FieldManager, error) {
	gv, err := schema.ParseGroupVersion(version)
	if err != nil {
		return nil, err
	}
	at := gv.WithKind(kind.Kind)
	var options fieldmanager.Options
	if m.options != nil {
		options = m.options(at, subresource)
	}
	options.Subresource = subresource
	return fieldmanager.New(at, m.types, options)
}

// Do makes the moves on live, one after the other. It does not change live; the result shares memory with it.
//
// It returns an error, and moves nothing, if the managed fields of live are malformed; if a move names a manager
// without an entry, a path at which there is nothing to move, or an invalid manager name; or if fields would move to
// an entry of another API version at which they differ. The error has the position of the move, from 1, if there are
// several. ctx goes to the converters.
func (m *Mover) Do(ctx context.Context, live runtime.Object, moves ...Move) (*Result, error) {
	s, err := m.start(ctx, live)
	if err != nil {
		return nil, err
	}
	for i, move := range moves {
		if move == nil {
			err = errors.New("no move")
		} else {
			err = move.do(s)
		}
		if err != nil {
			if len(moves) > 1 {
				err = fmt.Errorf("move %d: %w", i+1, err)
			}
			return nil, err
		}
	}
	return s.result()
}

// state is an object while moves are made on it.
type state struct {
	mover *Mover
	ctx   context.Context
	live  runtime.Object
	bare  runtime.Object // live without managed fields
	kind  schema.GroupVersionKind
	// before are the entries of live, and entries the result of the moves. Entries that can't be decoded are kept or
	// dropped.
	before, entries managedfields.Entries
	// applied is what the appliers applied last, as far as it is known.
	applied map[managedfields.Key]managedfields.Entry
}

func (m *Mover) start(ctx context.Context, live runtime.Object) (*state, error) {
	s := &state{mover: m, ctx: ctx, live: live, applied: map[managedfields.Key]managedfields.Entry{}}
	if live == nil {
		return nil, errors.New("no object")
	}
	var err error
	if s.before, _, err = managedfields.Read(live); err != nil {
		return nil, fmt.Errorf("metadata.managedFields: %w", err)
	}
	s.kind = live.GetObjectKind().GroupVersionKind()
	if s.kind.Version == "" || s.kind.Kind == "" {
		return nil, errors.New("the object has no apiVersion or no kind")
	}
	if s.bare, err = managedfields.Entries(nil).Into(live); err != nil {
		return nil, err
	}
	for i := range s.before {
		e := &s.before[i]
		if _, err := e.Fields(); err == nil && e.Operation == managedfields.Apply {
			s.applied[e.Key] = *e
		}
	}
	s.entries = slices.Clone(s.before)
	return s, nil
}

// readable returns the entries that a move selects and that can be decoded. It is an error if there are none
// (spec rule 14.5).
func (s *state) readable(from managedfields.Key) (readable []managedfields.Entry, err error) {
	keys, err := s.from(from)
	if err != nil {
		return nil, err
	}
	var fault error
	for _, k := range keys {
		e := s.entries.Get(k)
		_, err := e.Fields()
		if err == nil {
			readable = append(readable, *e)
		} else if fault == nil {
			fault = err
		}
	}
	if len(readable) == 0 {
		return nil, fmt.Errorf("%w; it can only be dropped", fault)
	}
	return readable, nil
}

// managerAt returns the field manager of the object's kind at a version.
func (s *state) managerAt(version, subresource string) (*fieldmanager.FieldManager, error) {
	return s.mover.manager(s.kind, version, subresource)
}

// Selects reports whether from, the From of a [Move], selects the entry of a key.
func Selects(from, entry managedfields.Key) bool {
	if from.Manager != entry.Manager {
		return false
	}
	if from.Operation == "" {
		return (from.Subresource == "" || from.Subresource == entry.Subresource) &&
			(from.APIVersion == "" || from.APIVersion == entry.APIVersion)
	}
	return from.Operation == entry.Operation && from.Subresource == entry.Subresource &&
		(from.APIVersion == "" || from.Operation == managedfields.Apply || from.APIVersion == entry.APIVersion)
}

// from returns the keys of the entries that the From of a move selects.
func (s *state) from(k managedfields.Key) ([]managedfields.Key, error) {
	var out []managedfields.Key
	for i := range s.entries {
		if key := s.entries[i].Key; Selects(k, key) {
			out = append(out, key)
		}
	}
	if len(out) == 0 {
		of := ""
		if k.Operation != "" {
			of = fmt.Sprintf(" of an %s", k.Operation)
		}
		if k.APIVersion != "" && k.Operation != managedfields.Apply {
			of += " at " + k.APIVersion
		}
		return nil, fmt.Errorf("manager %q has no entry%s%s", k.Manager, of, through(k.Subresource))
	}
	return out, nil
}

func through(subresource string) string {
	if subresource == "" {
		return ""
	}
	return fmt.Sprintf(" through %q", subresource)
}

// chosen are the fields of a move.
type chosen struct {
	fields *fieldpath.Set
	all    bool
}

// check rejects an empty selection, and fields that are in none of the sets.
func (c chosen) check(whose string, sets ...*fieldpath.Set) error {
	switch {
	case c.all && !c.fields.Empty():
		return errors.New("both all and some fields are chosen")
	case c.all:
		return nil
	case c.fields.Empty():
		return errors.New("no fields are chosen")
	}
	return checkFields(c.fields, whose, sets...)
}

// checkFields rejects paths at which none of the sets has anything.
func checkFields(fields *fieldpath.Set, whose string, sets ...*fieldpath.Set) error {
	for p := range fields.All() {
		if isKeyField(p) {
			return fmt.Errorf("%s: part of the key of its item, with which it goes: name the item, %s", p, p[:len(p)-1])
		}
		found := false
		var inside fieldpath.Path
		for _, set := range sets {
			has, end := reach(set, p)
			found = found || has
			if end != nil {
				inside = end
			}
		}
		switch {
		case found:
		case inside != nil:
			return fmt.Errorf("%s: inside %s, which %s as a whole", p, inside, whose)
		default:
			return fmt.Errorf("%s: nothing there that %s", p, whose)
		}
	}
	return nil
}
