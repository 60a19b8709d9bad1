package workloads

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/benchmarks/internal/engines"
	"github.com/tenure-ssa/tenure/benchmarks/internal/objects"
)

// epoch is the time of the first write of a history; each later write is one minute after the previous one.
var epoch = time.Date(2026, 1, 5, 8, 30, 0, 0, time.UTC)

// history makes managed fields by writing an object with upstream, because upstream defines managed fields. The caller
// provides the object, because objects in a cluster have defaults and a status, which a history of two writes would not
// produce.
type history struct {
	kind    engines.Kind
	entries []metav1.ManagedFieldsEntry
	err     error
}

// apply adds the entry of a manager that applies an intent to an empty object.
func (h *history) apply(manager string, intent *unstructured.Unstructured) *history {
	return h.add(h.kind, func(m engines.FieldManager, empty *unstructured.Unstructured) (any, error) {
		return m.Apply(empty, intent, manager, false)
	})
}

// create adds the entry of a manager that creates obj.
func (h *history) create(manager string, obj *unstructured.Unstructured) *history {
	return h.add(h.kind, func(m engines.FieldManager, empty *unstructured.Unstructured) (any, error) {
		return m.Update(empty, objects.Fresh(obj), manager)
	})
}

// status adds the entry of a manager that writes the status of obj.
func (h *history) status(manager string, obj *unstructured.Unstructured) *history {
	return h.add(h.kind.Status(), func(m engines.FieldManager, empty *unstructured.Unstructured) (any, error) {
		before := objects.Fresh(obj)
		delete(before.Object, "status")
		// Without a UID, the write is a create, so the object is tracked.
		before.SetUID("")
		return m.Update(before, objects.Fresh(obj), manager)
	})
}

func (h *history) add(
	k engines.Kind,
	write func(engines.FieldManager, *unstructured.Unstructured) (any, error),
) *history {
	if h.err != nil {
		return h
	}
	var m engines.FieldManager
	if m, h.err = engines.Upstream().FieldManager(k); h.err != nil {
		return h
	}
	empty := &unstructured.Unstructured{}
	empty.SetGroupVersionKind(k.GroupVersionKind)
	var out any
	if out, h.err = write(m, empty); h.err != nil {
		h.err = fmt.Errorf("history of %s: %w", k.Kind, h.err)
		return h
	}
	for _, entry := range out.(*unstructured.Unstructured).GetManagedFields() {
		entry.Time = &metav1.Time{Time: epoch.Add(time.Duration(len(h.entries)) * time.Minute)}
		h.entries = append(h.entries, entry)
	}
	return h
}

// live returns obj as stored, with the managed fields of the history.
func (h *history) live(obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if h.err != nil {
		return nil, h.err
	}
	out := objects.Fresh(obj)
	out.SetManagedFields(h.entries)
	return objects.Fresh(out), nil
}

// stored returns obj as stored after its intent was applied, and after its status, if it has one, was updated.
func stored(
	k engines.Kind,
	obj *unstructured.Unstructured,
	applier, updater string,
) (*unstructured.Unstructured, error) {
	h := (&history{kind: k}).apply(applier, objects.Intent(obj))
	if _, ok := obj.Object["status"]; ok {
		h = h.status(updater, obj)
	}
	return h.live(obj)
}
