package a

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

type ObjectMeta struct{ Labels, Annotations map[string]string }

func (m *ObjectMeta) GetLabels() map[string]string  { return m.Labels }
func (m *ObjectMeta) SetLabels(l map[string]string) { m.Labels = l }
func (m *ObjectMeta) DeepCopyObject() any           { return m }

type Thing struct {
	ObjectMeta
	Spec struct{ Size int }
}

func (t *Thing) Default() { t.Spec.Size = 1 }

type Other struct {
	ObjectMeta
	Data map[string]string
}

type reconciler struct{ client.Client }

func (r *reconciler) setUp(b *builder.Builder) { b.For(&Thing{}) }

func fill(o client.Object) {}

func isFull(o client.Object) bool { return true }

func (r *reconciler) finalizer(key any) error {
	var thing Thing
	if err := r.Get(nil, key, &thing); err != nil {
		return fmt.Errorf("%v: %w", thing, err)
	}
	if controllerutil.AddFinalizer(&thing, "x") {
		return r.Update(nil, &thing) // want `update sends the whole thing, in which only metadata was changed`
	}
	return r.Status().Update(nil, &thing)
}

func (r *reconciler) labels(o *Other) error {
	o.Labels["a"] = "b"
	delete(o.Annotations, "c")
	o.SetLabels(o.GetLabels())
	return r.Client.Update(nil, o) // want `update sends the whole o, in which only metadata was changed`
}

func (r *reconciler) more(o, p, q *Other) error {
	o.Labels["a"] = "b"
	o.Data["a"] = "b"
	_ = r.Update(nil, o) // it is meant to own the data
	p.Labels["a"] = "b"
	fill(p)
	_ = r.Update(nil, p) // what fill changes is not known
	q.Labels["a"] = "b"
	data := q
	data.Data = nil
	return r.Update(nil, q) // by another name
}

func (r *reconciler) primary(t, u *Thing) error {
	t.Spec.Size = 3
	_ = r.Update(nil, t) // want `update sends the whole t, which is reconciled here`
	u.Labels["a"] = "b"
	u.Default()
	return r.Update(nil, u) // want `update sends the whole u, which is reconciled here`
}

// SetControllerReference changes the owned object, not the owner.
func (r *reconciler) owner(o, p *Other) error {
	if err := controllerutil.SetControllerReference(o, p); err != nil {
		return err
	}
	_ = r.Update(nil, o)
	return r.Update(nil, p) // want `update sends the whole p, in which only metadata was changed`
}

// A function that is not a method may belong to any reconciler.
func plain(c client.Client, t *Thing) error {
	t.Spec.Size = 3
	return c.Update(nil, t) // want `update sends the whole t, which is reconciled here`
}

type Plain struct {
	ObjectMeta
	Size int
}

func setUp(b *builder.Builder) { b.For(&Plain{}) }

func (r *reconciler) plain(p *Plain) error {
	p.Size = 3
	return r.Update(nil, p) // want `update sends the whole p, which is reconciled here`
}

type other struct{ client.Client }

func (o *other) setUp(b *builder.Builder) { b.For(&Other{}) }

// Objects that another reconciler reconciles need not be users' objects: this reconciler may have created them.
func (o *other) things(t *Thing) error {
	t.Spec.Size = 3
	return o.Update(nil, t)
}

// A map may hold copies for another cluster, which the reconciler writes as a whole.
func (r *reconciler) copies(all map[string]*Thing) error {
	for _, t := range all {
		t.Spec.Size = 3
		if err := r.Update(nil, t); err != nil {
			return err
		}
	}
	return nil
}

// An unstructured object is written as it was read.
func (r *reconciler) unstructured(u *unstructured.Unstructured) error {
	u.SetLabels(nil)
	return r.Update(nil, u)
}

// Changes on a path that returns before the update are ignored.
func (r *reconciler) returns(t *Thing) error {
	if t.Spec.Size == 0 {
		t.Default()
		return r.Status().Update(nil, t)
	}
	if isFull(t) {
		t.SetLabels(nil)
	}
	return r.Update(nil, t) // want `update sends the whole t, in which only metadata was changed`
}

// The response replaces the object.
func (r *reconciler) created(t *Thing) error {
	t.Default()
	if err := r.Create(nil, t); err != nil {
		return err
	}
	t.SetLabels(nil)
	return r.Update(nil, t) // want `update sends the whole t, in which only metadata was changed`
}

// Responses to updates and patches replace the object, too.
func (r *reconciler) written(o, p *Other) error {
	o.Data["a"] = "b"
	if err := r.Update(nil, o); err != nil {
		return err
	}
	o.SetLabels(nil)
	_ = r.Update(nil, o) // want `update sends the whole o, in which only metadata was changed`
	p.Data["a"] = "b"
	if err := r.Patch(nil, p, client.Merge); err != nil {
		return err
	}
	p.SetLabels(nil)
	return r.Update(nil, p) // want `update sends the whole p, in which only metadata was changed`
}

// Each iteration has its own object.
func (r *reconciler) rounds(all []Other) {
	for _, o := range all {
		o.SetLabels(nil)
		_ = r.Update(nil, &o) // want `update sends the whole o, in which only metadata was changed`
		fill(&o)
	}
	for {
		var o Other
		o.SetLabels(nil)
		_ = r.Update(nil, &o) // want `update sends the whole o, in which only metadata was changed`
		fill(&o)
	}
}

// Changes on a path that panics before the update are ignored.
func (r *reconciler) panics(o *Other) error {
	if isFull(o) {
		fill(o)
		panic("full")
	}
	o.SetLabels(nil)
	return r.Update(nil, o) // want `update sends the whole o, in which only metadata was changed`
}

// In a loop, a later change may precede the next update.
func (r *reconciler) loop(o *Other) error {
	for {
		o.SetLabels(nil)
		if err := r.Status().Update(nil, o); err == nil {
			o.Labels["a"] = "b"
		}
		if err := r.Client.Update(nil, o); err != nil { // want `update sends the whole o, in which only metadata`
			fill(o)
			o = &Other{}
		}
	}
}

func (r *reconciler) again(o *Other) error {
	for {
		o.SetLabels(nil)
		if len(o.Labels) > 1 {
			if err := r.Client.Update(nil, o); err != nil { // the last round may have filled it
				return err
			}
		}
		fill(o)
	}
}

func retry(f func() error) error { return f() }

// A function literal may update an object that the outer function has changed.
func (r *reconciler) literals(key any, o, p, q, s, u *Other) error {
	o.Data["a"] = "b"
	_ = retry(func() error {
		o.SetLabels(nil)
		return r.Update(nil, o)
	})
	p.Data["a"] = "b"
	_ = retry(func() error {
		_ = r.Get(nil, key, p)
		p.SetLabels(nil)
		return r.Update(nil, p) // want `update sends the whole p, in which only metadata was changed`
	})
	_ = retry(func() error {
		s.Data["a"] = "b"
		return retry(func() error {
			s.SetLabels(nil)
			return r.Update(nil, s)
		})
	})
	u.Data["a"] = "b"
	read := func() error { return r.Get(nil, key, u) } // not called yet
	u.SetLabels(nil)
	_ = r.Update(nil, u)
	_ = read()
	change := func() { q.Data["a"] = "b" }
	q.SetLabels(nil)
	change()
	return r.Update(nil, q)
}

func (r *reconciler) applies(key any, built *Other) error {
	read := &Other{}
	_ = r.Get(nil, key, read)
	_ = r.Patch(nil, read, client.Merge)
	_ = r.Get(nil, key, read)
	_ = r.Patch(nil, read, client.Apply, client.FieldOwner("me")) // want `apply of the whole read, which was read`
	_ = r.Get(nil, key, read)
	read = &Other{}
	_ = r.Patch(nil, read, client.Apply, client.FieldOwner("me")) // nothing of what was read is left
	return r.Patch(nil, built, client.Apply, client.FieldOwner("me"))
}

func (r *reconciler) appliesUnstructured(key any, built *unstructured.Unstructured) error {
	read := &unstructured.Unstructured{}
	_ = r.Get(nil, key, read)
	_ = r.Apply(nil, client.ApplyConfigurationFromUnstructured(read)) // want `apply of the whole read, which was read`
	return r.Apply(nil, client.ApplyConfigurationFromUnstructured(built))
}
