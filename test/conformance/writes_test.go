package conformance_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/tenure-ssa/tenure/compat/apimachinery"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/oracle"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// fieldManager is implemented by upstream's field manager and by Tenure's.
type fieldManager interface {
	Apply(live, applied runtime.Object, manager string, force bool) (runtime.Object, error)
	Update(live, updated runtime.Object, manager string) (runtime.Object, error)
}

// server has objects of one kind of k8s.io/api. Tests send random writes to it.
type server struct {
	kind   schema.GroupVersionKind
	fields map[string]*spec.Schema
	now    time.Time
}

var upstreamTypes = applyconfigurations.NewTypeConverter(clientscheme.Scheme)

// newServer returns a server for a kind; ok is false if the kind has no objects or no schema.
func newServer(kind schema.GroupVersionKind) (s *server, ok bool) {
	s = &server{kind: kind, fields: map[string]*spec.Schema{}, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	empty := s.empty()
	t := openapi.Builtin().TypeFor(kind)
	if _, isObject := empty.(metav1.Object); !isObject || t == nil {
		return nil, false
	}
	if _, err := upstreamTypes.ObjectToTyped(empty); err != nil {
		return nil, false
	}
	all, _ := schemaFor(reflect.TypeOf(empty), t, 12)
	for name, field := range all.Properties {
		if name != "metadata" && name != "apiVersion" && name != "kind" {
			s.fields[name] = &field
		}
	}
	return s, true
}

func (s *server) empty() runtime.Object {
	obj, err := scheme.New(s.kind)
	if err != nil {
		panic(err) // kinds come from the scheme
	}
	obj.GetObjectKind().SetGroupVersionKind(s.kind)
	return obj
}

// asStruct converts a tree to a Go struct, as a server decodes it.
func (s *server) asStruct(tree map[string]any) (runtime.Object, error) {
	obj := s.empty()
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(tree, obj)
	obj.GetObjectKind().SetGroupVersionKind(s.kind)
	return obj, err
}

// write is a random write: an apply of a tree, or an update with a Go struct.
type write struct {
	apply   bool
	manager string
	force   bool
	tree    map[string]any
	object  runtime.Object
}

func (w write) String() string {
	return fmt.Sprintf("apply=%v by %q, force=%v: %s", w.apply, w.manager, w.force, oracle.JSON(w.tree))
}

// by runs the write with the field manager m. It does not change the write or live.
func (w write) by(m fieldManager, live runtime.Object) (runtime.Object, error) {
	if w.apply {
		return m.Apply(live, &unstructured.Unstructured{Object: runtime.DeepCopyJSON(w.tree)}, w.manager, w.force)
	}
	return m.Update(live, w.object.DeepCopyObject(), w.manager)
}

// play sends random writes to objects. do returns the object to store, or nil if the write was rejected.
func (s *server) play(t *testing.T, g *oracle.Gen, do func(w write, live runtime.Object) runtime.Object) {
	g.Validated = true
	objects := make([]runtime.Object, 1+g.Objects)
	intents := map[string]map[string]any{}
	var w write
	for range 8 {
		if g.Done() {
			return
		}
		for i, live := range objects {
			if i == 0 || !w.apply || g.Chance(3) {
				var ok bool
				if w, ok = s.write(t, g, live, intents); !ok {
					w = write{}
					continue
				}
			}
			if live == nil {
				live = s.empty()
			}
			s.now = s.now.Add(time.Hour)
			if out := do(w, live); out != nil {
				out, err := s.asStruct(plain(t, out).Object)
				require.NoError(t, err)
				out.(metav1.Object).SetName("thing")
				out.(metav1.Object).SetUID("uid")
				objects[i] = out
			}
		}
	}
}

// write returns a random write; ok is false if no client could send it.
func (s *server) write(
	t *testing.T, g *oracle.Gen, live runtime.Object, intents map[string]map[string]any,
) (w write, ok bool) {
	w = write{apply: g.Intn(3) > 0, manager: g.Manager(), force: g.Intn(2) == 0}
	var tree map[string]any
	if live != nil {
		tree = plain(t, live).Object
	}
	if w.apply {
		w.tree = g.Intent(intents[w.manager], tree, s.fields)
		intents[w.manager] = w.tree
	} else if w.tree = g.Update(tree, s.fields); g.Chance(8) {
		delete(w.tree["metadata"].(map[string]any), "managedFields")
	}
	w.tree["apiVersion"], w.tree["kind"] = s.kind.ToAPIVersionAndKind()
	object, err := s.asStruct(w.tree)
	if err != nil {
		return w, false
	}
	// Upstream compares atomic lists of Go structs with DeepEqual, so an empty slice that JSON omits is a change. A tree
	// can't contain such a slice, so the object goes through a tree.
	w.object, err = s.asStruct(plain(t, object).Object)
	return w, err == nil
}

// checkWrites sends random writes to Go structs, with upstream's and with Tenure's field manager, and to unstructured
// objects, with Tenure's. It checks that all results have the same object, managed fields and errors.
//
// A Go struct can't have an empty map or list in a field with omitempty. So unstructured results are compared after
// conversion to Go structs.
func checkWrites(t *testing.T, s *server, g *oracle.Gen) {
	clock := func(o *fieldmanager.Options) { o.Clock = func() time.Time { return s.now } }
	host := host{server: s}
	none := schema.GroupVersion{}
	up, err := managedfields.NewDefaultFieldManager(upstreamTypes, host, host, host, s.kind, none, "", nil)
	require.NoError(t, err)
	own, err := apimachinery.NewDefaultFieldManager(upstreamTypes, host, host, host, s.kind, none, "", nil, clock)
	require.NoError(t, err)
	trees, err := fieldmanager.New(s.kind, openapi.Builtin(),
		writetest.Options(fieldmanager.Options{Empty: plain(t, s.empty())}, clock))
	require.NoError(t, err)
	s.play(t, g, func(w write, live runtime.Object) runtime.Object {
		want, now, wantErr := oracle.AtOnce(func() (runtime.Object, error) { return w.by(up, live.DeepCopyObject()) })
		s.now = now
		before := oracle.JSON(live)
		got, err := w.by(own, live)
		differ := func(err error) {
			require.NoError(t, err, "%v: %s\nlive: %s", s.kind, w, before)
		}
		require.Equal(t, before, oracle.JSON(live), "live was changed by %s", w)
		var applied map[string]any
		if w.apply {
			applied = w.tree
		}
		if oracle.ToleratesLive(openapi.Builtin().TypeFor(s.kind), wantErr, err, plain(t, live).Object, applied) {
			return nil
		}
		differ(oracle.CompareErrors(wantErr, err))
		if wantErr != nil || err != nil {
			return nil
		}
		if up, own := plain(t, want), plain(t, got); oracle.KeepName(up, own) {
			differ(oracle.Compare(up, own))
			return got
		}
		compare := func(got runtime.Object) {
			if !w.apply {
				differ(oracle.Compare(plain(t, want), plain(t, got)))
				return
			}
			intent := oracle.Intent{Tree: w.tree, Type: openapi.Builtin().TypeFor(s.kind), Struct: true}
			intent.Owned, err = trees.FieldSet(t.Context(), &unstructured.Unstructured{Object: w.tree})
			require.NoError(t, err)
			up, own := plain(t, want), plain(t, got)
			err := oracle.CompareApply(up, own, intent)
			if err != nil && !intent.AppliedAgain(plain(t, live).Object, w.manager, "", up.Object, own.Object) {
				differ(err)
			}
		}
		compare(got)

		inTree := write{apply: w.apply, manager: w.manager, force: w.force, tree: w.tree, object: plain(t, w.object)}
		gotTree, err := inTree.by(writetest.Manager{FieldManager: trees}, plain(t, live))
		differ(err)
		back, err := s.asStruct(gotTree.(*unstructured.Unstructured).Object)
		differ(err)
		compare(back)
		return want
	})
}

// host makes Go structs of trees, defaults nothing, and creates empty objects.
type host struct {
	oracle.AsItIs
	*server
}

func (h host) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	if u, ok := in.(*unstructured.Unstructured); ok {
		return h.asStruct(u.Object)
	}
	return in, nil
}

func (h host) New(schema.GroupVersionKind) (runtime.Object, error) { return h.empty(), nil }

// plain converts obj to an unstructured object, with upstream's converter.
func plain(t *testing.T, obj runtime.Object) *unstructured.Unstructured {
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	require.NoError(t, err)
	return &unstructured.Unstructured{Object: tree}
}
