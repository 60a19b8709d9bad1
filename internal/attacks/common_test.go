package attacks_test

import (
	"errors"
	"fmt"
	gomaps "maps"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

type tree = map[string]any

var (
	kind   = schema.GroupVersionKind{Group: "example.dev", Version: "v1", Kind: "Thing"}
	text   = &typed.Type{Scalar: typed.String}
	number = &typed.Type{Scalar: typed.Numeric}
	amount = &typed.Type{Scalar: typed.Untyped, Format: "quantity"}
)

// declare adds a field to a struct.
func declare(t *typed.Type, name string, f typed.Field) {
	fields := gomaps.Collect(t.Map.Fields())
	fields[name] = f
	t.Map = typed.NewMap(fields, nil).WithAtomic(t.Map.IsAtomic())
}

func keyed(elem *typed.Type) *typed.Type {
	return &typed.Type{List: typed.KeyedList(elem, "name")}
}

func freeMap(elem *typed.Type) *typed.Type { return &typed.Type{Map: typed.NewMap(nil, elem)} }

// bare has declared fields and items without a type.
var bare = func() *typed.Type {
	spec := &typed.Type{Map: typed.NewMap(map[string]typed.Field{
		"any": {}, "list": {Type: keyed(nil)}, "map": {Default: tree{}, Nullable: true}, "number": {Default: int64(1)},
	}, nil)}
	return writetest.StructOf(map[string]*typed.Type{"spec": spec})
}()

// thing has every topology.
var thing = func() *typed.Type {
	// A list of lists of lists, of any depth.
	nested := writetest.StructOf(map[string]*typed.Type{"name": text, "value": text})
	declare(nested, "list", typed.Field{Type: keyed(nested)})
	// A struct that contains itself.
	self := writetest.StructOf(nil)
	declare(self, "self", typed.Field{Type: self})
	declare(self, "map", typed.Field{Type: freeMap(text)})
	return writetest.StructOf(map[string]*typed.Type{
		"apiVersion": text,
		"kind":       text,
		"metadata": writetest.StructOf(map[string]*typed.Type{
			"name": text, "uid": text, "annotations": freeMap(text),
			"managedFields": {List: typed.AtomicList(typed.UntypedAtomic())},
		}),
		"spec": writetest.StructOf(map[string]*typed.Type{
			"any":    typed.Deduced(),
			"list":   keyed(nested),
			"set":    {List: typed.SetList(&typed.Type{Scalar: typed.Untyped})},
			"map":    freeMap(text),
			"maps":   freeMap(freeMap(text)),
			"atomic": typed.UntypedAtomic(),
			"amount": amount,
			"number": number,
			"self":   self,
		}),
	})
}()

// types returns the same type for every version.
type types struct{ of *typed.Type }

func (t types) Type(schema.GroupVersionKind) (*typed.Type, error) { return t.of, nil }

func manager(options ...func(*fieldmanager.Options)) *fieldmanager.FieldManager {
	base := fieldmanager.Options{Clock: func() time.Time { return time.Unix(1e9, 0) }}
	m, err := fieldmanager.New(kind, types{thing}, writetest.Options(base, options...))
	if err != nil {
		panic(err)
	}
	return m
}

// object returns a Thing with a spec.
func object(spec tree) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: tree{
		"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind,
		"metadata": tree{"name": "x"}, "spec": spec,
	}}
}

// stored returns an object as a server would return it, with managed fields.
func stored(obj runtime.Object, entries ...any) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: gomaps.Clone(obj.(*unstructured.Unstructured).Object)}
	metadata := tree{"name": "x", "uid": "u"}
	old, _ := out.Object["metadata"].(tree)
	gomaps.Copy(metadata, old)
	if entries != nil {
		metadata["managedFields"] = entries
	}
	out.Object["metadata"] = metadata
	return out
}

func entry(manager, operation, version string, fields tree) tree {
	return tree{
		"manager": manager, "operation": operation, "apiVersion": version,
		"time": "2020-01-02T03:04:05Z", "fieldsType": "FieldsV1", "fieldsV1": fields,
	}
}

// applied returns a stored Thing with a spec that a manager applied.
func applied(by string, spec tree) *unstructured.Unstructured {
	out, err := writetest.Apply(manager(), nil, object(spec), by, false)
	if err != nil {
		panic(err)
	}
	return stored(out)
}

// apply and update are the operations of most rows.
func apply(m *fieldmanager.FieldManager, live, intent runtime.Object, force bool) func() error {
	return func() error {
		_, err := writetest.Apply(m, live, intent, "alice", force)
		return err
	}
}

func updating(m *fieldmanager.FieldManager, live, updated runtime.Object) func() error {
	return func() error {
		_, err := writetest.Update(m, live, updated, "ctl")
		return err
	}
}

// lists nests n lists, and maps nests n maps.
func lists(n int) any {
	var v any = "x"
	for range n {
		v = []any{v}
	}
	return v
}

func maps(n int) any {
	var v any = "x"
	for range n {
		v = tree{"a": v}
	}
	return v
}

// loop returns a map that contains itself twice, so that it is infinitely deep, and the number of paths in it grows
// exponentially.
func loop() tree {
	m := tree{}
	m["a"], m["b"] = m, m
	return m
}

// bomb returns a map with a few levels that share their content. Written out, it has 2^n values.
func bomb(n int) tree {
	m := tree{"x": "y"}
	for range n {
		m = tree{"a": m, "b": m}
	}
	return m
}

// items returns n items of a keyed list.
func items(n int, value string) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = tree{"name": fmt.Sprintf("item-%07d", i), "value": value}
	}
	return out
}

// all runs several steps, and returns the first error.
func all(steps ...func() error) func() error {
	return func() error {
		for _, step := range steps {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	}
}

// refused returns a step that succeeds if the given step fails with an error that contains want.
func refused(want string, step func() error) func() error {
	return func() error {
		if err := step(); err == nil || !strings.Contains(err.Error(), want) {
			return fmt.Errorf("expected an error with %q, got %w", want, errOr(err))
		}
		return nil
	}
}

func errOr(err error) error {
	if err == nil {
		return errors.New("none")
	}
	return err
}

func check(ok bool, what string) error {
	if !ok {
		return errors.New(what)
	}
	return nil
}

func parse(text string) error {
	_, err := fieldpath.Parse([]byte(text))
	return err
}
