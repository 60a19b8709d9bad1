package blame_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/ownership/blame"
	"github.com/tenure-ssa/tenure/typed"
)

// states returns the state and the managers of each path in a report.
func states(r *blame.Report) map[string]string {
	out := map[string]string{}
	for _, line := range r.Lines {
		for _, f := range line.Fields {
			text := string(f.State)
			for _, o := range f.Owners {
				text += " " + o.Manager
			}
			out[f.Path.String()] = text
		}
	}
	return out
}

// owned returns an object with a spec. For each of fields, it has an entry of a manager; the managers are called a,
// b, and so on.
func owned(t *testing.T, spec string, fields ...string) map[string]any {
	t.Helper()
	obj := read(t, "spec: "+spec)
	entries := make([]any, len(fields))
	for i, f := range fields {
		entries[i] = map[string]any{
			"manager": string(rune('a' + i)), "operation": "Apply", "apiVersion": "v1",
			"fieldsType": "FieldsV1", "fieldsV1": read(t, f),
		}
	}
	obj["metadata"] = map[string]any{"managedFields": entries}
	return obj
}

func TestOwners(t *testing.T) {
	str := &typed.Type{Scalar: typed.String}
	ofSpec := func(spec *typed.Type) *typed.Type {
		return &typed.Type{Map: typed.NewMap(map[string]typed.Field{"spec": {Type: spec}}, nil)}
	}
	ports := ofSpec(
		&typed.Type{List: typed.KeyedList(&typed.Type{
			Map: typed.NewMap(map[string]typed.Field{
				"port":     {Type: &typed.Type{Scalar: typed.Numeric}},
				"protocol": {Type: str, Default: "TCP"},
				"m":        {Type: &typed.Type{Map: typed.NewMap(nil, str)}},
			}, nil),
		}, "port", "protocol")},
	)
	for _, tt := range []struct {
		name   string
		spec   string
		fields []string
		typ    *typed.Type
		want   map[string]string
		why    string
	}{
		{"item itself", `[{name: x, v: 1}]`, []string{`{"f:spec":{"k:{\"name\":\"x\"}":{".":{}}}}`}, nil,
			map[string]string{`.spec[name="x"]`: "owned a", `.spec[name="x"].v`: "unowned"},
			"who gave up all of an item but itself does not own what is in it"},
		{"only in an item", `[{name: x, v: 1}]`, []string{`{"f:spec":{"k:{\"name\":\"x\"}":{"f:v":{}}}}`}, nil,
			map[string]string{`.spec[name="x"]`: "parent", `.spec[name="x"].v`: "owned a", `.spec[name="x"].name`: "unowned"},
			"half-owned, as a stale updater leaves items"},
		{"atomic without a type", `{l: [{x: 1}]}`, []string{`{"f:spec":{"f:l":{}}}`}, nil,
			map[string]string{`.spec.l`: "owned a", `.spec.l[0]`: "whole a", `.spec.l[0].x`: "whole a"},
			"a list that is owned, and nothing in it, is taken as atomic"},
		{"granular by type", `{x: y}`, []string{`{"f:spec":{}}`}, ofSpec(&typed.Type{Map: typed.NewMap(nil, str)}),
			map[string]string{`.spec`: "owned a", `.spec.x`: "unowned"},
			"the type says that the map's entries are owned one by one"},
		{"atomic by type", `{x: y}`, []string{`{"f:spec":{}}`, `{"f:spec":{"f:x":{}}}`},
			ofSpec(&typed.Type{Map: typed.NewMap(nil, str).WithAtomic(true)}),
			map[string]string{`.spec`: "owned a", `.spec.x`: "owned b"},
			"an entry from before the map became atomic still says what it says"},
		{"granular by another entry", `{x: y, z: 1}`, []string{`{"f:spec":{}}`, `{"f:spec":{"f:x":{}}}`}, nil,
			map[string]string{`.spec`: "owned a", `.spec.x`: "owned b", `.spec.z`: "unowned"},
			"one entry shows that the map is granular, for all of them"},
		{"default of a key by type", `[{port: 80}, {port: 80, protocol: UDP}]`,
			[]string{`{"f:spec":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{}}}}`}, ports,
			map[string]string{`.spec[port=80,protocol="TCP"]`: "owned a", `.spec[port=80,protocol="UDP"]`: "unowned"},
			"the item lacks the protocol, the schema has its default"},
		{"granular in an item by type", `[{port: 80, m: {x: y}}]`,
			[]string{`{"f:spec":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{"f:m":{}}}}`}, ports,
			map[string]string{`.spec[port=80,protocol="TCP"].m`: "owned a", `.spec[port=80,protocol="TCP"].m.x`: "unowned"},
			"types go on in the items of lists"},
		{"default of a key without a type", `[{port: 80}, {port: 81, protocol: UDP}]`,
			[]string{`{"f:spec":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{}}}}`}, nil,
			map[string]string{`.spec[port=80,protocol="TCP"]`: "owned a", `.spec[port=81,protocol="UDP"]`: "unowned"},
			"no item has the whole key, one has most of it and nothing else"},
		{"duplicates", `[{name: x}, {name: x, v: 1}]`, []string{`{"f:spec":{"k:{\"name\":\"x\"}":{".":{},"f:v":{}}}}`}, nil,
			map[string]string{`.spec[name="x"]`: "owned a", `.spec[name="x"].v`: "owned a", `.spec[name="x"].name`: "unowned"},
			"items that stand twice are both selected"},
		{"duplicates as one leaf", `[{name: x, v: 1}, {name: x, v: {w: 1}}]`, []string{`{"f:spec":{"k:{\"name\":\"x\"}":{}}}`}, nil,
			map[string]string{`.spec[name="x"]`: "owned a", `.spec[name="x"].name`: "whole a", `.spec[name="x"].v`: "whole a",
				`.spec[name="x"].v.w`: "whole a"},
			"who wrote duplicates owns all that is in them, by the element alone (spec rule 5.4)"},
		{"duplicates of two", `[{name: x, v: 1}, {name: x, w: 2}]`,
			[]string{`{"f:spec":{"k:{\"name\":\"x\"}":{".":{},"f:v":{}}}}`, `{"f:spec":{"k:{\"name\":\"x\"}":{}}}`}, nil,
			map[string]string{`.spec[name="x"]`: "owned a b", `.spec[name="x"].v`: "owned a", `.spec[name="x"].w`: "whole b",
				`.spec[name="x"].name`: "whole b"},
			"a path in an item still says what it says, as in an atomic map"},
		{"set of numbers", `[1, 1.5, "1"]`, []string{`{"f:spec":{"v:1":{},"v:1.5":{}}}`, `{"f:spec":{"v:\"1\"":{}}}`}, nil,
			map[string]string{`.spec[=1]`: "owned a", `.spec[=1.5]`: "owned a", `.spec[="1"]`: "owned b"},
			"a number and its text are two items"},
		{"by position", `[x, y]`, []string{`{"f:spec":{"i:1":{}}}`}, nil,
			map[string]string{`.spec[0]`: "unowned", `.spec[1]`: "owned a"},
			"upstream writes positions for lists without a schema"},
		{"empty containers", `{l: [], m: {}, x: null}`, []string{`{"f:spec":{"f:m":{}}}`, `{"f:spec":{"f:x":{}}}`}, nil,
			map[string]string{`.spec.l`: "unowned", `.spec.m`: "owned a", `.spec.x`: "owned b"},
			"they are values"},
		{"co-owners", `{x: 1}`, []string{`{"f:spec":{"f:x":{}}}`, `{"f:spec":{"f:x":{}}}`, `{"f:spec":{"f:x":{}}}`}, nil,
			map[string]string{`.spec`: "parent", `.spec.x`: "owned a b c"},
			"in the order of the entries"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := states(report(t, owned(t, tt.spec, tt.fields...), blame.Options{Type: tt.typ}))
			for path, want := range tt.want {
				require.Equal(t, want, got[path], "%s: %s", path, tt.why)
			}
		})
	}
}

func TestExempt(t *testing.T) {
	obj := readFile(t, live)
	got := states(report(t, obj, blame.Options{ManagedFields: true}))
	for _, path := range []string{".apiVersion", ".kind", ".metadata.name", ".metadata.namespace", ".metadata.uid",
		".metadata.resourceVersion", ".metadata.generation", ".metadata.creationTimestamp", ".metadata.managedFields"} {
		require.Equal(t, "exempt", got[path], path)
	}
	require.Equal(t, "parent", got[".metadata"])
	for path, state := range got {
		if strings.HasPrefix(path, ".metadata.managedFields") {
			require.Equal(t, "exempt", state, path)
		}
	}
	require.NotContains(t, yamlOf(report(t, obj, blame.Options{})), "managedFields")
}

func TestManagers(t *testing.T) {
	r := report(t, readFile(t, live), blame.Options{Managers: []string{"hpa", "kubectl-edit"}})
	require.Equal(t, `spec:
  replicas: 5
  template:
    spec:
      containers:
      - args:
        resources:
          limits:
            memory: 256Mi
`, yamlOf(r), "their fields, and what these are in")
	require.Equal(t, 20, r.Lines[1].Number, "lines keep their numbers")
	require.Empty(t, report(t, readFile(t, live), blame.Options{Managers: []string{"nobody"}}).Lines)
	obj := read(t, `{data: {a: "one\n\ntwo\n", b: x}, metadata: {managedFields: [
		{manager: m, operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:data": {"f:a": {}}}}]}}`)
	r = report(t, obj, blame.Options{Managers: []string{"m"}})
	require.Equal(t, "data:\n  a: |\n    one\n\n    two\n", yamlOf(r), "all lines of a string")
}

// TestAtomicAtAnotherVersion: the owner of a value that is atomic at the version of its entry owns everything in it.
func TestAtomicAtAnotherVersion(t *testing.T) {
	spec := func(m *typed.Map) *typed.Type {
		return &typed.Type{Map: typed.NewMap(map[string]typed.Field{"spec": {Type: &typed.Type{Map: m}}}, nil)}
	}
	granular := spec(typed.NewMap(nil, typed.Deduced()))
	r := report(t, owned(t, `{a: {b: x}}`, `{"f:spec":{}}`), blame.Options{
		Type: granular, TypeAt: func(version string) *typed.Type {
			require.Equal(t, "v1", version)
			return spec(typed.NewMap(nil, typed.Deduced()).WithAtomic(true))
		},
	})
	require.Equal(t, "whole a", states(r)[".spec.a.b"])
	r = report(t, owned(t, `{a: {b: x}}`, `{"f:spec":{}}`), blame.Options{
		Type: granular, TypeAt: func(string) *typed.Type { return granular },
	})
	require.Equal(t, "unowned", states(r)[".spec.a"], "the manager owned an empty map")
}

// TestOtherPaths: an entry of another version may own a field under another path, unless its own paths all exist.
func TestOtherPaths(t *testing.T) {
	o := blame.Options{OtherPaths: true, TypeAt: func(version string) *typed.Type {
		if version == "v1" {
			return typed.Deduced()
		}
		return nil
	}}
	of := func(version, fields string) *blame.Report {
		return report(t, read(t, `{apiVersion: v2, spec: {a: 1, b: 2}, status: {c: 3}, metadata: {name: x, managedFields: [
			{manager: m, operation: Apply, apiVersion: `+version+`, fieldsType: FieldsV1, fieldsV1: `+fields+`}]}}`), o)
	}
	r := of("v1", `{"f:spec": {"f:a": {}, "f:old": {}}}`)
	require.Equal(t, "owned m", states(r)[".spec.a"])
	require.Equal(t, "unknown", states(r)[".spec.b"])
	for _, line := range r.Lines {
		if f := line.Field(); f.State == blame.Unknown {
			require.Equal(t, "m", f.MayOwn[0].Manager)
		}
	}
	var text strings.Builder
	require.NoError(t, blame.Text(&text, nil, r))
	require.Contains(t, text.String(), "(unknown)                           │   b: 2\n")
	require.Contains(t, text.String(), `! manager "m" (Apply) may own the fields marked (unknown): at v1, it owns `+
		".spec.old, which may have other paths here\n")
	require.Equal(t, "unowned", states(of("v1", `{"f:spec": {"f:a": {}}}`))[".spec.b"])
	require.Equal(t, "unowned", states(of("v1", `{"f:metadata": {"f:annotations": {"f:old": {}}}}`))[".spec.b"])
	require.Equal(t, "unowned", states(of("v1, subresource: status", `{"f:status": {"f:old": {}}}`))[".spec.b"])
	require.Equal(t, "unknown", states(of("v1, subresource: status", `{"f:status": {"f:old": {}}}`))[".status.c"])
	require.Equal(t, "unowned", states(of("v2", `{"f:spec": {"f:old": {}}}`))[".spec.b"])
	require.Equal(t, "unowned", states(of("v0", `{"f:spec": {"f:old": {}}}`))[".spec.b"], "a version that is gone")
}

func TestLines(t *testing.T) {
	r := report(t, read(t, `{data: {a: "one\n\ntwo\n", b: `+strings.Repeat("word ", 30)+`}, spec: {}}`), blame.Options{})
	var got []string
	for _, line := range r.Lines {
		got = append(got, line.Field().Path.String())
		require.GreaterOrEqual(t, line.Last, line.Number)
	}
	require.Equal(t, []string{".data", ".data.a", ".data.a", ".data.a", ".data.a", ".data.b", ".data.b", ".spec"}, got,
		"all lines of a string belong to one field")
	require.True(t, r.Lines[2].Continued)
	require.Equal(t, 5, r.Lines[1].Last)
	empty := report(t, map[string]any{}, blame.Options{})
	require.Equal(t, "{}\n", yamlOf(empty))
	require.Nil(t, empty.Lines[0].Field())
}

func TestProblems(t *testing.T) {
	r := report(t, read(t, `metadata: {managedFields: {manager: a}}`), blame.Options{})
	require.Equal(t, []string{"metadata.managedFields: expected a list, got map[string]interface {}"}, r.Notes())

	obj := read(t, `metadata: {managedFields: [
		{manager: a, operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"x:": {}, "f:gone": {}}},
		{manager: b, operation: Apply, apiVersion: v2, time: yesterday, fieldsType: FieldsV1}]}`)
	r = report(t, obj, blame.Options{})
	var text strings.Builder
	require.NoError(t, blame.Text(&text, nil, r))
	require.NotContains(t, text.String(), "VERSION", "what can't be read has none")
	require.Equal(t, 1, r.Entries[0].AbsentCount)
	require.Equal(t, `time: expected RFC 3339, got "yesterday"`, r.Entries[1].Problem)
	require.Len(t, r.Notes(), 2)
}

func TestErrors(t *testing.T) {
	loop := map[string]any{}
	loop["self"] = loop
	for _, tt := range []struct {
		name string
		obj  map[string]any
		want string
	}{
		{"loop", loop, "nested"},
		{"no number", map[string]any{"x": math.NaN()}, "blame: "},
		{"no JSON", map[string]any{"x": func() {}}, "blame: "},
	} {
		_, err := blame.New(tt.obj, blame.Options{})
		require.ErrorContains(t, err, tt.want, tt.name)
	}
}
