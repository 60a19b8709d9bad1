package upgrade

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// entries reads the managed fields of o. It keeps an entry whose fields are malformed; an entry without a valid key
// is an error.
func (o object) entries() (managedfields.Entries, error) {
	l, _, err := managedfields.Read(o.given)
	return l, err
}

// withEntries returns o with the entries of l, sorted (spec rule 2.4). It shares everything else.
func (o object) withEntries(l managedfields.Entries) (object, error) {
	given, err := l.Into(o.given)
	if err != nil {
		return object{}, err
	}
	if u, ok := given.(*unstructured.Unstructured); ok {
		return object{given, u.Object}, nil
	}
	return object{given, managedfields.With(o.tree, l.EncodeTree())}, nil
}

// withoutEmpty returns the entries without those that changed and own nothing now (spec rule 2.10).
func withoutEmpty(l managedfields.Entries) managedfields.Entries {
	out := make(managedfields.Entries, 0, len(l))
	for _, r := range l {
		if r.IsUnchanged() || !r.IsEmpty() {
			out = append(out, r)
		}
	}
	return out
}

// setFields sets the fields of r if they differ. An unchanged entry is written as it was read.
func setFields(r *managedfields.Entry, fields *fieldpath.Set) {
	if owned, err := r.Fields(); err != nil || !fields.Equal(owned) {
		r.SetFields(fields)
	}
}

// Owners returns the entries of obj with the given operation that own every path of fields. With the path of the
// annotation they are the client-side appliers. An entry with malformed fields owns nothing.
func Owners(obj runtime.Object, operation managedfields.Operation,
	fields *fieldpath.Set) (managedfields.Entries, error) {
	o, err := read(obj)
	if err != nil {
		return nil, err
	}
	entries, err := o.entries()
	if err != nil {
		return nil, err
	}
	return owners(entries, operation, fields), nil
}

func owners(entries managedfields.Entries, operation managedfields.Operation,
	fields *fieldpath.Set) (out managedfields.Entries) {
	for i := range entries {
		e := &entries[i]
		if set, err := e.Fields(); err == nil && e.Operation == operation && fields.Difference(set).Empty() {
			out = append(out, *e)
		}
	}
	return out
}
