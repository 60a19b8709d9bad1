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

// The name of the package is another's.
func shadowed(client client.Client, t *Thing) error {
	t.SetLabels(nil)
	return client.Update(nil, t) // want `only metadata was changed`
}

// A patch doesn't take the options.
func options(c client.Client, t, u *Thing, opts ...client.UpdateOption) error {
	t.SetLabels(nil)
	_ = c.Update(nil, t, &client.UpdateOptions{}) // want `only metadata was changed`
	u.SetLabels(nil)
	return c.Update(nil, u, opts...) // want `only metadata was changed`
}

// No name is free.
func names(c client.Client, t, original, originalT *Thing) error {
	t.SetLabels(nil)
	return c.Update(nil, t) // want `only metadata was changed`
}

// The second update has another resourceVersion than the copy.
func repeated(c client.Client, t *Thing) {
	t.SetLabels(nil)
	for range 3 {
		_ = c.Update(nil, t) // want `only metadata was changed`
	}
}

// The change comes from the round before.
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

// The literals change the object elsewhere.
func literals(c client.Client, t, u *Thing) error {
	change := func() { t.SetLabels(nil) }
	change()
	_ = c.Update(nil, t) // want `only metadata was changed`
	u.SetLabels(nil)
	return func() error {
		return c.Update(nil, u) // want `only metadata was changed`
	}()
}

// The map is of the object around the literal.
func maps(c client.Client, t *Thing) error {
	labels := t.Labels
	return func() error {
		labels["a"] = "b"
		t.SetLabels(labels)
		return c.Update(nil, t) // want `only metadata was changed`
	}()
}

// A later statement is no place for a declaration.
func jumps(c client.Client, t *Thing) error {
	if t == nil {
		goto end
	}
	t.SetLabels(nil)
	return c.Update(nil, t) // want `only metadata was changed`
end:
	return nil
}

// The update's method is the client's, and Patch is not.
type reconciler struct{ client.Client }

func (r *reconciler) Patch(t *Thing) error {
	t.SetLabels(nil)
	return r.Update(nil, t) // want `only metadata was changed`
}
