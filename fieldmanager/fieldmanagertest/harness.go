package fieldmanagertest

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/trees"
	"github.com/tenure-ssa/tenure/managedfields"
)

// TB is what a harness needs of a test; *testing.T is one.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	FailNow()
}

// Harness holds one object that managers write to. It is not safe for
// concurrent use.
type Harness struct {
	t      TB
	server *server
	state  state
}

// Option configures a [Harness].
type Option func(*server) error

// New returns a harness without an object: the first write creates it. Without
// an option that says otherwise, the object is of the built-in kind that the
// first write names.
func New(t TB, options ...Option) *Harness {
	t.Helper()
	h := &Harness{t: t, server: newServer()}
	h.Define(options...)
	return h
}

// WithCRD makes the object a custom resource. crd is the definition, in YAML or
// JSON or as an object.
func WithCRD(crd any) Option {
	return func(s *server) error {
		tree, err := decode(crd)
		if err != nil {
			return err
		}
		return s.define(tree)
	}
}

// WithSchema makes the object one of kind Thing in the group example.dev, at the
// versions given, or v1. properties are the schemas of its fields by name, in
// YAML as in a CustomResourceDefinition; one called status makes a subresource.
func WithSchema(properties string, versions ...string) Option {
	return func(s *server) error {
		tree, err := decode(properties)
		if err != nil {
			return err
		}
		return s.define(thing(tree, versions))
	}
}

// WithConverter sets how the object is converted between versions;
// fieldmanager.NoneConverter without it.
func WithConverter(c fieldmanager.Converter) Option {
	return func(s *server) error {
		s.converter = c
		return nil
	}
}

// Define changes the type of the object, or how it is converted, from here on.
// The object and its managed fields stay as they are.
func (h *Harness) Define(options ...Option) {
	h.t.Helper()
	h.must(h.server.configure(options...))
}

// Store makes obj the object as it is stored, whoever wrote it; it gets what a
// server gives a stored object and it lacks.
func (h *Harness) Store(obj any) {
	h.t.Helper()
	st, err := h.server.store(h.state, obj)
	h.must(err)
	h.state = st
}

// Do does a write and says what became of it.
func (h *Harness) Do(w Write) Result {
	h.t.Helper()
	st, out := h.server.do(h.state, w)
	h.state = st
	return out.result(st)
}

// Live returns a copy of the object, nil before it is created.
func (h *Harness) Live() *unstructured.Unstructured { return h.state.object() }

// Owners returns who owns a path of the object, in the order of the entries.
// path is written as in a conflict: .spec.ports[name="http"].port.
func (h *Harness) Owners(path string) []managedfields.Key {
	h.t.Helper()
	entries, err := h.state.entries()
	h.must(err)
	var out []managedfields.Key
	for _, e := range entries {
		for p := range e.Fields.All() {
			if p.String() == path {
				out = append(out, e.Key)
				break
			}
		}
	}
	return out
}

// RequireOwner requires that just these managers own a path, through whatever
// operations; with none named, that nobody does.
func (h *Harness) RequireOwner(path string, managers ...string) {
	h.t.Helper()
	got := []string{}
	for _, owner := range h.Owners(path) {
		got = append(got, owner.Manager)
	}
	slices.Sort(got)
	got = slices.Compact(got)
	want := slices.Sorted(slices.Values(managers))
	if !slices.Equal(got, want) {
		h.t.Errorf("%s is owned by [%s], want [%s]", path, strings.Join(got, " "), strings.Join(want, " "))
		h.t.FailNow()
	}
}

// must ends the test when the harness itself was used wrongly.
func (h *Harness) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Errorf("harness: %v", err)
		h.t.FailNow()
	}
}

// Result is what became of a write.
type Result struct {
	// Object is a copy of the object as it is stored after the write, whether
	// that was refused or not; nil when there is none.
	Object *unstructured.Unstructured
	// ManagedFields are the entries of Object.
	ManagedFields managedfields.Entries
	// Conflicts are why an apply was refused; nil when it was not, or for
	// another reason.
	Conflicts conflicts.Conflicts
	// Err is why the write was refused, Conflicts among it; nil when it was not.
	Err error
	// Changed reports whether anything was written.
	Changed bool
	// Warnings is what the engine told the host.
	Warnings []fieldmanager.Warning
}

// state is the object between two writes. It is a value: a write returns
// another, and live is never changed in place.
type state struct {
	live   map[string]any // nil before it is created
	writes int            // so far, stored or not: the clock
	stored int            // the resource version
}

func (st state) object() *unstructured.Unstructured {
	if st.live == nil {
		return nil
	}
	return &unstructured.Unstructured{Object: trees.Plain(st.live).(map[string]any)}
}

func (st state) entries() (managedfields.Entries, error) {
	metadata, _ := st.live["metadata"].(map[string]any)
	list, _ := metadata["managedFields"].([]any)
	return managedfields.DecodeTree(list)
}

// outcome is a Result without copies of the object.
type outcome struct {
	conflicts conflicts.Conflicts
	err       error
	changed   bool
	warnings  []fieldmanager.Warning
}

func (o outcome) result(st state) Result {
	// Entries that can't be decoded are in Object all the same.
	entries, _ := st.entries()
	return Result{st.object(), entries, o.conflicts, o.err, o.changed, o.warnings}
}
