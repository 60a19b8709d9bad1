package conformance_test

import (
	"encoding/binary"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/internal/gostruct"
	"github.com/tenure-ssa/tenure/internal/oracle"
	"github.com/tenure-ssa/tenure/internal/values"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// FuzzStructs makes random objects of a Go type of k8s.io/api, and checks that reading them in place, comparing parts
// of them, and writing to them have the same results as for plain trees. The seeds contain each type three times.
func FuzzStructs(f *testing.F) {
	require.Greater(f, len(kinds), 300)
	for i := range kinds {
		for n := range uint64(3) {
			f.Add(uint16(i), binary.BigEndian.AppendUint64(nil, (3*uint64(i)+n)*0x9e3779b97f4a7c15))
		}
	}
	f.Fuzz(func(t *testing.T, kind uint16, data []byte) {
		if len(data) > 1<<12 {
			return // more bytes take time, and only seed random numbers
		}
		m := newMaker(kinds[int(kind)%len(kinds)], data)
		old := m.object()
		updated := m.changed(old, 1+m.rand.Intn(20))
		checkTree(t, old)
		checkCompare(t, m, old, updated)
		checkCompare(t, m, old, old.DeepCopyObject())
		if s, ok := newServer(m.kind); ok {
			checkWrites(t, s, oracle.NewGen(data))
		}
	})
}

// checkTree compares all ways to read an object with upstream's tree of the object.
func checkTree(t *testing.T, obj runtime.Object) {
	want, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	got, ownErr := gostruct.Tree(obj)
	require.Equal(t, err == nil, ownErr == nil, "upstream: %v, ours: %v", err, ownErr)
	if err != nil {
		return
	}
	if !reflect.DeepEqual(want, got) {
		t.Fatalf("upstream's tree: %s\nours:            %s", oracle.JSON(want), oracle.JSON(got))
	}
	back := reflect.New(reflect.TypeOf(obj).Elem()).Interface()
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(want, back))
	decoded := reflect.New(reflect.TypeOf(obj).Elem()).Interface()
	require.NoError(t, gostruct.Decode(want, decoded))
	require.Equal(t, back, decoded, "%s", oracle.JSON(want))
}

// checkCompare checks that comparing only the differing parts of two Go structs has the same result as comparing their
// trees.
func checkCompare(t *testing.T, m *maker, old, updated runtime.Object) {
	oldFull, err := runtime.DefaultUnstructuredConverter.ToUnstructured(old)
	if err != nil {
		return
	}
	nowFull, err := runtime.DefaultUnstructuredConverter.ToUnstructured(updated)
	if err != nil {
		return
	}
	typ := typeFor(m.kind)
	if typ.Validate(oldFull, lenient) != nil || typ.Validate(nowFull, lenient) != nil {
		typ = typed.Deduced() // Compare requires valid values
	}
	before, after, err := gostruct.Diff(typ, old, updated)
	require.NoError(t, err)
	require.Equal(t, typed.Equal(oldFull, nowFull), typed.Equal(before, after))
	for name, semantics := range map[string]*typed.Semantics{"compatible": nil, "canonical": typed.Canonical(nil)} {
		want, got := semantics.Compare(typ, oldFull, nowFull), semantics.Compare(typ, before, after)
		require.True(t, sameComparison(want, got), "%s: old: %s\nnow: %s\nwant: %v\ngot:  %v",
			name, oracle.JSON(oldFull), oracle.JSON(nowFull), want, got)
	}
	empty := reflect.New(reflect.TypeOf(updated).Elem()).Interface().(runtime.Object)
	empty.GetObjectKind().SetGroupVersionKind(updated.GetObjectKind().GroupVersionKind())
	for _, base := range []runtime.Object{empty, old} {
		added, isAdded := gostruct.Added(typ, base, updated, managedfields.Unowned(), nil)
		full, err := runtime.DefaultUnstructuredConverter.ToUnstructured(base)
		require.NoError(t, err)
		want, ok := values.CompareAndValidate(nil, typ, managedfields.With(full, nil), managedfields.With(nowFull, nil))
		if isAdded {
			require.True(t, ok, "now: %s", oracle.JSON(nowFull))
			set, err := fieldpath.Parse(added.GetRawBytes())
			require.NoError(t, err)
			require.Equal(t, string(set.AppendJSON(nil)), added.GetRawString())
			want = want.Map(func(s *fieldpath.Set) *fieldpath.Set { return s.Difference(managedfields.Unowned()) })
			require.True(t, sameComparison(want, typed.Comparison{Added: set}), "old: %s\nnow: %s\nwant: %v\ngot:  %v",
				oracle.JSON(full), oracle.JSON(nowFull), want, set)
		}
	}

	before, after, err = gostruct.Diff(typ, old, updated, "metadata", "managedFields")
	require.NoError(t, err)
	want, wantOK := values.CompareAndValidate(nil, typ, managedfields.With(oldFull, nil), managedfields.With(nowFull, nil))
	got, ok := values.CompareAndValidate(nil, typ, before, after)
	require.Equal(t, wantOK, ok)
	require.True(t, sameComparison(want, got), "without managed fields: old: %s\nnow: %s", oracle.JSON(oldFull), oracle.JSON(nowFull))
}

var lenient = typed.Rules{AllowDuplicates: true, AllowUnknown: true}

func sameComparison(a, b typed.Comparison) bool {
	return a.Added.Equal(b.Added) && a.Modified.Equal(b.Modified) && a.Removed.Equal(b.Removed)
}
