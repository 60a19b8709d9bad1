package fieldmanager_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldpath"
	"github.com/tenure-ssa/tenure/typed"
)

// oneLine writes a plan in lines: outcome, changes, conflicts, ownership.
func oneLine(p *fieldmanager.Plan) string {
	var b strings.Builder
	fmt.Fprintln(&b, p.Outcome)
	text := func(v any) string {
		data, _ := json.Marshal(v)
		return string(data)
	}
	for c := range p.Changes() {
		fmt.Fprintln(&b, c.Kind, c.Path, text(c.Before), text(c.After))
	}
	for _, c := range p.Conflicts {
		fmt.Fprintln(&b, "conflict", c.Path, c.Owner.Manager)
	}
	for _, o := range p.Ownership {
		fmt.Fprint(&b, o.Manager.Manager)
		for _, part := range []struct {
			verb string
			set  *fieldpath.Set
		}{{"gains", o.Gains}, {"shares", o.Shares}, {"loses", o.Loses}, {"removes", o.Removes}} {
			if !part.set.Empty() {
				fmt.Fprintf(&b, " %s %s", part.verb, strings.ReplaceAll(strings.TrimSpace(part.set.String()), "\n", ","))
			}
		}
		fmt.Fprintln(&b)
	}
	return strings.TrimSpace(b.String())
}

// TestPlan shows what a plan says of each outcome (spec rules 13.1 to 13.3).
func TestPlan(t *testing.T) {
	day := start.Add(24 * time.Hour)
	live := func(t *testing.T) *unstructured.Unstructured {
		m := newManager(t, "v1")
		out, err := m.Apply(nil, object(t, "v1", "spec: {text: a, count: 1, ports: [{port: 80}, {port: 90}]}"), "alice", false)
		require.NoError(t, err)
		return stored(out)
	}
	const same = "spec: {text: a, count: 1, ports: [{port: 80}, {port: 90}]}"
	for _, row := range []struct {
		name, manager, version, intent string
		options                        fieldmanager.PlanOptions
		want, why                      string
	}{
		{"the same again", "alice", "v1", same, fieldmanager.PlanOptions{}, "unchanged", "nothing is written"},
		{"the same at another version", "alice", "v2", same, fieldmanager.PlanOptions{}, "ownership only\nalice", "the entry is of another version then"},
		{"a field more", "alice", "v1", "spec: {text: a, count: 1, ports: [{port: 80}, {port: 90}], labels: {k: v}}", fieldmanager.PlanOptions{},
			"changed\nadded .spec.labels null {\"k\":\"v\"}\nalice gains .spec.labels.k", "a whole that is added is one change"},
		{"a field less", "alice", "v1", "spec: {text: a, ports: [{port: 80}, {port: 90}]}", fieldmanager.PlanOptions{},
			"changed\nremoved .spec.count 1 null\nalice loses .spec.count removes .spec.count", "nobody else owns it"},
		{"an item less", "alice", "v1", "spec: {text: a, count: 1, ports: [{port: 90}]}", fieldmanager.PlanOptions{},
			`changed
removed .spec.ports[port=80,protocol="TCP"] {"port":80} null
alice loses .spec.ports[port=80,protocol="TCP"],.spec.ports[port=80,protocol="TCP"].port removes .spec.ports[port=80,protocol="TCP"],.spec.ports[port=80,protocol="TCP"].port`, "a whole that goes is one change"},
		{"another order", "alice", "v1", "spec: {text: a, count: 1, ports: [{port: 90}, {port: 80}]}", fieldmanager.PlanOptions{},
			`changed
reordered .spec.ports [{"port":80},{"port":90}] [{"port":90},{"port":80}]`, "the object changes, and whose it is does not"},
		{"shared", "bob", "v1", "spec: {text: a}", fieldmanager.PlanOptions{},
			"ownership only\nbob gains .spec.text shares .spec.text", "the value is live's"},
		{"added by another", "bob", "v1", "spec: {set: [x]}", fieldmanager.PlanOptions{},
			"changed\nadded .spec.set null [\"x\"]\nbob gains .spec.set[=\"x\"]", "which is nobody's"},
		{"conflict", "bob", "v1", "spec: {text: b, count: 1}", fieldmanager.PlanOptions{},
			"conflict\nmodified .spec.text \"a\" \"b\"\nconflict .spec.text alice\nalice loses .spec.text\nbob gains .spec.count,.spec.text shares .spec.count", "what is said is what force would do"},
		{"forced", "bob", "v1", "spec: {text: b, count: 1}", fieldmanager.PlanOptions{Force: true},
			"changed\nmodified .spec.text \"a\" \"b\"\nconflict .spec.text alice\nalice loses .spec.text\nbob gains .spec.count,.spec.text shares .spec.count", "what is taken from whom is told too"},
		{"a default in live only", "alice", "v1", "spec: {text: a, count: 1, ports: [{port: 80, protocol: TCP}, {port: 90}]}", fieldmanager.PlanOptions{Defaults: true},
			`ownership only
alice gains .spec.ports[port=80,protocol="TCP"].protocol`, "the value was the default already"},
		{"without defaults", "alice", "v1", "spec: {text: a, count: 1, ports: [{port: 80, protocol: TCP}, {port: 90}]}", fieldmanager.PlanOptions{},
			`changed
added .spec.ports[port=80,protocol="TCP"].protocol null "TCP"
alice gains .spec.ports[port=80,protocol="TCP"].protocol`, "nobody said that a server fills it in"},
		{"an empty list", "alice", "v1", "spec: {text: a, count: 1, ports: [{port: 80}, {port: 90}], set: []}", fieldmanager.PlanOptions{Semantics: typed.Canonical(nil)},
			"unchanged", "which says nothing where types are Go structs"},
		{"an empty list of a custom resource", "alice", "v1", "spec: {text: a, count: 1, ports: [{port: 80}, {port: 90}], set: []}", fieldmanager.PlanOptions{},
			"changed\nadded .spec.set null []", "and is written where they are not"},
		{"a null", "alice", "v1", "spec: {text: a, count: 1, ports: [{port: 80}, {port: 90}], set: null}", fieldmanager.PlanOptions{Defaults: true},
			"ownership only\nalice gains .spec.set", "a server drops it from the object, not from the entry"},
		{"metadata of the server", "alice", "v1", "metadata: {name: x, creationTimestamp: null, generation: 7, uid: uid}\n" + same, fieldmanager.PlanOptions{},
			"unchanged", "a server keeps its own"},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := newManager(t, row.version, fieldmanager.WithClock(func() time.Time { return day }))
			text := row.intent
			if !strings.HasPrefix(text, "metadata") {
				text = "metadata: {name: x}\n" + text
			}
			intent := &unstructured.Unstructured{Object: parse(t, "apiVersion: example.dev/"+row.version+"\n"+text)}
			obj := live(t)
			before := obj.DeepCopy()
			p, err := m.Plan(obj, intent, row.manager, row.options)
			require.NoError(t, err)
			require.Equal(t, row.want, oneLine(p), row.why)
			require.Equal(t, before, obj, "planning changes nothing")
			merged, err := m.Apply(obj, intent, row.manager, row.options.Force || len(p.Conflicts) > 0)
			require.NoError(t, err)
			require.Equal(t, merged, p.Merged, "merged is what Apply returns")
		})
	}
}

func TestPlanOfACreate(t *testing.T) {
	m := newManager(t, "v1")
	p, err := m.Plan(nil, object(t, "v1", "spec: {text: a}"), "alice", fieldmanager.PlanOptions{})
	require.NoError(t, err)
	require.Equal(t, `changed
added .apiVersion null "example.dev/v1"
added .kind null "Thing"
added .metadata null {"name":"x"}
added .spec null {"text":"a"}
alice gains .spec.text`, oneLine(p))
}

// The first apply to an object that nobody tracked gives what is in it to
// before-first-apply, which the plan tells.
func TestPlanOfTheFirstApply(t *testing.T) {
	m := newManager(t, "v1")
	live := stored(object(t, "v1", "spec: {text: a, count: 1}"))
	p, err := m.Plan(live, object(t, "v1", "spec: {text: a}"), "alice", fieldmanager.PlanOptions{})
	require.NoError(t, err)
	require.Equal(t, `ownership only
alice gains .spec.text shares .spec.text
before-first-apply gains .spec,.spec.count,.spec.text shares .spec.text`, oneLine(p))
}

// TestPlanPutsBack shows that what a write resets, and a server puts back, is no
// change (spec rules 2.9 and 13.1), whatever shape it has.
func TestPlanPutsBack(t *testing.T) {
	reset := func(f fieldpath.Filter) fieldmanager.Option {
		return fieldmanager.WithResetFields(map[string]fieldpath.Filter{"example.dev/v1": f})
	}
	text := fieldpath.NewSet(fieldpath.Fields("spec", "text"), fieldpath.Fields("spec", "labels"))
	count := fieldpath.Pattern{fieldpath.Field("spec"), fieldpath.Field("count")}
	for _, row := range []struct {
		name   string
		filter fieldpath.Filter
		live   string
		intent string
	}{
		{"changed", fieldpath.Excluding(text), "spec: {count: 1, text: a}", "spec: {count: 1, text: b}"},
		{"added", fieldpath.Excluding(text), "spec: {count: 1}", "spec: {count: 1, text: b, labels: {k: v}}"},
		{"another shape", fieldpath.Excluding(text), "spec: {count: 1, labels: null}", "spec: {count: 1, labels: {k: v}}"},
		{"by a pattern, changed", fieldpath.Including(count), "spec: {count: 1, text: a}", "spec: {count: 1, text: b}"},
		{"by a pattern, added", fieldpath.Including(count), "spec: {count: 1}", "spec: {count: 1, labels: {k: v}, ports: [{port: 1}]}"},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := newManager(t, "v1", reset(row.filter))
			live, err := m.Apply(stored(object(t, "v1", row.live)), object(t, "v1", "spec: {count: 1}"), "alice", false)
			require.NoError(t, err)
			p, err := m.Plan(live, object(t, "v1", row.intent), "alice", fieldmanager.PlanOptions{})
			require.NoError(t, err)
			require.Equal(t, "unchanged", oneLine(p))
			p, err = m.Plan(live, object(t, "v1", strings.Replace(row.intent, "count: 1", "count: 2", 1)), "alice", fieldmanager.PlanOptions{Force: true})
			require.NoError(t, err)
			require.Contains(t, oneLine(p), "changed\nmodified .spec.count 1 2\n", "and nothing else")
		})
	}
}

// An entry that is dated anew moves to another place in the list, which a server
// writes even where the object came out the same.
func TestPlanOfAnotherOrderOfEntries(t *testing.T) {
	kind := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	pod := func(text string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: parse(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n"+text)}
	}
	now := start
	m := builtinManager(t, kind, fieldmanager.WithClock(func() time.Time { return now }))
	options := fieldmanager.PlanOptions{Defaults: true, Semantics: typed.Canonical(nil)}
	cpu := func(s string) *unstructured.Unstructured {
		return pod("spec: {containers: [{name: a, env: [], resources: {limits: {cpu: " + s + "}}}]}")
	}
	live, err := m.Apply(nil, cpu("1"), "alice", false)
	require.NoError(t, err)
	now = now.Add(time.Minute)
	p, err := m.Plan(stored(live), cpu("1000m"), "alice", options)
	require.NoError(t, err)
	require.Equal(t, "unchanged", oneLine(p), "one amount, and one entry")

	live, err = m.Apply(stored(live), pod("metadata: {name: x, labels: {k: v}}"), "zoe", false)
	require.NoError(t, err)
	now = now.Add(time.Minute)
	p, err = m.Plan(stored(live), cpu("1000m"), "alice", options)
	require.NoError(t, err)
	require.Equal(t, "ownership only", oneLine(p), "alice's entry now stands after zoe's")
}

// What a server's own code defaults is for its host to say.
func TestPlanWithADefaulter(t *testing.T) {
	m := newManager(t, "v1", fieldmanager.WithDefaulter(func(obj runtime.Object) {
		u := obj.(*unstructured.Unstructured)
		if _, ok, _ := unstructured.NestedInt64(u.Object, "spec", "count"); !ok {
			_ = unstructured.SetNestedField(u.Object, int64(1), "spec", "count")
		}
	}))
	live, err := m.Apply(nil, object(t, "v1", "spec: {text: a, count: 1}"), "alice", false)
	require.NoError(t, err)
	p, err := m.Plan(stored(live), object(t, "v1", "spec: {text: a}"), "alice", fieldmanager.PlanOptions{})
	require.NoError(t, err)
	require.Equal(t, "ownership only\nalice loses .spec.count removes .spec.count", oneLine(p), "what was given up comes back as the default")
}

func TestPlanOfGoStructs(t *testing.T) {
	m := widgetManager(t, "v1")
	w := newWidget(widgetSpec{})
	out, err := m.Apply(nil, asTreeWith(t, w, "text", "a"), "alice", false)
	require.NoError(t, err)
	live := &widget{}
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(contents(out), live))
	p, err := m.Plan(live, asTreeWith(t, w, "text", "a"), "alice", fieldmanager.PlanOptions{})
	require.NoError(t, err)
	require.Equal(t, fieldmanager.Unchanged, p.Outcome)
	p, err = m.Plan(live, asTreeWith(t, w, "text", "b"), "alice", fieldmanager.PlanOptions{})
	require.NoError(t, err)
	require.Equal(t, fieldmanager.Changed, p.Outcome)
	require.IsType(t, live, p.Merged)
}

// TestPlanErrors shows that a plan fails where the apply does, and for an intent
// that is for another object.
func TestPlanErrors(t *testing.T) {
	m := newManager(t, "v1")
	live := stored(object(t, "v1", "spec: {text: a}"))
	live.SetResourceVersion("7")
	with := func(name, v string) *unstructured.Unstructured {
		u := object(t, "v1", "spec: {text: a}")
		require.NoError(t, unstructured.SetNestedField(u.Object, v, "metadata", name))
		return u
	}
	for _, row := range []struct {
		name         string
		live, intent runtime.Object
		want         string
		precondition bool
	}{
		{"another resourceVersion", live, with("resourceVersion", "6"), `metadata.resourceVersion: precondition failed: expected "6", the object has "7"`, true},
		{"another uid", live, with("uid", "x"), `metadata.uid: precondition failed: expected "x", the object has "uid"`, true},
		{"no object", nil, with("uid", "x"), `metadata.uid: precondition failed: expected "x", the object has ""`, true},
		{"unknown field", live, object(t, "v1", "spec: {what: a}"), "applied object Thing x: .spec.what: field not declared in schema", false},
		{"nothing", live, nil, "no object to apply", false},
		{"live of the wrong kind", &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.dev/v1", "metadata": "x"}},
			object(t, "v1", "spec: {}"), "live object: metadata: expected a map, got string", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := m.Plan(row.live, row.intent, "alice", fieldmanager.PlanOptions{})
			require.EqualError(t, err, row.want)
			if row.precondition {
				require.ErrorIs(t, err, fieldmanager.ErrPrecondition)
				return
			}
			_, applyErr := m.Apply(row.live, row.intent, "alice", false)
			require.Equal(t, applyErr, err)
		})
	}
	p, err := m.Plan(live, with("resourceVersion", "7"), "alice", fieldmanager.PlanOptions{})
	require.NoError(t, err)
	require.Equal(t, fieldmanager.OwnershipOnly, p.Outcome)
}
