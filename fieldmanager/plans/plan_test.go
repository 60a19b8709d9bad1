package plans_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// oneLine returns the text of a plan: outcome, changes, conflicts, ownership.
func oneLine(p *plans.Plan) string {
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
			if !part.set.IsEmpty() {
				fmt.Fprintf(&b, " %s %s", part.verb, strings.ReplaceAll(strings.TrimSpace(part.set.String()), "\n", ","))
			}
		}
		fmt.Fprintln(&b)
	}
	return strings.TrimSpace(b.String())
}

// TestPlan shows plans with each outcome (spec rules 13.1, 13.2 and 13.3).
func TestPlan(t *testing.T) {
	day := start.Add(24 * time.Hour)
	live := func(t *testing.T) *unstructured.Unstructured {
		m := newManager(t, "v1")
		out, err := writetest.Apply(m,
			nil,
			object(t, "v1", "spec: {text: a, count: 1, ports: [{port: 80}, {port: 90}]}"),
			"alice",
			false,
		)
		require.NoError(t, err)
		return stored(out)
	}
	const same = "spec: {text: a, count: 1, ports: [{port: 80}, {port: 90}]}"
	for _, row := range []struct {
		name, manager, version, intent string
		options                        plans.Options
		want, why                      string
	}{
		{"the same again", "alice", "v1", same, plans.Options{}, "unchanged", "nothing is written"},
		{"the same at another version", "alice", "v2", same, plans.Options{}, "ownership only\nalice",
			"the entry is of another version then"},
		{"a field more", "alice", "v1", "spec: {text: a, count: 1, ports: [{port: 80}, {port: 90}], labels: {k: v}}",
			plans.Options{},
			"changed\nadded .spec.labels null {\"k\":\"v\"}\nalice gains .spec.labels.k", "a whole that is added is one change"},
		{"a field less", "alice", "v1", "spec: {text: a, ports: [{port: 80}, {port: 90}]}", plans.Options{},
			"changed\nremoved .spec.count 1 null\nalice loses .spec.count removes .spec.count", "nobody else owns it"},
		{"an item less", "alice", "v1", "spec: {text: a, count: 1, ports: [{port: 90}]}", plans.Options{},
			"changed\n" + `removed .spec.ports[port=80,protocol="TCP"] {"port":80} null` + "\n" +
				`alice loses .spec.ports[port=80,protocol="TCP"],.spec.ports[port=80,protocol="TCP"].port` +
				` removes .spec.ports[port=80,protocol="TCP"],.spec.ports[port=80,protocol="TCP"].port`,
			"a whole that goes is one change"},
		{"another order", "alice", "v1", "spec: {text: a, count: 1, ports: [{port: 90}, {port: 80}]}", plans.Options{},
			`changed
reordered .spec.ports [{"port":80},{"port":90}] [{"port":90},{"port":80}]`,
			"the object changes, and whose it is does not"},
		{"shared", "bob", "v1", "spec: {text: a}", plans.Options{},
			"ownership only\nbob gains .spec.text shares .spec.text", "the value is live's"},
		{"added by another", "bob", "v1", "spec: {set: [x]}", plans.Options{},
			"changed\nadded .spec.set null [\"x\"]\nbob gains .spec.set[=\"x\"]", "which is nobody's"},
		{"conflict", "bob", "v1", "spec: {text: b, count: 1}", plans.Options{},
			"conflict\nmodified .spec.text \"a\" \"b\"\nconflict .spec.text alice\n" +
				"alice loses .spec.text\nbob gains .spec.count,.spec.text shares .spec.count",
			"what is said is what force would do"},
		{"forced", "bob", "v1", "spec: {text: b, count: 1}", plans.Options{Force: true},
			"changed\nmodified .spec.text \"a\" \"b\"\nconflict .spec.text alice\n" +
				"alice loses .spec.text\nbob gains .spec.count,.spec.text shares .spec.count",
			"what is taken from whom is told too"},
		{"a default in live only", "alice", "v1",
			"spec: {text: a, count: 1, ports: [{port: 80, protocol: TCP}, {port: 90}]}", plans.Options{Defaults: true},
			`ownership only
alice gains .spec.ports[port=80,protocol="TCP"].protocol`, "the value was the default already"},
		{"without defaults", "alice", "v1", "spec: {text: a, count: 1, ports: [{port: 80, protocol: TCP}, {port: 90}]}",
			plans.Options{},
			`changed
added .spec.ports[port=80,protocol="TCP"].protocol null "TCP"
alice gains .spec.ports[port=80,protocol="TCP"].protocol`, "nobody said that a server fills it in"},
		{"an empty list", "alice", "v1", "spec: {text: a, count: 1, ports: [{port: 80}, {port: 90}], set: []}",
			plans.Options{Semantics: typed.Canonical(nil)},
			"unchanged", "which says nothing where types are Go structs"},
		{"an empty list of a custom resource", "alice", "v1",
			"spec: {text: a, count: 1, ports: [{port: 80}, {port: 90}], set: []}", plans.Options{},
			"changed\nadded .spec.set null []", "and is written where they are not"},
		{"a null", "alice", "v1", "spec: {text: a, count: 1, ports: [{port: 80}, {port: 90}], set: null}",
			plans.Options{Defaults: true},
			"ownership only\nalice gains .spec.set", "a server drops it from the object, not from the entry"},
		{"metadata of the server", "alice", "v1",
			"metadata: {name: x, creationTimestamp: null, generation: 7, uid: uid}\n" + same, plans.Options{},
			"unchanged", "a server keeps its own"},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := newManager(t, row.version, func(o *fieldmanager.Options) { o.Clock = func() time.Time { return day } })
			text := row.intent
			if !strings.HasPrefix(text, "metadata") {
				text = "metadata: {name: x}\n" + text
			}
			intent := &unstructured.Unstructured{Object: parse(t, "apiVersion: example.dev/"+row.version+"\n"+text)}
			obj := live(t)
			before := obj.DeepCopy()
			p, err := plans.New(t.Context(), m, obj, intent, as(row.manager, row.options))
			require.NoError(t, err)
			require.Equal(t, row.want, oneLine(p), row.why)
			require.Equal(t, before, obj, "planning changes nothing")
			merged, err := writetest.Apply(m, obj, intent, row.manager, row.options.Force || len(p.Conflicts) > 0)
			require.NoError(t, err)
			require.Equal(t, merged, p.Object, "merged is what Apply returns")
		})
	}
}

// TestPlanAsText: the text for logs has the outcome, the first changed paths, and the owners of conflicts, but no
// values.
func TestPlanAsText(t *testing.T) {
	m := newManager(t, "v1")
	live, err := writetest.Apply(m, nil, object(t, "v1", "spec: {text: secret, labels: {}}"), "alice", false)
	require.NoError(t, err)
	for intent, want := range map[string]string{
		"spec: {text: secret}": "ownership only",
		"spec: {text: other}":  `conflict: modified .spec.text; in conflict: .spec.text of "alice"`,
		"spec: {labels: {a: '', b: '', c: '', d: '', e: '', f: '', g: '', h: '', i: '', j: '', k: ''}}": `changed: ` +
			`added .spec.labels.a, added .spec.labels.b, added .spec.labels.c, added .spec.labels.d, added .spec.labels.e, ` +
			`added .spec.labels.f, added .spec.labels.g, added .spec.labels.h, added .spec.labels.i, added .spec.labels.j, …`,
	} {
		p, err := plans.New(t.Context(), m, stored(live), object(t, "v1", intent), plans.Options{Manager: "bob"})
		require.NoError(t, err)
		require.Equal(t, want, p.String())
	}
}

func TestPlanOfACreate(t *testing.T) {
	m := newManager(t, "v1")
	p, err := plans.New(t.Context(), m, nil, object(t, "v1", "spec: {text: a}"), plans.Options{Manager: "alice"})
	require.NoError(t, err)
	require.Equal(t, `changed
added .apiVersion null "example.dev/v1"
added .kind null "Thing"
added .metadata null {"name":"x"}
added .spec null {"text":"a"}
alice gains .spec.text`, oneLine(p))
}

// TestPlanOfTheFirstApply: the first apply to an untracked object gives its fields to before-first-apply, and the plan
// shows this.
func TestPlanOfTheFirstApply(t *testing.T) {
	m := newManager(t, "v1")
	live := stored(object(t, "v1", "spec: {text: a, count: 1}"))
	p, err := plans.New(t.Context(), m, live, object(t, "v1", "spec: {text: a}"), plans.Options{Manager: "alice"})
	require.NoError(t, err)
	require.Equal(t, `ownership only
alice gains .spec.text shares .spec.text
before-first-apply gains .spec,.spec.count,.spec.text shares .spec.text`, oneLine(p))
}

// keeping is a filter of a host that keeps the paths in a set and the paths below them.
type keeping struct{ *fieldpath.Set }

func (k keeping) Filter(set *fieldpath.Set) *fieldpath.Set { return set.AtOrBelow(k.Set) }

// TestPlanPutsBack: fields that a write resets or that a server restores do not change (spec rules 2.9 and 13.1). They
// are as in live, whatever their shape, even if the write resets items, fields that live lacks, or all fields except
// one.
func TestPlanPutsBack(t *testing.T) {
	excluding := func(paths ...fieldpath.Path) fieldpath.Filter {
		return fieldpath.Excluding{Set: fieldpath.NewSet(paths...)}
	}
	spec := func(name string, below ...fieldpath.Element) fieldpath.Path {
		return append(fieldpath.NewPath("spec", name), below...)
	}
	text := excluding(spec("text"), spec("labels"))
	count := keeping{fieldpath.NewSet(spec("count"))}
	for _, row := range []struct {
		name, why    string
		filter       fieldpath.Filter
		live, intent string
		want         string // expected changes
	}{
		{"changed", "", text, "spec: {count: 1, text: a}", "spec: {count: 1, text: b}", "unchanged"},
		{"added", "", text, "spec: {count: 1}", "spec: {count: 1, text: b, labels: {k: v}}", "unchanged"},
		{"another shape", "", text, "spec: {count: 1, labels: null}", "spec: {count: 1, labels: {k: v}}", "unchanged"},
		{"beside another change", "", text, "spec: {count: 1, text: a}", "spec: {count: 2, text: b}",
			"changed\nmodified .spec.count 1 2"},
		{"all but one, changed", "", count, "spec: {count: 1, text: a}", "spec: {count: 1, text: b}", "unchanged"},
		{"all but one, added", "", count, "spec: {count: 1}",
			"spec: {count: 1, labels: {k: v}, ports: [{port: 1}]}", "unchanged"},
		{"all but one, beside another change", "", count, "spec: {count: 1}", "spec: {count: 2, labels: {k: v}}",
			"changed\nmodified .spec.count 1 2"},
		{"an item", "the list stays, empty", excluding(spec("set", fieldpath.ValueElement("p"))),
			"spec: {text: a}", "spec: {text: a, set: [p]}", "changed\nadded .spec.set null []"},
		{"what neither has", "", excluding(spec("labels", fieldpath.FieldElement("k"))), "spec: {text: a}", "spec: {text: b}",
			"changed\nmodified .spec.text \"a\" \"b\""},
		{"what the intent has and live has not, inside", "the map stays, empty",
			excluding(spec("labels", fieldpath.FieldElement("k"))),
			"spec: {text: a}", "spec: {text: a, labels: {k: v}}", "changed\nadded .spec.labels null {}"},
		{"a list where live has a map", "what is reset is as in live, whatever stands in its place",
			excluding(fieldpath.NewPath("status", "at")), "status: {at: x}", "status: [x]", "unchanged"},
	} {
		t.Run(row.name, func(t *testing.T) {
			reset := func(o *fieldmanager.Options) {
				o.ResetFields = map[string]fieldpath.Filter{"example.dev/v1": row.filter}
			}
			m, object := newManager(t, "v1", reset), object
			if strings.HasPrefix(row.live, "status") {
				m, object = anyManager(t, "v1", reset), anyAt
			}
			live, err := writetest.Apply(m, nil, object(t, "v1", row.live), "alice", false)
			require.NoError(t, err)
			p, err := plans.New(t.Context(), m, stored(live), object(t, "v1", row.intent), plans.Options{Manager: "alice"})
			require.NoError(t, err)
			changes, _, _ := strings.Cut(oneLine(p), "\nalice")
			require.Equal(t, row.want, changes, row.why)
		})
	}
}

// TestPlanRemovesNothingThatIsReset: a manager that owns a field which is reset now loses the field, and the field
// remains.
func TestPlanRemovesNothingThatIsReset(t *testing.T) {
	for _, row := range []struct {
		filter fieldpath.Filter
		want   string
	}{
		{nil, "changed\nremoved .spec.text \"a\" null\nalice loses .spec.text removes .spec.text"},
		{fieldpath.Excluding{Set: fieldpath.NewSet(fieldpath.NewPath("spec", "text"))},
			"ownership only\nalice loses .spec.text"},
	} {
		live, err := writetest.Apply(newManager(t, "v1"), nil, object(t, "v1", "spec: {count: 1, text: a}"), "alice", false)
		require.NoError(t, err)
		m := newManager(t, "v1", func(o *fieldmanager.Options) {
			if row.filter != nil {
				o.ResetFields = map[string]fieldpath.Filter{"example.dev/v1": row.filter}
			}
		})
		p, err := plans.New(t.Context(), m, stored(live), object(t, "v1", "spec: {count: 1}"),
			plans.Options{Manager: "alice"})
		require.NoError(t, err)
		require.Equal(t, row.want, oneLine(p))
	}
}

// TestPlanOfAnotherOrderOfEntries: an entry with a new time may move in the list. A server writes this change even if
// the object does not change.
func TestPlanOfAnotherOrderOfEntries(t *testing.T) {
	kind := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	pod := func(text string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: parse(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n"+text)}
	}
	now := start
	m := builtinManager(t, kind, func(o *fieldmanager.Options) { o.Clock = func() time.Time { return now } })
	options := plans.Options{Defaults: true, Semantics: typed.Canonical(nil)}
	cpu := func(s string) *unstructured.Unstructured {
		return pod("spec: {containers: [{name: a, env: [], resources: {limits: {cpu: " + s + "}}}]}")
	}
	live, err := writetest.Apply(m, nil, cpu("1"), "alice", false)
	require.NoError(t, err)
	now = now.Add(time.Minute)
	p, err := plans.New(t.Context(), m, stored(live), cpu("1000m"), as("alice", options))
	require.NoError(t, err)
	require.Equal(t, "unchanged", oneLine(p), "one amount, and one entry")

	live, err = writetest.Apply(m, stored(live), pod("metadata: {name: x, labels: {k: v}}"), "zoe", false)
	require.NoError(t, err)
	now = now.Add(time.Minute)
	p, err = plans.New(t.Context(), m, stored(live), cpu("1000m"), as("alice", options))
	require.NoError(t, err)
	require.Equal(t, "ownership only", oneLine(p), "alice's entry now stands after zoe's")
}

// TestPlanWithADefaulter: the host provides the defaults that a server sets in code.
func TestPlanWithADefaulter(t *testing.T) {
	m := newManager(t, "v1", func(o *fieldmanager.Options) {
		o.Defaulter = func(obj runtime.Object) {
			u := obj.(*unstructured.Unstructured)
			if _, ok, _ := unstructured.NestedInt64(u.Object, "spec", "count"); !ok {
				_ = unstructured.SetNestedField(u.Object, int64(1), "spec", "count")
			}
		}
	})
	live, err := writetest.Apply(m, nil, object(t, "v1", "spec: {text: a, count: 1}"), "alice", false)
	require.NoError(t, err)
	p, err := plans.New(
		t.Context(), m, stored(live),
		object(t, "v1", "spec: {text: a}"),
		plans.Options{Manager: "alice"},
	)
	require.NoError(t, err)
	require.Equal(
		t,
		"ownership only\nalice loses .spec.count",
		oneLine(p),
		"what was given up is set again, by the default",
	)
}

// TestPlanWithCodeOfTheServer: fields that a server's code restores before storing an update do not change, and an
// object that the code rejects is an error.
func TestPlanWithCodeOfTheServer(t *testing.T) {
	m := newManager(t, "v1")
	live, err := writetest.Apply(m, nil, object(t, "v1", "spec: {text: a, count: 1}"), "alice", false)
	require.NoError(t, err)
	text := func(obj runtime.Object) any {
		return obj.(*unstructured.Unstructured).Object["spec"].(map[string]any)["text"]
	}
	options := plans.Options{
		Prepare: func(merged, live runtime.Object) {
			merged.(*unstructured.Unstructured).Object["spec"].(map[string]any)["text"] = text(live)
		},
		Validate: func(merged, live runtime.Object) error {
			if live == nil || text(merged) != text(live) {
				return errors.New("text can't be changed")
			}
			return nil
		},
	}
	intent := object(t, "v1", "spec: {text: b, count: 1}")
	given := intent.DeepCopy()
	p, err := plans.New(t.Context(), m, stored(live), intent, as("alice", options))
	require.NoError(t, err)
	require.Equal(t, "unchanged", oneLine(p))
	require.Equal(t, given, intent)

	options.Prepare = nil
	_, err = plans.New(t.Context(), m, stored(live), intent, as("alice", options))
	require.EqualError(t, err, "text can't be changed")
	_, err = plans.New(t.Context(), m, nil, intent, as("alice", options))
	require.EqualError(t, err, "text can't be changed")
	p, err = plans.New(t.Context(), m, stored(live), intent, as("bob", options))
	require.NoError(t, err)
	require.Equal(t, plans.Conflict, p.Outcome, "a server finds conflicts first")
}

func TestPlanOfGoStructs(t *testing.T) {
	m := widgetManager(t, "v1")
	w := newWidget(widgetSpec{})
	out, err := writetest.Apply(m, nil, asTreeWith(t, w, "text", "a"), "alice", false)
	require.NoError(t, err)
	live := &widget{}
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(contents(out), live))
	p, err := plans.New(t.Context(), m, live, asTreeWith(t, w, "text", "a"), plans.Options{Manager: "alice"})
	require.NoError(t, err)
	require.Equal(t, plans.Unchanged, p.Outcome)
	p, err = plans.New(t.Context(), m, live, asTreeWith(t, w, "text", "b"), plans.Options{Manager: "alice"})
	require.NoError(t, err)
	require.Equal(t, plans.Changed, p.Outcome)
	require.IsType(t, live, p.Object)
}

// TestPlanErrors shows that a plan fails if the apply fails, and if the intent is for another object.
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
		{"another resourceVersion", live, with("resourceVersion", "6"),
			`metadata.resourceVersion: precondition failed: expected "6", the object has "7"`, true},
		{"another uid", live, with("uid", "x"), `metadata.uid: expected "uid", which is immutable, got "x"`, false},
		{"no object", nil, with("uid", "x"), `metadata.uid: precondition failed: expected "x", the object has ""`, true},
		{"unknown field", live, object(t, "v1", "spec: {what: a}"),
			"applied object (x; example.dev/v1, Kind=Thing): .spec.what: field not declared in schema", false},
		{"nothing", live, nil, "no object to apply", false},
		{"live of the wrong kind",
			&unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.dev/v1", "metadata": "x"}},
			object(t, "v1", "spec: {}"), "live object: metadata: expected a map, got string", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := plans.New(t.Context(), m, row.live, row.intent, plans.Options{Manager: "alice"})
			require.EqualError(t, err, row.want)
			if row.precondition {
				require.ErrorIs(t, err, plans.ErrPrecondition)
				return
			}
			require.NotErrorIs(t, err, plans.ErrPrecondition)
			if row.name == "another uid" {
				return // a server validates the uid with the metadata
			}
			_, applyErr := writetest.Apply(m, row.live, row.intent, "alice", false)
			require.Equal(t, applyErr, err)
		})
	}
	p, err := plans.New(t.Context(), m, live, with("resourceVersion", "7"), plans.Options{Manager: "alice"})
	require.NoError(t, err)
	require.Equal(t, plans.OwnershipOnly, p.Outcome)
}

func TestOutcomesAsText(t *testing.T) {
	for outcome, want := range map[plans.Outcome]string{
		plans.Unchanged: "unchanged", plans.OwnershipOnly: "ownership only",
		plans.Changed: "changed", plans.Conflict: "conflict", 9: "Outcome(9)",
	} {
		text, err := json.Marshal(map[plans.Outcome]plans.Outcome{outcome: outcome})
		require.NoError(t, err)
		require.JSONEq(t, fmt.Sprintf("{%q: %q}", want, want), string(text))
	}
}

// TestPlanOfABrokenEntry: an entry that can't be decoded owns nothing, and the host gets a warning.
func TestPlanOfABrokenEntry(t *testing.T) {
	type m = map[string]any
	entry := func(manager string, fields m) m {
		return m{
			"manager": manager, "operation": "Apply", "apiVersion": "example.dev/v1", "time": "2026-01-02T03:04:05Z",
			"fieldsType": "FieldsV1", "fieldsV1": fields,
		}
	}
	var warnings []fieldmanager.Warning
	fm := newManager(t, "v1", func(o *fieldmanager.Options) {
		o.Warnings = func(w fieldmanager.Warning) { warnings = append(warnings, w) }
	})
	live := stored(object(t, "v1", "spec: {text: a, count: 1}"))
	live.Object["metadata"].(m)["managedFields"] = []any{
		entry("alice", m{"f:spec": m{"k:{": m{}}}), entry("bob", m{"f:spec": m{"f:count": m{}}}),
	}
	p, err := plans.New(t.Context(), fm, live, object(t, "v1", "spec: {text: a}"), plans.Options{Manager: "alice"})
	require.NoError(t, err)
	require.Equal(t, "ownership only\nalice gains .spec.text", oneLine(p))
	require.NotEmpty(t, warnings)
	p, err = plans.New(t.Context(), fm, live, object(t, "v1", "spec: {text: b}"), plans.Options{Manager: "bob"})
	require.NoError(t, err)
	require.Equal(t, "changed\nmodified .spec.text \"a\" \"b\"\nremoved .spec.count 1 null\n"+
		"bob gains .spec.text loses .spec.count removes .spec.count", oneLine(p),
		"alice's is kept, as no change of it can be told")
}

// TestPlansThatCannotBeMade: a plan fails, like the apply, if a defaulter or a Go struct can't take the merged object,
// and also if only the plan calls the defaulter.
func TestPlansThatCannotBeMade(t *testing.T) {
	large := func(set *fieldmanager.Options) {
		set.Defaulter = func(o runtime.Object) { o.(*counted).Large = math.MaxUint64 }
	}
	infinite := math.Inf(1)
	live := &counted{Widget: *newWidget(widgetSpec{Text: "a"})}
	live.UID = "uid"
	for _, row := range []struct {
		name, why string
		options   []func(*fieldmanager.Options)
		live      runtime.Object
		intent    runtime.Object
		want      string
		applies   bool // whether Apply succeeds
	}{
		{"a struct without room", "1.5 is no int64", nil, live, asTreeWith(t, newWidget(widgetSpec{}), "count", 1.5),
			"*writetest.Counted: ", false},
		{"defaults that are no JSON", "an apply makes no JSON of them", []func(*fieldmanager.Options){large}, live,
			newWidget(widgetSpec{Text: "b"}), "merged object: ", true},
		{"live that is no JSON", "the precondition is not told, but the apply's error", nil,
			newWidget(widgetSpec{Ratio: &infinite}), newWidget(widgetSpec{Text: "a"}),
			"live object: ", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := widgetManager(t, "v1", row.options...)
			_, err := plans.New(t.Context(), m, row.live, row.intent, plans.Options{Manager: "alice", Force: true})
			require.ErrorContains(t, err, row.want, row.why)
			_, applyErr := writetest.Apply(m, row.live, row.intent, "alice", true)
			if row.applies {
				require.NoError(t, applyErr)
			} else {
				require.EqualError(t, applyErr, err.Error())
			}
		})
	}
	options := plans.Options{
		Force:     true,
		Defaulter: func(o runtime.Object) { o.(*counted).Large = math.MaxUint64 },
	}
	_, err := plans.New(t.Context(), widgetManager(t, "v1"), live, newWidget(widgetSpec{Text: "b"}), as("alice", options))
	require.ErrorContains(t, err, "defaulting: ", "an apply does not default it; the plan does, to compare it")
}

// TestChangesOfItemsWithoutKeys: a change of an item that does not fit its type is a change of the list around it.
func TestChangesOfItemsWithoutKeys(t *testing.T) {
	accounts, err := openapi.Builtin().Type(schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"})
	require.NoError(t, err)
	named := map[string]any{"name": "s"}
	before := map[string]any{"secrets": []any{named, map[string]any{}}}
	after := map[string]any{"secrets": []any{named}}
	changes := slices.Collect(plans.Changes(accounts, nil, before, after))
	require.Equal(t, []plans.Change{{
		Kind: plans.Modified, Path: fieldpath.NewPath("secrets"), Before: before["secrets"], After: after["secrets"],
	}}, changes)
	require.Empty(t, slices.Collect(plans.Changes(accounts, nil, before, before)))
}

// TestChangesOfDuplicates: an item that has duplicates in one of the objects is modified, not added and removed.
func TestChangesOfDuplicates(t *testing.T) {
	accounts, err := openapi.Builtin().Type(schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"})
	require.NoError(t, err)
	a, b := map[string]any{"name": "s", "uid": "a"}, map[string]any{"name": "s", "uid": "b"}
	twice, once := map[string]any{"secrets": []any{a, b}}, map[string]any{"secrets": []any{a}}
	for range 2 {
		changes := slices.Collect(plans.Changes(accounts, nil, twice, once))
		require.Len(t, changes, 1)
		require.Equal(t, `modified .secrets[name="s"]`, changes[0].String())
		twice, once = once, twice
	}
}

// TestChangesStop: an iteration over changes can stop at each change.
func TestChangesStop(t *testing.T) {
	m := newManager(t, "v1")
	live, err := writetest.Apply(m, nil, object(t, "v1", "spec: {text: a, count: 1}"), "alice", false)
	require.NoError(t, err)
	p, err := plans.New(
		t.Context(), m, stored(live),
		object(t, "v1", "spec: {text: b, set: [p]}"),
		plans.Options{Manager: "alice"},
	)
	require.NoError(t, err)
	var all []string
	for c := range p.Changes() {
		all = append(all, c.Path.String())
	}
	require.Equal(t, []string{".spec.set", ".spec.text", ".spec.count"}, all)
	for n := range all {
		var some []string
		for c := range p.Changes() {
			if some = append(some, c.Path.String()); len(some) == n+1 {
				break
			}
		}
		require.Equal(t, all[:n+1], some)
	}
}

// as returns options for an apply of a manager.
func as(manager string, options plans.Options) plans.Options {
	options.Manager = manager
	return options
}
