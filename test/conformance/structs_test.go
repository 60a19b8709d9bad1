package conformance_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/internal/gostruct"
	"github.com/tenure-ssa/tenure/internal/oracle"
	"github.com/tenure-ssa/tenure/typed"
)

// FuzzStructs makes objects of a Go type of k8s.io/api out of bytes, and checks
// that they are the same values read in place, compared in part, and written to,
// as they are as plain trees. The seeds have every type three times.
func FuzzStructs(f *testing.F) {
	require.Greater(f, len(kinds), 300)
	for i := range kinds {
		for n := range uint64(3) {
			f.Add(uint16(i), binary.BigEndian.AppendUint64(nil, (3*uint64(i)+n)*0x9e3779b97f4a7c15))
		}
	}
	f.Fuzz(func(t *testing.T, kind uint16, data []byte) {
		if len(data) > 1<<12 {
			return // filling costs time, and the bytes are a seed beyond any field
		}
		m := newMaker(kinds[int(kind)%len(kinds)], data)
		old := m.object()
		now := m.changed(old, 1+m.rand.Intn(20))
		checkTree(t, old)
		checkCompare(t, m, old, now)
		checkCompare(t, m, old, old.DeepCopyObject())
		if s, ok := newServer(m.kind); ok {
			checkWrites(t, s, oracle.NewGen(data))
		}
	})
}

// checkTree checks all ways to read an object against upstream's tree of it.
func checkTree(t *testing.T, obj runtime.Object) {
	want, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	node, ownErr := gostruct.Of(obj)
	require.NoError(t, ownErr)
	got, ownErr := node.Tree()
	require.Equal(t, err == nil, ownErr == nil, "upstream: %v, ours: %v", err, ownErr)
	if err != nil {
		return
	}
	if !reflect.DeepEqual(any(want), got) {
		t.Fatalf("upstream's tree: %s\nours:            %s", text(want), text(got))
	}
	require.True(t, gostruct.EqualJSON(node, want), "%s", text(want))
	if walked := walk(t, node); !reflect.DeepEqual(any(want), walked) {
		t.Fatalf("upstream's tree: %s\nwalked:          %s", text(want), text(walked))
	}
}

// walk is the slow twin of Tree: it makes the tree through the methods of nodes.
func walk(t *testing.T, v gostruct.Value) any {
	n, ok := v.(gostruct.Node)
	if !ok {
		return v
	}
	if n.IsList() {
		out := make([]any, n.Len())
		for i := range out {
			out[i] = walk(t, n.At(i))
		}
		return out
	}
	out := map[string]any{}
	for name, entry := range n.Entries() {
		out[name] = walk(t, entry)
		got, ok := n.Get(name)
		require.True(t, ok, name)
		if _, container := got.(gostruct.Node); !container {
			require.Equal(t, entry, got, name)
		}
	}
	require.Len(t, out, n.Len())
	return out
}

// checkCompare checks that comparing two Go structs in place is comparing their trees.
func checkCompare(t *testing.T, m *maker, old, now runtime.Object) {
	oldFull, err := runtime.DefaultUnstructuredConverter.ToUnstructured(old)
	if err != nil {
		return
	}
	nowFull, err := runtime.DefaultUnstructuredConverter.ToUnstructured(now)
	if err != nil {
		return
	}
	typ := typeFor(m.kind)
	if typ.Validate(oldFull, lenient) != nil || typ.Validate(nowFull, lenient) != nil {
		typ = typed.Deduced() // Compare is for valid values only
	}
	oldNode, err := gostruct.Of(old)
	require.NoError(t, err)
	nowNode, err := gostruct.Of(now)
	require.NoError(t, err)
	for _, row := range []struct{ old, now any }{{oldNode, nowNode}, {oldFull, nowNode}, {oldNode, nowFull}} {
		want, got := typ.Compare(oldFull, nowFull), typ.Compare(row.old, row.now)
		require.True(t, sameComparison(want, got), "%T, %T: old: %s\nnow: %s\nwant: %v\ngot:  %v",
			row.old, row.now, text(oldFull), text(nowFull), want, got)
	}
	require.Equal(t, typed.Equal(oldFull, nowFull), typed.Equal(oldNode, nowNode))

	except := []string{"metadata", "managedFields"}
	want, wantOK := semantics(nil).CompareAndValidate(typ, unmanaged(oldFull), unmanaged(nowFull))
	got, ok := semantics(nil).CompareAndValidate(typ, oldNode, nowNode, except...)
	require.Equal(t, wantOK, ok)
	require.True(t, sameComparison(want, got), "without managed fields: old: %s\nnow: %s", text(oldFull), text(nowFull))

	empty, err := gostruct.Of(reflect.New(reflect.TypeOf(now).Elem()).Interface())
	require.NoError(t, err)
	for _, base := range []gostruct.Node{empty, oldNode} {
		want, wantOK := semantics(nil).CompareAndValidate(typ, base, nowNode, except...)
		for _, before := range []gostruct.Node{oldNode, nowNode} {
			guess := typ.GuessAdded(typ.Compare(base, before).Added)
			got, ok := semantics(nil).CompareGuessed(typ, base, nowNode, guess, except...)
			require.Equal(t, wantOK, ok)
			require.True(t, sameComparison(want, got), "old: %s, now: %s", text(oldFull), text(nowFull))
		}
	}

	canonical := typed.Canonical(nil)
	want, got = canonical.Compare(typ, oldFull, nowFull), canonical.Compare(typ, oldNode, nowNode)
	require.True(t, sameComparison(want, got), "canonical: old: %s\nnow: %s\nwant: %v\ngot:  %v",
		text(oldFull), text(nowFull), want, got)
}

type semantics = *typed.Semantics

var lenient = typed.Rules{Duplicates: true, Unknown: true}

func sameComparison(a, b typed.Comparison) bool {
	return a.Added.Equal(b.Added) && a.Modified.Equal(b.Modified) && a.Removed.Equal(b.Removed)
}

func unmanaged(tree map[string]any) map[string]any {
	metadata, ok := tree["metadata"].(map[string]any)
	if !ok {
		return tree
	}
	out, copied := maps.Clone(tree), maps.Clone(metadata)
	delete(copied, "managedFields")
	out["metadata"] = copied
	return out
}

func text(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(data)
}
