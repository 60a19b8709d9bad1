package typed_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// FuzzTreesAndSets does every operation on any trees with any set of paths: sets
// need not fit the value, as they come from what a client stored. Nothing panics
// nor changes what it is given, and a few laws hold.
func FuzzTreesAndSets(f *testing.F) {
	for _, seed := range [][3]string{
		{`{"s":"a","set":["a","b"]}`, `{"s":1}`, `{"f:s":{},"f:set":{"v:\"a\"":{},"k:{\"a\":1}":{},"i:0":{}}}`},
		{`{"list":[{"name":"a"},{"name":"a"},{}]}`, `{"list":{"name":[]}}`,
			`{"f:list":{".":{},"k:{\"name\":\"a\"}":{".":{},"f:name":{"f:x":{}}}}}`},
		{`[{"s":"a","named":[{"name":"b","port":1}]}]`, `null`,
			`{"k:{\"s\":\"a\"}":{"f:named":{"k:{\"name\":\"b\"}":{"f:port":{}}}}}`},
		{`{"x":{"named":[{"name":"a","port":1}]}}`, `[]`, `{"f:x":{"f:named":{"k:{\"name\":\"a\"}":{"f:port":{}}}}}`},
		{`{"s":["a"]}`, `null`, `{"f:s":{"v:\"a\"":{}}}`},
		{`{"set":[{},{}]}`, `null`, `{"f:set":{"v:\"a\"":{},"v:\"b\"":{},"v:\"c\"":{}}}`},
		{`{"named":[{"name":"a"}]}`, `null`,
			`{"f:named":{"k:{\"name\":\"b\"}":{},"k:{\"name\":\"c\"}":{},"v:{\"name\":\"a\"}":{}}}`},
		{`[[],{},null]`, `null`, `{"i:0":{"f:a":{}}}`},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	roots := &typed.List{Kind: typed.KeyedList, Elem: root, Keys: []string{"s"}}
	types := []*typed.Type{root, typed.Deduced(), typed.UntypedAtomic(), {}, {List: roots},
		{List: roots, Map: &typed.Map{Elem: str}}}
	f.Fuzz(func(t *testing.T, left, right, fields string) {
		var a, b any
		if utiljson.Unmarshal([]byte(left), &a) != nil || utiljson.Unmarshal([]byte(right), &b) != nil {
			return
		}
		set, err := fieldpath.Parse([]byte(fields), fieldpath.Lenient)
		if err != nil {
			return
		}
		given := runtime.DeepCopyJSONValue([]any{a, b})
		for _, ty := range types {
			_ = ty.Validate(a, typed.Rules{})
			_, _ = ty.Merge(a, b)
			_, _ = typed.Canonical(nil).Merge(ty, a, b)
			_, _ = ty.DropUnknown(a, b)
			_, _ = ty.Extract(a, set, true), ty.RemoveToNull(a, set)
			_, _ = ty.Apply(a, b, typed.Owned{Tree: set.Tree()}, typed.ApplyOptions{Unowned: set, Compare: true})
			requireTwins(t, ty, a, b, set, typed.ApplyOptions{Compare: true})
			requireGuesses(t, ty, a, b)
			if _, isMap := a.(map[string]any); isMap {
				owners := []*fieldpath.Set{ty.FieldSet(b), ty.FieldSet(a).Difference(set)}
				requirePruned(t, ty, a, set, set.Difference(owners[0]), owners, "prune")
				requirePruned(t, ty, a, ty.FieldSet(a), ty.FieldSet(a).Difference(owners[0]), owners, "prune all")
			}
			owned := ty.FieldSet(a)
			require.True(t, ty.Compare(a, a).Unchanged())
			require.True(t, ty.Compare(a, runtime.DeepCopyJSONValue(a)).Unchanged(), "equal values do not differ")
			require.True(t, typed.Canonical(nil).Compare(ty, a, b).Modified.Difference(ty.Compare(a, b).Modified).Empty(),
				"what means the same is not modified")
			for _, s := range []*fieldpath.Set{set, owned} {
				less := ty.Remove(a, s)
				require.True(t, typed.Equal(less, ty.Remove(less, s)), "what is removed is removed")
				require.True(t, ty.Reconcile(s).Equal(ty.Reconcile(ty.Reconcile(s))), "what is reconciled is reconciled")
				if ty.IsReconciled(s.Tree()) {
					require.True(t, ty.Reconcile(s).Equal(s), "what is reconciled stays")
				}
				finder := typed.Finder{}
				for p, pair := range finder.Pairs(ty, s, a, b) {
					x, _ := ty.Get(a, p)
					y, _ := ty.Get(b, p)
					require.Equal(t, [2]any{x, y}, pair, "as Get has it")
				}
			}
		}
		require.Equal(t, given, any([]any{a, b}), "an operation changed what it was given")
	})
}
