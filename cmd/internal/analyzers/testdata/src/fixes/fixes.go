// Package fixes has findings that can be fixed.
package fixes

import (
	"maps"

	c "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

type Thing struct {
	Name   string
	Labels map[string]string
}

func (t *Thing) GetLabels() map[string]string  { return t.Labels }
func (t *Thing) SetLabels(l map[string]string) { t.Labels = l }
func (t *Thing) DeepCopyObject() any           { return t.DeepCopy() }
func (t *Thing) DeepCopy() *Thing              { return &Thing{Labels: t.Labels} }

type reconciler struct{ c.Client }

func (r *reconciler) finalizers(key any, isDeleted bool) error {
	var thing Thing
	if err := r.Get(nil, key, &thing); err != nil {
		return err
	}
	if isDeleted {
		if names := list(thing.Name); len(names) > 0 { // a name shares no memory
			return nil
		}
		controllerutil.RemoveFinalizer(&thing, "x")
		return r.Update(nil, &thing, c.FieldOwner("me")) // want `only metadata was changed`
	}
	if controllerutil.AddFinalizer(&thing, "x") {
		if err := r.Update(nil, &thing); err != nil { // want `only metadata was changed`
			return err
		}
	}
	return nil
}

func (r *reconciler) interfaces(obj c.Object) error {
	obj.SetLabels(nil)
	return r.Update(nil, obj) // want `only metadata was changed`
}

// The map is changed before it is set.
func (r *reconciler) maps(t, u, v, w *Thing) error {
	if r == nil {
		return nil
	}
	labels := t.GetLabels()
	labels["a"] = "b"
	t.SetLabels(labels)
	if err := r.Update(nil, t); err != nil { // want `only metadata was changed`
		return err
	}
	maps.Copy(u.Labels, labels)
	controllerutil.AddFinalizer(u, "x")
	if err := r.Update(nil, u); err != nil { // want `only metadata was changed`
		return err
	}
	var shared = v.GetLabels()
	set(shared)
	controllerutil.AddFinalizer(v, "x")
	if err := r.Update(nil, v); err != nil { // want `only metadata was changed`
		return err
	}
	set(w.GetLabels())
	controllerutil.AddFinalizer(w, "x")
	return r.Update(nil, w) // want `only metadata was changed`
}

func set(labels map[string]string) { labels["a"] = "b" }

func list(name string) []string { return nil }

func update[T c.Object](r *reconciler, obj T) error {
	obj.SetLabels(nil)
	return r.Update(nil, obj) // want `only metadata was changed`
}

func (r *reconciler) two(t, u *Thing) error {
	t.SetLabels(nil)
	u.SetLabels(nil)
	if err := r.Update(nil, t); err != nil { // want `only metadata was changed`
		return err
	}
	return r.Update(nil, u) // want `only metadata was changed`
}

func (r *reconciler) branches(t, u *Thing, kind int) error {
	switch kind {
	case 1:
		if t.Labels == nil {
			t.Labels = map[string]string{}
		}
		t.Labels["a"] = "b"
		return r.Update(nil, t) // want `only metadata was changed`
	case 2:
		for range 3 {
			if err := r.Get(nil, kind, t); err != nil {
				return err
			}
			t.SetLabels(nil)
			if err := r.Update(nil, t); err == nil { // want `only metadata was changed`
				break
			}
		}
	}
	return func() error {
		u.SetLabels(nil)
		return r.Update(nil, u) // want `only metadata was changed`
	}()
}
