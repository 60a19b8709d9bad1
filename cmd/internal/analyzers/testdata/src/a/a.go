package a

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

type ObjectMeta struct{ Labels, Annotations map[string]string }

func (m *ObjectMeta) GetLabels() map[string]string  { return m.Labels }
func (m *ObjectMeta) SetLabels(l map[string]string) { m.Labels = l }

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

func (r *reconciler) finalizer(key any) error {
	var thing Thing
	if err := r.Get(nil, key, &thing); err != nil {
		return fmt.Errorf("%v: %w", thing, err)
	}
	if controllerutil.AddFinalizer(&thing, "x") {
		return r.Update(nil, &thing) // want `update sends all of thing, where only metadata was changed`
	}
	return r.Status().Update(nil, &thing)
}

func (r *reconciler) labels(o *Other) error {
	o.Labels["a"] = "b"
	delete(o.Annotations, "c")
	o.SetLabels(o.GetLabels())
	return r.Client.Update(nil, o) // want `update sends all of o, where only metadata was changed`
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
	_ = r.Update(nil, t) // want `update sends all of t, which the reconciler is for`
	u.Labels["a"] = "b"
	u.Default()
	return r.Update(nil, u) // want `update sends all of u, which the reconciler is for`
}

func (r *reconciler) applies(key any, built *Other, opts ...client.Option) error {
	read := &Other{}
	_ = r.Get(nil, key, read)
	_ = r.Patch(nil, read, client.Apply, client.FieldOwner("me")) // want `apply of all of read, which was read`
	_ = r.Patch(nil, read, client.Merge)
	_ = r.Patch(nil, built, client.Apply, client.FieldOwner("me"))
	_ = r.Patch(nil, built, client.Apply, client.ForceOwnership) // want `apply without a field owner`
	_ = r.Patch(nil, built, client.Apply, opts...)
	_ = r.Apply(nil, built, client.ForceOwnership, client.FieldOwner("me"))
	return r.Apply(nil, built) // want `apply without a field owner`
}
