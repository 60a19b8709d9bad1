package fieldmanager_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// fuzzManagers return FieldManagers for a type with every topology, for a built-in type, and for a type without a
// schema.
func fuzzManagers(f *testing.F) []*fieldmanager.FieldManager {
	var out []*fieldmanager.FieldManager
	for _, c := range []struct {
		kind    schema.GroupVersionKind
		types   fieldmanager.Types
		options fieldmanager.Options
	}{
		{schema.GroupVersionKind{Group: "example.dev", Version: "v1", Kind: "Thing"}, thingTypes(f), fieldmanager.Options{}},
		{schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, openapi.Builtin(), fieldmanager.Options{
			Semantics: typed.Canonical(nil), FieldValidation: metav1.FieldValidationIgnore}},
		{schema.GroupVersionKind{Group: "example.dev", Version: "v1", Kind: "Any"}, anyType{}, fieldmanager.Options{
			Defaulter: func(runtime.Object) {}}},
	} {
		c.options.Converter, c.options.Cap = fieldmanager.NoneConverter{}, 2
		c.options.Clock = func() time.Time { return time.Unix(1e9, 0) }
		m, err := fieldmanager.New(c.kind, c.types, c.options)
		require.NoError(f, err)
		out = append(out, m)
	}
	return out
}

// FuzzTrees writes objects that may contain any values anywhere. Nothing panics, arguments do not change, all resulting
// managed fields can be decoded, and the same apply once more changes nothing (spec rules 1.6 and 2.3).
func FuzzTrees(f *testing.F) {
	const (
		head = `{"apiVersion":"example.dev/v1","kind":"Thing","metadata":{"name":"x","uid":"u"`
		free = `{"apiVersion":"example.dev/v1","kind":"Any","metadata":`
		pod  = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"`
		own  = `,"managedFields":[{"manager":"bob","operation":"Update","apiVersion":"example.dev/v2","fieldsType":"FieldsV1","time":"2020-01-02T03:04:05Z","fieldsV1":{"f:spec":{"f:text":{},"f:set":{".":{},"v:\"a\"":{}}}}}]`
	)
	for _, seed := range []struct {
		which             uint8
		live, intent, now string
	}{
		{0, ``, head + `},"spec":{"text":"a","set":["a"],"ports":[{"port":1}]}}`, head + `},"spec":{"text":"b"}}`},
		{0, head + own + `},"spec":{"text":"a","set":["a","a"]}}`, head + `},"spec":{"text":"b","set":["b"]}}`,
			head + `},"spec":{"ports":[{"port":1},{"port":1}]}}`},
		{0, head + `,"managedFields":{}},"spec":[]}`, head + `},"spec":{"text":1}}`, head + `,"managedFields":[{}]}}`},
		{1, pod + `},"spec":{"containers":[{"name":"a","image":"b"}]}}`,
			pod + `},"spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":"1e1000000000"}}}]}}`,
			pod + `},"status":{"phase":null}}`},
		{2, free + `{"name":"x"},"a":[1,{"b":null}]}`, free + `null,"a":{},"b":1e300}`, free + `"x","a":-0}`},
		{3, free + `{"managedFields":[1]}}`, `{}`, `{"metadata":[]}`},
	} {
		f.Add(seed.which, seed.live, seed.intent, seed.now)
	}
	managers := fuzzManagers(f)
	f.Fuzz(func(t *testing.T, which uint8, live, intent, updated string) {
		m := managers[int(which)%len(managers)]
		given := map[string]runtime.Object{}
		for name, text := range map[string]string{"live": live, "intent": intent, "now": updated} {
			var tree map[string]any
			if err := utiljson.Unmarshal([]byte(text), &tree); err == nil && tree != nil {
				given[name] = &unstructured.Unstructured{Object: tree}
			}
		}
		before := map[string]runtime.Object{}
		for name, obj := range given {
			before[name] = obj.DeepCopyObject()
		}

		for _, force := range []bool{false, true} {
			out, err := writetest.Apply(m, given["live"], given["intent"], "alice", force)
			var c conflicts.Conflicts
			if errors.As(err, &c) {
				require.NotEmpty(t, c)
				require.False(t, force, "a forced apply has no conflicts")
				_ = c.Status()
			}
			if err != nil {
				require.NotEmpty(t, err.Error())
				continue
			}
			readable(t, out)
			again, err := writetest.Apply(m, out, given["intent"], "alice", false)
			require.NoError(t, err, "once more")
			require.Equal(t, contents(out), contents(again), "the same apply once more does nothing")
		}
		out, err := writetest.Update(m, given["live"], given["now"], "ctl")
		if err == nil && out != nil && given["live"] == nil {
			readable(t, out)
		}
		m.UpdateNoErrors(t.Context(), given["live"], given["now"], fieldmanager.UpdateOptions{Manager: "ctl"})
		require.Equal(t, before, given, "what was given was changed")
	})
}

// readable requires that each entry of an object can be decoded, or is an unchanged entry of the input.
func readable(t *testing.T, obj runtime.Object) {
	t.Helper()
	metadata, _ := contents(obj)["metadata"].(map[string]any)
	list, _ := metadata["managedFields"].([]any)
	for _, item := range list {
		entry, ok := item.(map[string]any)
		require.True(t, ok)
		if entry["manager"] == any("alice") || entry["manager"] == any("ctl") {
			_, err := managedfields.DecodeTree([]any{item})
			require.NoError(t, err)
		}
	}
}
