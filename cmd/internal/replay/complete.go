package replay

import (
	"maps"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/apiserver/kubernetes"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
)

// complete returns an object as a server stores it after the engine merged it: a built-in kind as its Go
// type has it (without zero values that the type omits, and with a Secret's stringData as data), others
// without the fields that the definition prunes; both with their defaults. If that fails it returns the
// object as it is, and the comparison reports the difference.
func (w *write) complete(kind schema.GroupVersionKind, tree map[string]any) map[string]any {
	if definition := w.crd(); definition != nil {
		version, err := definition.version(w.version)
		if err != nil {
			return tree
		}
		tree = runtime.DeepCopyJSON(tree)
		version.complete(tree)
		return tree
	}
	if w.isBuiltin() {
		return completeBuiltin(kind, tree)
	}
	if t := w.r.types.TypeFor(kind); t != nil {
		if out, ok := t.Default(tree).(map[string]any); ok {
			return out
		}
	}
	return tree
}

func completeBuiltin(kind schema.GroupVersionKind, tree map[string]any) map[string]any {
	list, _ := managedfields.Of(tree)
	out, err := kubernetes.Default(kind, managedfields.With(tree, nil))
	if err != nil {
		return tree
	}
	return managedfields.With(out, list)
}

// settleTimes returns the result of an apply, with the times of live's entries if only times would
// change: a server compares the objects with their defaults, and does not store such a change.
func (w *write) settleTimes(kind schema.GroupVersionKind, got map[string]any) map[string]any {
	live := w.r.live
	if live == nil || !typed.Equal(withoutTimes(managedFieldsIn(live)), withoutTimes(managedFieldsIn(got))) {
		return got
	}
	after := stripped(w.complete(kind, w.reset(got)))
	before := stripped(w.complete(kind, live))
	before["apiVersion"] = after["apiVersion"]
	if !typed.Equal(before, after) {
		return got
	}
	return managedfields.With(got, managedFieldsIn(live))
}

// withoutTimes returns a list of entries without their times.
func withoutTimes(list any) any {
	items, _ := list.([]any)
	out := make([]any, len(items))
	for i, item := range items {
		entry, ok := item.(map[string]any)
		if !ok {
			return list
		}
		out[i] = maps.Clone(entry)
		delete(out[i].(map[string]any), "time")
	}
	return out
}
