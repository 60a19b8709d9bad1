package plans_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership/conflictreport"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// configMap returns the example of the Kubernetes documentation with one more field: two managers, and an intent of the
// second that changes a field of the first.
func configMap(t *testing.T) (m *fieldmanager.FieldManager, live, intent *unstructured.Unstructured) {
	now := start
	m = builtinManager(t, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
		func(o *fieldmanager.Options) { o.Clock = func() time.Time { now = now.Add(time.Second); return now } })
	text := func(data string) *unstructured.Unstructured {
		return &unstructured.Unstructured{
			Object: parse(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: test-cm, namespace: default}\ndata: "+data),
		}
	}
	out, err := writetest.Apply(m, nil, text("{key: some value, color: red}"), "alice", false)
	require.NoError(t, err)
	live = stored(out)
	live.SetResourceVersion("7")
	return m, live, text("{key: new value, color: blue, size: large}")
}

// each makes a decision for each conflict separately.
func each(decide func(conflicts.Conflict) conflicts.Decision) func(conflicts.Conflicts) []conflicts.Decision {
	return func(all conflicts.Conflicts) (out []conflicts.Decision) {
		for _, c := range all {
			out = append(out, decide(c))
		}
		return out
	}
}

// all makes the same decision for all conflicts.
func all(w conflicts.Decision) func(conflicts.Conflicts) []conflicts.Decision {
	return each(func(conflicts.Conflict) conflicts.Decision { return w })
}

// TestResolve shows what happens to the containers of a field that is removed from the intent (spec rule 13.4).
func TestResolve(t *testing.T) {
	for _, row := range []struct {
		name, theirs, mine string
		way                conflicts.Decision
		want               string
		why                string
	}{
		{"last of a struct", "spec: {text: a}", "spec: {text: b}", conflicts.GiveUp, `{}`, "an empty struct would be owned"},
		{"last of a map", "spec: {labels: {k: a}}", "spec: {labels: {k: b}, count: 1}", conflicts.GiveUp, `{"count":1}`,
			"so would an empty map"},
		{"empty on purpose", "spec: {text: a}", "spec: {text: b, labels: {}, set: []}", conflicts.GiveUp,
			`{"labels":{},"set":[]}`, "what was empty stays"},
		{"an empty list on purpose", "spec: {text: a}", "spec: {text: b, set: []}", conflicts.GiveUp, `{"set":[]}`,
			"an empty list owns nothing, but it is there"},
		{"field of an item", "spec: {ports: [{port: 80, name: a}]}", "spec: {ports: [{port: 80, name: b}]}", conflicts.GiveUp,
			`{"ports":[{"port":80}]}`, "an item stays with its key: to give it up would remove it when nobody else had it"},
		{"shared field of an item", "spec: {ports: [{port: 80, name: a}]}",
			"spec: {ports: [{port: 80, name: b}, {port: 90}]}", conflicts.Share,
			`{"ports":[{"name":"a","port":80},{"port":90}]}`, "the value is in the item of the same key"},
		{"atomic", "spec: {atomic: [a, b]}", "spec: {atomic: [c]}", conflicts.Share, `{"atomic":["a","b"]}`,
			"a whole is shared as a whole"},
		{"atomic given up", "spec: {atomic: [a, b], count: 1}", "spec: {atomic: [c], count: 1}", conflicts.GiveUp,
			`{"count":1}`, "and given up as a whole"},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := newManager(t, "v1")
			live, err := writetest.Apply(m, nil, object(t, "v1", row.theirs), "alice", false)
			require.NoError(t, err)
			r, err := plans.Resolve(
				t.Context(), m, stored(live),
				object(t, "v1", row.mine),
				all(row.way),
				plans.Options{Manager: "bob"},
			)
			require.NoError(t, err)
			spec := r.Intent.Object["spec"]
			if spec == nil {
				spec = map[string]any{}
			}
			text, err := json.Marshal(spec)
			require.NoError(t, err)
			require.JSONEq(t, row.want, string(text), row.why)
			require.NotEqual(t, plans.Conflict, r.Plan.Outcome)
		})
	}
}

// TestShareWhatIsNotThere: a field that its owner owns but live does not have can't be shared.
func TestShareWhatIsNotThere(t *testing.T) {
	m := newManager(t, "v1")
	out, err := writetest.Apply(m, nil, object(t, "v1", "spec: {text: a, count: 1, ports: [{port: 80}]}"), "alice", false)
	require.NoError(t, err)
	live := stored(out)
	unstructured.RemoveNestedField(live.Object, "spec", "text")
	unstructured.RemoveNestedField(live.Object, "spec", "ports")
	for _, way := range []conflicts.Decision{conflicts.Share, conflicts.GiveUp} {
		r, err := plans.Resolve(
			t.Context(), m, live,
			object(t, "v1", "spec: {text: b, set: [x], ports: [{port: 80, name: nn}]}"),
			all(way),
			plans.Options{Manager: "bob"},
		)
		require.NoError(t, err)
		require.Equal(
			t,
			map[string]any{"set": []any{"x"}},
			r.Intent.Object["spec"],
			"an item goes where its key is in conflict",
		)
	}
}

func TestResolveWithoutConflict(t *testing.T) {
	m, live, intent := configMap(t)
	r, err := plans.Resolve(t.Context(), m, live,
		intent,
		func(conflicts.Conflicts) []conflicts.Decision { panic("there is none") },
		plans.Options{Manager: "alice", Force: true},
	)
	require.NoError(t, err)
	require.Equal(t, intent.Object, r.Intent.Object)
	require.False(t, r.Force)
	require.Equal(t, plans.Changed, r.Plan.Outcome)
	options := plans.Options{Manager: "alice"}
	report, err := conflictreport.New(t.Context(), m, live, intent, "configmap/test-cm", options)
	require.NoError(t, err)
	require.Empty(t, report.Conflicts)
	require.Empty(t, report.Ways)
}

func TestResolveErrors(t *testing.T) {
	m := newManager(t, "v1", func(o *fieldmanager.Options) { o.Converter = fieldmanager.NoneConverter{} })
	live, err := writetest.Apply(m, nil, object(t, "v1", "spec: {text: a, set: [a]}"), "alice", false)
	require.NoError(t, err)
	live, err = writetest.Apply(m, stored(live), object(t, "v1", "spec: {text: a}"), "bob", false)
	require.NoError(t, err)
	doubled := stored(live)
	require.NoError(t, unstructured.SetNestedField(doubled.Object, []any{"a", "a"}, "spec", "set"))
	// An updater's item that was removed: the item and its fields are in conflict.
	gone, err := writetest.Update(
		m,
		stored(live),
		object(t, "v1", "spec: {text: a, set: [a], ports: [{port: 80, name: a}]}"),
		"zac",
	)
	require.NoError(t, err)
	live = stored(gone)
	unstructured.RemoveNestedField(live.(*unstructured.Unstructured).Object, "spec", "ports")
	asked := 0
	for _, row := range []struct {
		name   string
		intent *unstructured.Unstructured
		decide func(conflicts.Conflicts) []conflicts.Decision
		want   string
	}{
		{"decided twice", object(t, "v1", "spec: {text: b}"),
			each(func(conflicts.Conflict) conflicts.Decision {
				asked++
				return []conflicts.Decision{conflicts.Force, conflicts.Share}[asked%2]
			}),
			".spec.text: decided twice, once share and once force"},
		{"forced within what is given up", object(t, "v1", "spec: {ports: [{port: 80, name: b}]}"),
			each(func(c conflicts.Conflict) conflicts.Decision {
				if strings.HasSuffix(c.Path.String(), "].name") {
					return conflicts.Force
				}
				return conflicts.GiveUp
			}), ".spec.ports[port=80,protocol=\"TCP\"].name: to be forced, but what holds it is left out"},
		{"refused", object(t, "v1", "spec: {text: b}"), all(conflicts.Refuse),
			"Apply failed with 2 conflicts: conflicts with \"alice\":\n- .spec.text\nconflicts with \"bob\":\n- .spec.text"},
		{"no decision", object(t, "v1", "spec: {text: b}"), all("gvieup"),
			`.spec.text: no way out of a conflict: expected one of [force give-up share], got "gvieup"`},
		{"too few", object(t, "v1", "spec: {text: b}"), func(conflicts.Conflicts) []conflicts.Decision { return nil },
			"expected 2 decisions about conflicts, got 0"},
		{"bad intent", object(t, "v1", "spec: {text: 1}"), nil,
			"applied object (x; example.dev/v1, Kind=Thing): .spec.text: expected string, got 1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := plans.Resolve(t.Context(), m, live, row.intent, row.decide, plans.Options{Manager: "zoe"})
			require.EqualError(t, err, row.want)
		})
	}
	_, err = plans.Resolve(
		t.Context(), m, doubled,
		object(t, "v1", "spec: {set: [a]}"),
		all(conflicts.Share),
		plans.Options{Manager: "zoe"},
	)
	require.ErrorContains(t, err, "live's value can't be shared: .spec.set: duplicate")
}

// TestResolveStringData: stringData sets fields of data. No server checks who owns these.
func TestResolveStringData(t *testing.T) {
	m := builtinManager(t, schema.GroupVersionKind{Version: "v1", Kind: "Secret"})
	secret := func(fields string) *unstructured.Unstructured {
		tree := parse(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: s, labels: {l: a}}\n"+fields)
		return &unstructured.Unstructured{Object: tree}
	}
	out, err := writetest.Apply(m, nil, secret("data: {a: b2xk, b: b2xk}"), "theirs", false)
	require.NoError(t, err)
	copied := conflicts.Conflict{
		Path: fieldpath.NewPath("data", "a"), APIVersion: "v1", Live: "b2xk",
		Owner: managedfields.KeyOf("theirs", metav1.ManagedFieldsOperationApply, "v1", ""),
	}
	reported := copied
	reported.Path = fieldpath.NewPath("data", "b")
	for _, row := range []struct {
		name, mine string
		found      conflicts.Conflicts
		decide     map[string]conflicts.Decision
		force      bool
		want       string
	}{
		{"forced", "stringData: {a: new}", conflicts.Conflicts{copied}, map[string]conflicts.Decision{".data.a": "force"},
			false, "stringData: {a: new}"},
		{"given up", "stringData: {a: new}", conflicts.Conflicts{copied}, map[string]conflicts.Decision{".data.a": "give-up"},
			false, ""},
		{"shared", "stringData: {a: new, c: d}", conflicts.Conflicts{copied},
			map[string]conflicts.Decision{".data.a": "share"}, false, "stringData: {c: d}\ndata: {a: b2xk}"},
		{"forced with a conflict", "stringData: {a: new}\ndata: {b: bmV3}", conflicts.Conflicts{copied, reported},
			map[string]conflicts.Decision{".data.a": "force", ".data.b": "force"}, true,
			"stringData: {a: new}\ndata: {b: bmV3}"},
		{"forced beside a conflict", "stringData: {a: new}\ndata: {b: bmV3}", conflicts.Conflicts{copied, reported},
			map[string]conflicts.Decision{".data.a": "force", ".data.b": "give-up"}, false, "stringData: {a: new}"},
		{"given up beside a conflict", "stringData: {a: new}\ndata: {b: bmV3}", conflicts.Conflicts{copied, reported},
			map[string]conflicts.Decision{".data.a": "give-up", ".data.b": "force"}, true, "data: {b: bmV3}"},
		{"in both, given up", "stringData: {a: new}\ndata: {a: bmV3}", conflicts.Conflicts{copied},
			map[string]conflicts.Decision{".data.a": "give-up"}, false, ""},
		{"in both, forced", "stringData: {a: new}\ndata: {a: bmV3}", conflicts.Conflicts{copied},
			map[string]conflicts.Decision{".data.a": "force"}, true, "stringData: {a: new}\ndata: {a: bmV3}"},
	} {
		t.Run(row.name, func(t *testing.T) {
			decide := each(func(c conflicts.Conflict) conflicts.Decision { return row.decide[c.Path.Short()] })
			r, err := plans.Resolve(t.Context(), m, out, secret(row.mine), decide,
				plans.Options{Manager: "mine", Found: row.found})
			require.NoError(t, err)
			require.Equal(t, row.force, r.Force)
			require.Equal(t, row.force, len(r.Forced) > 0)
			require.Equal(t, secret(row.want).Object, r.Intent.Object)
		})
	}
}

// TestResolveDefaultOfKey: live lacks the default of a key field that alice owns, and bob's intent has it. Without
// force, the key field is removed from the intent, and the item stays.
func TestResolveDefaultOfKey(t *testing.T) {
	m := newManager(t, "v1")
	out, err := writetest.Apply(m, nil, object(t, "v1", "spec: {ports: [{port: 80, protocol: TCP}]}"), "alice", false)
	require.NoError(t, err)
	live := stored(out)
	live.Object["spec"] = map[string]any{"ports": []any{map[string]any{"port": int64(80)}}}
	intent := object(t, "v1", "spec: {ports: [{port: 80, protocol: TCP, name: web}]}")
	for way, want := range map[conflicts.Decision]string{
		conflicts.Share:  "spec: {ports: [{port: 80, name: web}]}",
		conflicts.GiveUp: "spec: {ports: [{port: 80, name: web}]}",
		conflicts.Force:  "spec: {ports: [{port: 80, protocol: TCP, name: web}]}",
	} {
		t.Run(string(way), func(t *testing.T) {
			decide := each(func(c conflicts.Conflict) conflicts.Decision {
				require.Equal(t, `.spec.ports[port=80,protocol="TCP"].protocol`, c.Path.String())
				return way
			})
			r, err := plans.Resolve(t.Context(), m, live, intent, decide, plans.Options{Manager: "bob"})
			require.NoError(t, err)
			require.Equal(t, object(t, "v1", want), r.Intent)
		})
	}
}

// TestResolveInNull: live has null in place of a map entry. After the field in the entry is removed from the intent,
// the entry itself is in conflict, and is removed, too.
func TestResolveInNull(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Box"}
	schemas, err := openapi.CompileV3([]byte(`{"openapi":"3.0.0","components":{"schemas":{"box":{"type":"object",
		"x-kubernetes-group-version-kind":[{"group":"example.com","version":"v1","kind":"Box"}],"properties":{
		"apiVersion":{"type":"string"},"kind":{"type":"string"},"metadata":{"type":"object"},
		"spec":{"type":"object","additionalProperties":{"type":"object","additionalProperties":{"type":"integer"}}}}}}}}`))
	require.NoError(t, err)
	m, err := fieldmanager.New(kind, schemas, fieldmanager.Options{})
	require.NoError(t, err)
	box := func(spec string) *unstructured.Unstructured {
		const head = "apiVersion: example.com/v1\nkind: Box\nmetadata: {name: a}\nspec: "
		return &unstructured.Unstructured{Object: parse(t, head+spec)}
	}
	out, err := writetest.Apply(m, nil, box("{x: {a: 1}}"), "alice", false)
	require.NoError(t, err)
	live := stored(out)
	live.Object["spec"] = map[string]any{"x": nil}
	for way, want := range map[conflicts.Decision]string{
		conflicts.GiveUp: "{y: {a: 3}}", conflicts.Share: "{y: {a: 3}}", conflicts.Force: "{x: {a: 2}, y: {a: 3}}",
	} {
		r, err := plans.Resolve(t.Context(), m, live, box("{x: {a: 2}, y: {a: 3}}"),
			all(way), plans.Options{Manager: "bob"})
		require.NoError(t, err, way)
		require.Equal(t, box(want), r.Intent, way)
	}
}

func TestLeaveOut(t *testing.T) {
	port := append(fieldpath.NewPath("spec", "ports"), fieldpath.KeyElement(
		fieldpath.KeyField{Name: "port", Value: 80}, fieldpath.KeyField{Name: "protocol", Value: "TCP"}))
	const intent = "spec: {text: a, count: 1, labels: {k: v}, ports: [{port: 80, name: web}]}"
	m := newManager(t, "v1")
	for _, row := range []struct {
		name, why string
		path      fieldpath.Path
		want      string
	}{
		{"nothing", "", nil, intent},
		{"a leaf", "", fieldpath.NewPath("spec", "text"), "spec: {count: 1, labels: {k: v}, ports: [{port: 80, name: web}]}"},
		{"all below a path", "", fieldpath.NewPath("spec", "ports"), "spec: {text: a, count: 1, labels: {k: v}}"},
		{"the last of a map", "an empty one would be owned", fieldpath.NewPath("spec", "labels", "k"),
			"spec: {text: a, count: 1, ports: [{port: 80, name: web}]}"},
		{"a field of an item", "the item stays", append(port, fieldpath.FieldElement("name")),
			"spec: {text: a, count: 1, labels: {k: v}, ports: [{port: 80}]}"},
	} {
		t.Run(row.name, func(t *testing.T) {
			given := object(t, "v1", intent)
			out, err := plans.LeaveOut(t.Context(), m, given, fieldpath.NewSet(row.path))
			require.NoError(t, err)
			require.Equal(t, object(t, "v1", row.want), out, row.why)
			require.Equal(t, object(t, "v1", intent), given)
		})
	}
	// LeaveOut accepts duplicates and undeclared fields; the server rejects them.
	out, err := plans.LeaveOut(t.Context(), m, object(t, "v1", "spec: {text: a, set: [b, b], other: c}"),
		fieldpath.NewSet(fieldpath.NewPath("spec", "text")))
	require.NoError(t, err)
	require.Equal(t, object(t, "v1", "spec: {set: [b, b], other: c}"), out)
	for want, obj := range map[string]runtime.Object{
		"applied object: expected an object, got a nil <nil>": nil,
		"applied object: .spec.text: expected string, got 1":  object(t, "v1", "spec: {text: 1}"),
	} {
		_, err := plans.LeaveOut(t.Context(), m, obj, nil)
		require.EqualError(t, err, want)
	}
}

// TestWaysOut shows the three ways out in the form that programs use.
func TestWaysOut(t *testing.T) {
	m, live, intent := configMap(t)
	options := plans.Options{Manager: "bob"}
	report, err := conflictreport.New(t.Context(), m, live, intent, "configmap/test-cm", options)
	require.NoError(t, err)
	data, err := json.Marshal(report)
	require.NoError(t, err)
	meta := `{"name":"test-cm","namespace":"default"}`
	owner := `{"manager":"alice","operation":"Apply","apiVersion":"v1"}`
	require.JSONEq(t, `{"object":"configmap/test-cm","manager":"bob",
		"message":"Apply failed with 2 conflicts: conflicts with \"alice\":\n- .data.color\n- .data.key",
		"conflicts":[
			{"field":".data.color","owner":`+owner+`,"since":"2026-01-02T03:04:06Z","live":"red","applied":"blue"},
			{"field":".data.key","owner":`+owner+`,"since":"2026-01-02T03:04:06Z","live":"some value","applied":"new value"}],
		"ways":[
			{"decision":"force","force":true,"why":"apply again with force: your values are set, and only you own the fields",
			 "promise":{"unblocks":true,"moves":[".data.color",".data.key"]},
			 "losses":[{"owner":`+owner+`,"fields":[".data.color",".data.key"]}],
			 "intent":{"apiVersion":"v1","kind":"ConfigMap","metadata":`+meta+`,
				"data":{"key":"new value","color":"blue","size":"large"}}},
			{"decision":"give-up","force":false,"promise":{"unblocks":true,"keeps":true},
			 "why":"leave the fields out of your manifest: their values and owners stay",
			 "intent":{"apiVersion":"v1","kind":"ConfigMap","metadata":`+meta+`,"data":{"size":"large"}}},
			{"decision":"share","force":false,"promise":{"unblocks":true,"keeps":true},
			 "why":"put the owners' values into your manifest: you and they own the fields",
			 "intent":{"apiVersion":"v1","kind":"ConfigMap","metadata":`+meta+`,
				"data":{"key":"some value","color":"red","size":"large"}}}]}`, string(data))
	require.Equal(t, int32(409), report.Conflicts.Status().Code)
}

// TestResolveAcrossVersions has conflicts at a version where a field has another name, or consists of other fields.
// Only ways out that work may be suggested.
func TestResolveAcrossVersions(t *testing.T) {
	named := func(obj map[string]any, from, to string) {
		if v, ok := obj[from]; ok {
			obj[to] = v
			delete(obj, from)
		}
	}
	for _, row := range []struct {
		name, why string
		change    func(from, to string, obj map[string]any) error
		theirs    string // at v2
		intent    string // at v1
		decide    func(conflicts.Conflicts) []conflicts.Decision
		want      string
	}{
		{"another name", "which field of the intent it is can't be told", func(from, to string, obj map[string]any) error {
			if from == "v1" && to == "v2" {
				named(obj, "a", "b")
			} else if from == "v2" && to == "v1" {
				named(obj, "b", "a")
			}
			return nil
		}, "b: x", "a: z", all(conflicts.GiveUp),
			`.b: "alice" owns this field at example.dev/v2, and the intent, at example.dev/v1, does not have it: ` +
				`force all conflicts, or change the fields of the intent that set it`},
		{"a field made of two", "to give up b gives up half of it", func(from, to string, obj map[string]any) error {
			if from == "v1" && to == "v2" {
				a, _ := obj["a"].(string)
				b, _ := obj["b"].(string)
				obj["b"] = a + b
			}
			return nil
		}, "b: y", "a: z\nb: z", all(conflicts.GiveUp),
			`.b: still in conflict with "alice" after it was decided`},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := changing(row.change)
			live, err := writetest.Apply(anyManager(
				t,
				"v2",
				func(o *fieldmanager.Options) { o.Converter = c },
			), nil, anyAt(t, "v2", row.theirs), "alice", false)
			require.NoError(t, err)
			m := anyManager(t, "v1", func(o *fieldmanager.Options) { o.Converter = c })
			atV1 := atVersion(t, c, live, "v1")
			intent := anyAt(t, "v1", row.intent)
			_, err = plans.Resolve(t.Context(), m, atV1, intent, row.decide, plans.Options{Manager: "bob"})
			require.EqualError(t, err, row.want, row.why)
			report, err := conflictreport.New(t.Context(), m, atV1, intent, "any/x", plans.Options{Manager: "bob"})
			require.NoError(t, err)
			require.NotEmpty(t, report.Conflicts)
			for _, way := range report.Ways {
				require.NotEqual(t, conflicts.GiveUp, way.Decision, row.why)
			}
			require.Equal(t, "not possible: "+row.want, report.Unavailable[0].Why)
			r, err := plans.Resolve(t.Context(), m, atV1, intent, all(conflicts.Force), plans.Options{Manager: "bob"})
			require.NoError(t, err, "a forced apply needs no field of the intent")
			require.True(t, r.Force)
			require.Len(t, r.Forced, len(report.Conflicts))
			require.Equal(t, plans.Changed, r.Plan.Outcome)
		})
	}
}

// TestResolvedFor: an intent that forces only some conflicts has live's resourceVersion, if live has one.
func TestResolvedFor(t *testing.T) {
	m := newManager(t, "v1")
	live, err := writetest.Apply(m, nil, object(t, "v1", "spec: {text: a, count: 1}"), "alice", false)
	require.NoError(t, err)
	for _, row := range []struct {
		name, version, why string
		all                bool
		want               any
	}{
		{"some", "7", "", false, "7"},
		{"all", "7", "who forces all forces what comes as well", true, nil},
		{"a live object without a version", "", "there is nothing to name", false, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			obj := stored(live)
			if row.version != "" {
				obj.SetResourceVersion(row.version)
			}
			r, err := plans.Resolve(t.Context(), m, obj,
				object(t, "v1", "spec: {text: b, count: 2}"),
				each(func(c conflicts.Conflict) conflicts.Decision {
					if row.all || c.Path.String() == ".spec.text" {
						return conflicts.Force
					}
					return conflicts.GiveUp
				}),
				plans.Options{Manager: "bob"},
			)
			require.NoError(t, err)
			require.True(t, r.Force)
			require.Equal(t, row.want, r.Intent.Object["metadata"].(map[string]any)["resourceVersion"], row.why)
		})
	}
}
