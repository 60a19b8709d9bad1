package attacks_test

import (
	"context"
	"encoding/json"
	"io"
	gomaps "maps"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	upstreamv4 "sigs.k8s.io/structured-merge-diff/v4/typed"
	upstreamv6 "sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/tenure-ssa/tenure/compat/apimachinery"
	"github.com/tenure-ssa/tenure/compat/csaupgrade"
	"github.com/tenure-ssa/tenure/compat/smdv4"
	"github.com/tenure-ssa/tenure/compat/smdv6"
	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/conflicts/policy"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/applier"
	"github.com/tenure-ssa/tenure/fieldmanager/fieldmanagertest"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership"
	"github.com/tenure-ssa/tenure/ownership/blame"
	"github.com/tenure-ssa/tenure/ownership/conflictreport"
	"github.com/tenure-ssa/tenure/ownership/excess"
	"github.com/tenure-ssa/tenure/ownership/fights"
	"github.com/tenure-ssa/tenure/ownership/report"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
	"github.com/tenure-ssa/tenure/upgrade"
)

// goThing is a Thing as a Go struct.
type goThing struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              map[string]any `json:"spec,omitempty"`
}

func (g *goThing) DeepCopyObject() runtime.Object {
	if g == nil {
		return (*goThing)(nil)
	}
	copied := *g // a shallow copy is enough, because callers only read
	return &copied
}

// oddValues are values that no JSON decoder returns.
func oddValues() map[string]any {
	type named string
	circle := tree{}
	circle["self"] = circle
	list := []any{nil}
	list[0] = list
	var noMap tree
	var noStruct *goThing
	return map[string]any{
		"nothing": nil, "a nil map": noMap, "a nil list": []any(nil), "a nil pointer": noStruct,
		"an int": 7, "an int8": int8(-1), "an uint64": ^uint64(0), "a float32": float32(0.1),
		"a json.Number": json.Number("1e400"), "no json.Number": json.Number("x"), "a named string": named("x"),
		"a typed map": map[string]string{"a": "b"}, "a map of ints": map[int]any{1: 2}, "a typed list": []string{"a"},
		"a list of maps": []map[string]any{{"name": "a"}}, "a func": func() {}, "a chan": make(chan int),
		"a struct": struct{ A int }{1}, "bytes": []byte("x"), "a pointer": new(3), "not UTF-8": "\xff",
		"a circle": circle, "a circle of lists": list, "an empty map": tree{}, "an empty list": []any{}, "a string": "x",
		"a list": []any{nil, 1, "a", tree{"name": 1}, func() {}}, "a map": tree{"name": 1, "": nil, "\xff": func() {}},
	}
}

// odd is one input of [everyFunction]: a value, and an object that contains it at some place.
type odd struct {
	what  string
	value any
	obj   runtime.Object
}

func (o odd) tree() tree {
	t, _ := o.value.(tree)
	if u, ok := o.obj.(*unstructured.Unstructured); ok && u != nil {
		t = u.Object
	}
	return t
}

// isReadByAccessors reports whether Unstructured's own accessors read a place. They print a value of an unexpected
// type, and fmt never finishes printing a cycle: the process crashes, whoever calls them.
func isReadByAccessors(place string) bool {
	return place == "apiVersion" || place == "kind" || place == "last-applied" ||
		strings.HasPrefix(place, "metadata") && place != "metadata.managedFields"
}

// oddities returns each odd value at each place that the engine reads.
func oddities() (all []odd) {
	entry := func(member string, v any) []any {
		e := tree{"manager": "m", "operation": "Apply", "apiVersion": "example.dev/v1", "fieldsType": "FieldsV1",
			"fieldsV1": tree{"f:spec": tree{"f:any": tree{}}}}
		e[member] = v
		return []any{e}
	}
	const last = "kubectl.kubernetes.io/last-applied-configuration"
	for name, v := range oddValues() {
		add := func(place string, change func(obj tree)) {
			if strings.HasPrefix(name, "a circle") && isReadByAccessors(place) {
				return
			}
			u := object(tree{"text": "x"})
			change(u.Object)
			all = append(all, odd{name + " as " + place, v, u})
		}
		for _, member := range []string{"apiVersion", "kind", "metadata", "spec", "status"} {
			add(member, func(obj tree) { obj[member] = v })
		}
		for _, member := range []string{"name", "uid", "resourceVersion", "annotations", "managedFields", "creationTimestamp"} {
			add("metadata."+member, func(obj tree) { obj["metadata"] = tree{"name": "x", member: v} })
		}
		add("last-applied", func(obj tree) { obj["metadata"] = tree{"annotations": tree{last: v}} })
		for _, member := range []string{"manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource"} {
			add("an entry's "+member, func(obj tree) { obj["metadata"] = tree{"managedFields": entry(member, v)} })
		}
		add("an owned field", func(obj tree) {
			obj["metadata"], obj["spec"] = tree{"managedFields": entry("time", nil)}, tree{"any": v}
		})
		add("an entry's field", func(obj tree) {
			obj["metadata"] = tree{"managedFields": entry("fieldsV1", tree{"f:spec": v})}
		})
		for _, member := range []string{"any", "list", "set", "map", "atomic", "amount", "number", "self", "undeclared"} {
			add("spec."+member, func(obj tree) { obj["spec"] = tree{member: v} })
			add("an item of spec."+member, func(obj tree) { obj["spec"] = tree{member: []any{v, tree{"name": v}}} })
		}
		all = append(all, odd{name + " in a Go struct", v, &goThing{
			TypeMeta: metav1.TypeMeta{APIVersion: "example.dev/v1", Kind: "Thing"}, Spec: tree{"any": v},
		}})
		if object, ok := v.(tree); ok {
			all = append(all, odd{name + " as an object", v, &unstructured.Unstructured{Object: object}})
		}
	}
	return append(all,
		odd{what: "no object"},
		odd{what: "a nil *Unstructured", obj: (*unstructured.Unstructured)(nil)},
		odd{what: "a nil Go struct", obj: (*goThing)(nil)},
		odd{what: "an empty Go struct", obj: &goThing{}},
		odd{what: "a list", obj: &unstructured.UnstructuredList{}},
	)
}

// asUnstructured returns obj if it is unstructured; otherwise a nil pointer.
func asUnstructured(obj runtime.Object) *unstructured.Unstructured {
	u, _ := obj.(*unstructured.Unstructured)
	return u
}

// silent is a TB that ignores failures.
type silent struct{}

type failed struct{}

func (silent) Helper()               {}
func (silent) Errorf(string, ...any) {}
func (silent) FailNow()              { panic(failed{}) }

// inHarness calls do with a harness whose failures are ignored.
func inHarness(do func(*fieldmanagertest.Harness), options ...fieldmanagertest.Option) {
	defer func() {
		if r := recover(); r != nil && r != (failed{}) {
			panic(r)
		}
	}()
	do(fieldmanagertest.New(silent{}, options...))
}

// sameAtAll is a converter for objects that are the same at all versions.
type sameAtAll struct{ runtime.ObjectConvertor }

func (sameAtAll) ConvertToVersion(obj runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return obj, nil
}

func (sameAtAll) Default(runtime.Object) {}

func (sameAtAll) New(schema.GroupVersionKind) (runtime.Object, error) {
	return &unstructured.Unstructured{}, nil
}

// stores is a resource that stores every object.
type stores struct{}

func (stores) Apply(_ context.Context, _ string, obj *unstructured.Unstructured, _ metav1.ApplyOptions, _ ...string) (
	*unstructured.Unstructured, error) {
	return obj, nil
}

// everyFunction calls each exported function that takes an object, by its name in [exported].
func everyFunction() map[string]func(odd) {
	ctx := context.Background()
	good := object(tree{"text": "x", "any": tree{"a": "b"}})
	spec := fieldpath.NewSet(fieldpath.NewPath("spec"), fieldpath.NewPath("spec", "any", "a"))
	live := func(f func(live, other runtime.Object)) func(odd) {
		return func(o odd) {
			f(o.obj, good)
			f(good, o.obj)
			f(o.obj, o.obj)
			f(nil, o.obj)
		}
	}
	pair := func(f func(t *typed.Type, a, b any)) func(odd) {
		return func(o odd) {
			for _, t := range []*typed.Type{thing, bare, typed.Deduced(), typed.UntypedAtomic(), {}} {
				f(t, o.value, good.Object)
				f(t, good.Object, o.value)
				f(t, o.tree(), good.Object)
				f(t, good.Object, o.tree())
				f(t, o.tree(), o.tree())
			}
		}
	}
	single := func(f func(t *typed.Type, v any)) func(odd) { return pair(func(t *typed.Type, v, _ any) { f(t, v) }) }
	canonical := typed.Canonical(nil)
	converted := func(o *fieldmanager.Options) { o.Converter = fieldmanager.NoneConverter{} }
	m, mover := manager(converted), ownership.Mover{Types: types{thing}}
	old, err := apimachinery.NewDefaultCRDFieldManager(apimachinery.NewDeducedTypeConverter(),
		sameAtAll{}, sameAtAll{}, sameAtAll{}, kind, kind.GroupVersion(), "", nil,
		func(o *fieldmanager.Options) { o.Errors = func(runtime.Object, error) {} })
	if err != nil {
		panic(err)
	}
	return map[string]func(odd){
		"typed.Equal":             pair(func(_ *typed.Type, a, b any) { typed.Equal(a, b) }),
		"typed.Semantics.Compare": pair(func(t *typed.Type, a, b any) { canonical.Compare(t, a, b) }),
		"typed.Semantics.Equal":   pair(func(t *typed.Type, a, b any) { canonical.Equal(t, a, b) }),
		"typed.Semantics.Merge":   pair(func(t *typed.Type, a, b any) { _, _ = canonical.Merge(t, a, b, typed.Rules{}) }),
		"typed.Type.Compare":      pair(func(t *typed.Type, a, b any) { t.Compare(a, b) }),
		"typed.Type.Default":      single(func(t *typed.Type, v any) { t.Default(v) }),
		"typed.Type.Extract":      single(func(t *typed.Type, v any) { t.Extract(v, spec, true) }),
		"typed.Type.FieldSet":     single(func(t *typed.Type, v any) { t.FieldSet(v) }),
		"typed.Type.Get":          single(func(t *typed.Type, v any) { t.Get(v, fieldpath.NewPath("spec", "any")) }),
		"typed.Type.IsReconciled": func(o odd) { thing.IsReconciled(o.tree()) },
		"typed.Type.Merge":        pair(func(t *typed.Type, a, b any) { _, _ = t.Merge(a, b, typed.Rules{}) }),
		"typed.Type.Remove":       single(func(t *typed.Type, v any) { t.Remove(v, spec) }),
		"typed.Type.RemoveToNull": single(func(t *typed.Type, v any) { t.RemoveToNull(v, spec) }),
		"typed.Type.Reordered":    pair(func(t *typed.Type, a, b any) { t.Reordered(a, b) }),
		"typed.Type.Validate":     single(func(t *typed.Type, v any) { _ = t.Validate(v, typed.Rules{}) }),

		"typed/fieldpath.FromTree": func(o odd) {
			_, _ = fieldpath.FromTree(o.tree())
			_, _ = fieldpath.FromTree(tree{"f:a": o.value})
		},
		"typed/fieldpath.KeyElement":   func(o odd) { fieldpath.KeyElement(fieldpath.KeyField{Name: "a", Value: o.value}) },
		"typed/fieldpath.ValueElement": func(o odd) { fieldpath.ValueElement(o.value) },

		"managedfields.Copy": live(func(a, b runtime.Object) { _, _ = managedfields.Copy(a, b) }),
		"managedfields.DecodeTree": func(o odd) {
			_, _ = managedfields.DecodeTree([]any{o.value, o.tree()})
			list, _ := o.value.([]any)
			_, _ = managedfields.DecodeTree(list)
		},
		"managedfields.Entries.Into": live(func(a, b runtime.Object) {
			l, _ := managedfields.Read(a)
			_, _ = l.Into(b)
		}),
		"managedfields.Entries.JSONPatch": func(o odd) {
			_, _ = managedfields.Entries{}.JSONPatch(o.obj)
			_, _ = managedfields.Entries{}.JSONPatch(good, o.tree(), tree{"value": o.value})
		},
		"managedfields.Equal": live(func(a, b runtime.Object) { managedfields.Equal(a, b, true) }),
		"managedfields.Of":    func(o odd) { managedfields.Of(o.tree()) },
		"managedfields.Read":  live(func(a, _ runtime.Object) { _, _ = managedfields.Read(a) }),
		"managedfields.ReadEntry": func(o odd) {
			_, _ = managedfields.ReadEntry(o.value, 0)
			e, err := managedfields.ReadEntry(tree{"manager": "m", "operation": "Apply", "fieldsV1": o.value}, 0)
			if err == nil {
				_ = e.Reconcile(thing)
				e.Intersection(spec)
			}
		},
		"managedfields.With": func(o odd) { managedfields.With(o.tree(), o.value) },

		"fieldmanager.New": func(o odd) {
			m, err := fieldmanager.New(kind, types{thing}, fieldmanager.Options{Empty: o.obj})
			if err == nil {
				_, _ = m.Apply(ctx, nil, good, fieldmanager.ApplyOptions{Manager: "a"})
				_, _ = m.Update(ctx, nil, good, fieldmanager.UpdateOptions{Manager: "a"})
			}
		},
		"fieldmanager.FieldManager.Apply": live(func(a, b runtime.Object) {
			_, _ = m.Apply(ctx, a, b, fieldmanager.ApplyOptions{Manager: "a"})
		}),
		"fieldmanager.FieldManager.At": live(func(a, _ runtime.Object) { _, _, _ = m.At(ctx, a, "example.dev/v2") }),
		"fieldmanager.FieldManager.Extract": live(func(a, _ runtime.Object) {
			_, _ = m.Extract(ctx, a, spec)
		}),
		"fieldmanager.FieldManager.FieldSet": live(func(a, _ runtime.Object) { _, _ = m.FieldSet(ctx, a) }),
		"fieldmanager.FieldManager.Update": live(func(a, b runtime.Object) {
			_, _ = m.Update(ctx, a, b, fieldmanager.UpdateOptions{Manager: "a"})
		}),
		"fieldmanager.FieldManager.UpdateNoErrors": live(func(a, b runtime.Object) {
			m.UpdateNoErrors(ctx, a, b, fieldmanager.UpdateOptions{Manager: "a"})
		}),
		"fieldmanager.NoneConverter.Convert": live(func(a, _ runtime.Object) {
			_, _ = fieldmanager.NoneConverter{}.Convert(ctx, a, schema.GroupVersion{Version: "v2"})
		}),

		"fieldmanager/plans.Changes": func(o odd) {
			for range plans.Changes(thing, nil, o.tree(), good.Object) {
			}
			for range plans.Changes(thing, canonical, good.Object, o.tree()) {
			}
		},
		"fieldmanager/plans.FoundBy": live(func(a, _ runtime.Object) {
			known := conflicts.Conflicts{{Path: fieldpath.NewPath("spec")}}
			_, _ = plans.FoundBy(known, a, known)
		}),
		"fieldmanager/plans.LeaveOut": live(func(a, _ runtime.Object) { _, _ = plans.LeaveOut(ctx, m, a, spec) }),
		"fieldmanager/plans.New": live(func(a, b runtime.Object) {
			if plan, err := plans.New(ctx, m, a, b, plans.Options{Manager: "a", Defaults: true}); err == nil {
				_ = plan.String()
			}
		}),
		"fieldmanager/plans.OtherForms": live(func(a, _ runtime.Object) {
			found := conflicts.Conflicts{{
				Path: fieldpath.NewPath("spec", "replicas"), APIVersion: m.Kind().GroupVersion().String(),
				Owner: managedfields.KeyOf("a", metav1.ManagedFieldsOperationApply, "", ""),
			}}
			_ = plans.OtherForms(ctx, m, a, found, plans.Options{Manager: "b", Defaults: true})
		}),
		"fieldmanager/plans.Resolve": live(func(a, b runtime.Object) {
			share := func(all conflicts.Conflicts) []conflicts.Decision {
				return slices.Repeat([]conflicts.Decision{conflicts.Share}, len(all))
			}
			_, _ = plans.Resolve(ctx, m, a, b, share, plans.Options{Manager: "a"})
		}),

		"fieldmanager/applier.Applier.Apply": live(func(a, b runtime.Object) {
			x := applier.New(m, applier.Options{Manager: "a"})
			cached, _ := a.(applier.Object)
			_, _ = x.Apply(ctx, stores{}, cached, asUnstructured(b))
			_, _ = x.Apply(ctx, stores{}, cached, asUnstructured(b))
			_, _ = applier.New(nil, applier.Options{Manager: "a"}).Apply(ctx, stores{}, cached, asUnstructured(a))
		}),
		"conflicts/policy.Policy.Decide": live(func(a, _ runtime.Object) {
			obj, _ := a.(*metav1.PartialObjectMetadata)
			decider.Decide(obj, conflicts.Conflicts{{Live: a}})
			decider.Decide(nil, conflicts.Conflicts{{Applied: a, Path: fieldpath.NewPath("a")}})
		}),
		"conflicts/policy.Policy.Permits": live(func(a, _ runtime.Object) {
			obj, _ := a.(*metav1.PartialObjectMetadata)
			decider.Permits(obj, policy.Owner{Manager: "a"}, fieldpath.NewPath("a"))
		}),
		"conflicts/policy.Policy.Resolve": live(func(a, _ runtime.Object) {
			obj, _ := a.(*metav1.PartialObjectMetadata)
			decider.Resolve(obj, conflicts.Conflicts{{Live: a}})
		}),
		"conflicts/policy.Policy.Test": live(func(a, _ runtime.Object) { decider.Test(exampleOf(a)) }),

		"ownership/excess.Find":      live(func(a, _ runtime.Object) { _, _ = excess.Find(decider, a) }),
		"ownership/excess.FindTaken": live(func(a, b runtime.Object) { _, _ = excess.FindTaken(decider, b, a) }),
		"ownership/excess.FindDrift": live(func(a, _ runtime.Object) {
			_, _ = excess.FindDrift(a, excess.DriftOptions{Type: typed.Deduced(), Policy: decider})
		}),

		"fieldmanager/fieldmanagertest.Apply": func(o odd) {
			inHarness(func(h *fieldmanagertest.Harness) { h.Do(fieldmanagertest.Apply("a", o.obj)) })
			inHarness(func(h *fieldmanagertest.Harness) { h.Do(fieldmanagertest.Apply("a", o.value)) })
		},
		"fieldmanager/fieldmanagertest.Patch": func(o odd) {
			inHarness(func(h *fieldmanagertest.Harness) { h.Do(fieldmanagertest.Patch("a", o.value)) })
		},
		"fieldmanager/fieldmanagertest.Update": func(o odd) {
			inHarness(func(h *fieldmanagertest.Harness) { h.Do(fieldmanagertest.Update("a", o.obj)) })
		},
		"fieldmanager/fieldmanagertest.Harness.Store": func(o odd) {
			inHarness(func(h *fieldmanagertest.Harness) { h.Store(o.obj) }, fieldmanagertest.WithDeduced())
		},
		"fieldmanager/fieldmanagertest.WithCRD": func(o odd) {
			inHarness(func(*fieldmanagertest.Harness) {}, fieldmanagertest.WithCRD(o.value))
		},

		"ownership.Edit.Next": live(func(a, b runtime.Object) {
			if e, err := mover.Edit(ctx, good); err == nil {
				e.Next(a, managedfields.Key{Manager: "a", Operation: "Apply"}, "example.dev/v1", b)
			}
		}),
		"ownership.Mover.Do": live(func(a, _ runtime.Object) {
			_, _ = mover.Do(ctx, a, ownership.Transfer{From: managedfields.Key{Manager: "m"},
				To: managedfields.Key{Manager: "n"}, All: true})
		}),
		"ownership.Mover.Edit": live(func(a, _ runtime.Object) { _, _ = mover.Edit(ctx, a) }),
		"ownership.Mover.Handover": live(func(a, b runtime.Object) {
			_, _ = mover.Handover(ctx, a, b, "m", spec, "t")
		}),
		"ownership.WithoutOtherStatus": live(func(a, _ runtime.Object) {
			_, _ = ownership.WithoutOtherStatus(a, "example.dev/v1")
		}),
		"ownership/blame.New": func(o odd) {
			if r, err := blame.New(o.tree(), blame.Options{Type: thing, ManagedFields: true}); err == nil {
				_ = blame.Text(io.Discard, nil, r)
			}
		},
		"ownership/report.Report.Add": func(o odd) {
			r := report.New(report.Options{})
			r.Add(ctx, report.Object{Tree: o.tree(), Types: types{thing}})
			r.Summary()
		},
		"ownership/fights.Changes": func(o odd) { fights.Changes(o.tree(), o.tree()) },
		"ownership/fights.Tracker.Observe": func(o odd) {
			t := fights.New(fights.Options{})
			t.Observe(good.Object, time.Unix(1, 0))
			t.Observe(o.tree(), time.Unix(2, 0))
			t.Observe(good.Object, time.Unix(3, 0))
		},
		"ownership/fights.Tracker.ObserveWrite": func(o odd) {
			t := fights.New(fights.Options{IdleWrites: 1})
			t.ObserveWrite(o.tree(), fights.Side{Manager: "m"}, time.Unix(1, 0))
			t.ObserveWrite(o.tree(), fights.Side{Manager: "m"}, time.Unix(2, 0))
		},
		"ownership/fights.Tracker.ObserveScale": func(o odd) {
			fights.New(fights.Options{}).ObserveScale(o.tree(), "a", time.Unix(2, 0))
		},
		"ownership/conflictreport.New": live(func(a, b runtime.Object) {
			_, _ = conflictreport.New(ctx, m, a, b, "x", plans.Options{Manager: "a"})
		}),
		"ownership/conflictreport.Texts": func(o odd) {
			conflictreport.Texts(o.value, o.tree())
			conflictreport.Texts(o.tree(), good.Object)
		},
		"ownership/conflictreport.ConflictTexts": func(o odd) {
			conflictreport.ConflictTexts(conflicts.Conflict{Live: o.value, Applied: o.tree()})
		},
		"ownership/conflictreport.ChangeTexts": func(o odd) {
			conflictreport.ChangeTexts(plans.Change{Kind: plans.Modified, Before: o.value, After: o.tree()})
		},

		"upgrade.Owners": live(func(a, _ runtime.Object) {
			_, _ = upgrade.Owners(a, metav1.ManagedFieldsOperationApply, spec)
		}),
		"upgrade.ToClientSide": live(func(a, b runtime.Object) {
			_, _ = upgrade.ToClientSide(ctx, a, upgrade.ClientSideOptions{Types: types{thing}, Manager: "m", Empty: b})
		}),
		"upgrade.ToServerSide": live(func(a, b runtime.Object) {
			_, _ = upgrade.ToServerSide(ctx, a, upgrade.ServerSideOptions{Types: types{thing}, Manager: "m", Intent: b})
		}),

		"compat/csaupgrade.UpgradeManagedFields": live(func(a, _ runtime.Object) {
			_ = csaupgrade.UpgradeManagedFields(a, sets.New("m", "n"), "m")
		}),
		"compat/csaupgrade.UpgradeManagedFieldsPatch": live(func(a, _ runtime.Object) {
			_, _ = csaupgrade.UpgradeManagedFieldsPatch(a, sets.New("m", "n"), "m")
		}),

		"compat/apimachinery.ExtractInto": live(func(a, _ runtime.Object) {
			_ = apimachinery.ExtractInto(a, upstreamv6.DeducedParseableType, "m", &tree{}, "")
		}),
		"compat/apimachinery.ExtractIntoOf": func(o odd) {
			_ = apimachinery.ExtractIntoOf(o.obj, thing, "m", &tree{}, "")
			_ = apimachinery.ExtractIntoOf(good, thing, "m", o.value, "")
		},
		"compat/apimachinery.FieldManager.Apply": live(func(a, b runtime.Object) { _, _ = old.Apply(a, b, "a", true) }),
		"compat/apimachinery.FieldManager.Update": live(func(a, b runtime.Object) {
			_, _ = old.Update(a, b, "a")
		}),
		"compat/apimachinery.FieldManager.UpdateNoErrors": live(func(a, b runtime.Object) { old.UpdateNoErrors(a, b, "a") }),
		"compat/smdv4.FromTree": single(func(_ *typed.Type, v any) {
			_, _ = smdv4.FromTree(v, upstreamv4.DeducedParseableType, typed.Rules{})
		}),
		"compat/smdv6.FromTree": single(func(_ *typed.Type, v any) {
			_, _ = smdv6.FromTree(v, upstreamv6.DeducedParseableType, typed.Rules{})
		}),
	}
}

// where returns the location of a panic.
func where() string {
	var lines []string
	for line := range strings.Lines(string(debug.Stack())) {
		if strings.Contains(line, "/") && strings.Contains(line, ".go:") && !strings.Contains(line, "objects_test.go") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.Join(lines[min(2, len(lines)):min(6, len(lines))], " < ")
}

// TestEveryObject calls every exported function that takes an object with every odd object. A function may return
// anything, but must not panic.
func TestEveryObject(t *testing.T) {
	inputs, functions := oddities(), everyFunction()
	for _, name := range slices.Sorted(gomaps.Keys(functions)) {
		t.Run(name, func(t *testing.T) {
			for _, in := range inputs {
				func() {
					defer func() {
						if r := recover(); r != nil {
							t.Errorf("%s: %v %s", in.what, r, where())
						}
					}()
					functions[name](in)
				}()
			}
		})
	}
}

var decider = &policy.Policy{Rules: []policy.Rule{{
	Kinds: []string{"*"}, Fields: []string{".a"}, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
	Decision: conflicts.Force,
}}}

func exampleOf(obj runtime.Object) policy.Example {
	out := policy.Example{Field: ".a"}
	if p, ok := obj.(*metav1.PartialObjectMetadata); ok && p != nil {
		out.Object = *p
	}
	return out
}
