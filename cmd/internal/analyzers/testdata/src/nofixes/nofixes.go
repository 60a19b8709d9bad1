// Package nofixes has findings that can't be fixed safely.
package nofixes

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

type Thing struct{ Labels map[string]string }

func (t *Thing) GetLabels() map[string]string  { return t.Labels }
func (t *Thing) SetLabels(l map[string]string) { t.Labels = l }
func (t *Thing) DeepCopyObject() any           { return t.DeepCopy() }
func (t *Thing) DeepCopy() *Thing              { return &Thing{Labels: t.Labels} }

// A parameter shadows the name of package client.
func shadowed(client client.Client, t *Thing) error {
	t.SetLabels(nil)
	return client.Update(nil, t) // want `only metadata was changed`
}

// Patch does not accept options for updates.
func options(c client.Client, t, u *Thing, opts ...client.UpdateOption) error {
	t.SetLabels(nil)
	_ = c.Update(nil, t, &client.UpdateOptions{}) // want `only metadata was changed`
	u.SetLabels(nil)
	return c.Update(nil, u, opts...) // want `only metadata was changed`
}

// All names for the copy are used.
func names(c client.Client, t, original, originalT *Thing) error {
	t.SetLabels(nil)
	return c.Update(nil, t) // want `only metadata was changed`
}

// After the first update, the copy has an old resourceVersion.
func repeated(c client.Client, t *Thing) {
	t.SetLabels(nil)
	for range 3 {
		_ = c.Update(nil, t) // want `only metadata was changed`
	}
}

// The change is made in the previous iteration.
func later(c client.Client, key any, t *Thing) {
	_ = c.Get(nil, key, t)
	for {
		_ = c.Update(nil, t) // want `only metadata was changed`
		t.SetLabels(nil)
	}
}

// The object is read after the copy.
func replaced(c client.Client, key any, t *Thing) error {
	t.SetLabels(nil)
	if key != nil {
		_ = c.Get(nil, key, t)
		t.SetLabels(nil)
	}
	return c.Update(nil, t) // want `only metadata was changed`
}

// The object is declared in the statement with the change.
func declared(c client.Client, things func() *Thing) error {
	if t := things(); controllerutil.AddFinalizer(t, "x") {
		return c.Update(nil, t) // want `only metadata was changed`
	}
	return nil
}

// Function literals make the change, or the update, outside of the block.
func literals(c client.Client, t, u *Thing) error {
	change := func() { t.SetLabels(nil) }
	change()
	_ = c.Update(nil, t) // want `only metadata was changed`
	u.SetLabels(nil)
	return func() error {
		return c.Update(nil, u) // want `only metadata was changed`
	}()
}

// The map is taken from the object outside of the function literal.
func maps(c client.Client, t *Thing) error {
	labels := t.Labels
	return func() error {
		labels["a"] = "b"
		t.SetLabels(labels)
		return c.Update(nil, t) // want `only metadata was changed`
	}()
}

// goto must not jump over the declaration of a copy.
func jumps(c client.Client, t *Thing) error {
	if t == nil {
		goto end
	}
	t.SetLabels(nil)
	return c.Update(nil, t) // want `only metadata was changed`
end:
	return nil
}

// Update is the client's method, but Patch is not.
type reconciler struct{ client.Client }

func (r *reconciler) Patch(t *Thing) error {
	t.SetLabels(nil)
	return r.Update(nil, t) // want `only metadata was changed`
}
