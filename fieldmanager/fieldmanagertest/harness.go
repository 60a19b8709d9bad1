package fieldmanagertest

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/trees"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// TB is the part of *testing.T that a harness needs.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	FailNow()
}

// Harness has one object that managers write to. It is not safe for concurrent use.
type Harness struct {
	t      TB
	server *server
	state  state
}

// Option configures a [Harness].
type Option func(*server) error

// New returns a harness without an object; the first write creates it. By default, the object has the built-in kind of
// the first write.
func New(t TB, options ...Option) *Harness {
	t.Helper()
	h := &Harness{t: t, server: newServer()}
	h.Define(options...)
	return h
}

// WithCRD makes the object a custom resource. crd is its CustomResourceDefinition: YAML or JSON, or an object.
func WithCRD(crd any) Option {
	return func(s *server) error {
		tree, err := decode(crd)
		if err != nil {
			return err
		}
		return s.define(tree)
	}
}

// WithSchema makes the object a Thing in the group example.dev, at the given versions, by default v1. properties are
// the schemas of its fields in YAML, as in a CustomResourceDefinition. If there is a field called status, the type has
// a status subresource.
func WithSchema(properties string, versions ...string) Option {
	return func(s *server) error {
		tree, err := decode(properties)
		if err != nil {
			return err
		}
		return s.define(thing(tree, versions))
	}
}

// WithDeduced gives the object a kind without a schema: all maps are granular, all lists atomic. The first write
// determines the kind, which has no subresources.
func WithDeduced() Option {
	return func(s *server) error {
		s.types, s.crd, s.replicas = deduced{}, nil, nil
		return nil
	}
}

// WithConverter sets the converter between versions; the default is fieldmanager.NoneConverter.
func WithConverter(c fieldmanager.Converter) Option {
	return func(s *server) error {
		s.converter = c
		return nil
	}
}

// Define changes the type of the object, or its converter. The object and its managed fields do not change.
func (h *Harness) Define(options ...Option) {
	h.t.Helper()
	for _, option := range options {
		h.must(option(h.server))
	}
}

// Store replaces the stored object with obj, without a manager. It adds the fields that a server sets in a stored
// object.
func (h *Harness) Store(obj any) {
	h.t.Helper()
	st, err := h.server.store(h.state, obj)
	h.must(err)
	h.state = st
}

// Do makes a write and returns its result.
func (h *Harness) Do(w Write) Result {
	h.t.Helper()
	st, out := h.server.do(h.state, w)
	h.state = st
	return out.withObject(st)
}

// Live returns a copy of the object; nil before it is created.
func (h *Harness) Live() *unstructured.Unstructured { return h.state.object() }

// Owners returns the owners of a path of the object, in the order of the entries. path has the syntax of
// [fieldpath.ParsePath], such as .spec.ports[name="http"].port.
func (h *Harness) Owners(path string) []managedfields.Key {
	h.t.Helper()
	entries, err := h.state.entries()
	h.must(err)
	want, err := fieldpath.ParsePath(path)
	h.must(err)
	var out []managedfields.Key
	for _, e := range entries {
		if e.Owned().Has(want) {
			out = append(out, e.Key)
		}
	}
	return out
}

// RequireOwner fails the test unless exactly the given managers own a path, with any operation. Without managers, it
// fails if the path has an owner.
func (h *Harness) RequireOwner(path string, managers ...string) {
	h.t.Helper()
	got, want := sets.New[string](), sets.New(managers...)
	for _, owner := range h.Owners(path) {
		got.Insert(owner.Manager)
	}
	if !got.Equal(want) {
		h.t.Errorf("%s is owned by %s, want %s", path, sets.List(got), sets.List(want))
		h.t.FailNow()
	}
}

// must ends the test if the harness is misused.
func (h *Harness) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Errorf("harness: %v", err)
		h.t.FailNow()
	}
}

// Result is the result of a write.
type Result struct {
	// Object is a copy of the stored object after the write, even if the write was rejected; nil if there is no object.
	Object *unstructured.Unstructured
	// ManagedFields are the entries of Object.
	ManagedFields managedfields.Entries
	// Conflicts are the conflicts that caused the rejection of an apply. It is nil if the write succeeded (forced
	// applies, too), or was rejected for another reason.
	Conflicts conflicts.Conflicts
	// Err is the error of the write, which may be Conflicts; nil if it succeeded.
	Err error
	// Changed reports whether anything was stored.
	Changed bool
	// Warnings are the engine's warnings for the host.
	Warnings []fieldmanager.Warning
}

// state is the object between two writes. It is a value: a write returns a new state, and never changes live in place.
type state struct {
	live   map[string]any // nil before it is created
	writes int            // number of writes so far, stored or not; determines the time
	stored int            // the resourceVersion
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

// withObject returns a result with copies of the object and its entries.
func (r Result) withObject(st state) Result {
	r.Object = st.object()
	r.ManagedFields, _ = st.entries() // entries that can't be decoded are only in Object
	return r
}
