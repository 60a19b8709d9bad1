package upgrade

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// entries reads the managed fields of o. An entry whose fields can't be decoded is kept
// as it stands; a list in which not even the owners can be told is an error.
func (o object) entries() (managedfields.List, error) {
	return managedfields.Read(o.given, fieldpath.SharedCache())
}

// withEntries returns o with the entries of l, sorted (spec rule 2.4). All else is
// shared.
func (o object) withEntries(l managedfields.List) (object, error) {
	given, err := l.Into(o.given)
	if err != nil {
		return object{}, err
	}
	if u, ok := given.(*unstructured.Unstructured); ok {
		return object{given, u.Object}, nil
	}
	return object{given, managedfields.With(o.tree, l.EncodeTree())}, nil
}

// withoutEmpty returns the records but for those that changed and own nothing now (spec
// rule 2.10).
func withoutEmpty(l managedfields.List) managedfields.List {
	out := make(managedfields.List, 0, len(l))
	for _, r := range l {
		if r.IsUnchanged() || !r.IsEmpty() {
			out = append(out, r)
		}
	}
	return out
}

// setFields gives r other fields, if they are others: what did not change stays as it
// is on the wire.
func setFields(r *managedfields.Record, fields *fieldpath.Set) {
	if owned, err := r.Fields(); err != nil || !fields.Equal(owned) {
		r.SetFields(fields)
	}
}

// Owners returns the entries of obj of one operation that own every path of fields:
// with the path of the annotation, who applied client-side. Entries whose fields
// can't be decoded own nothing. The sets are shared with nobody that changes them.
func Owners(obj runtime.Object, operation managedfields.Operation, fields *fieldpath.Set) (managedfields.Entries, error) {
	o, err := read(obj)
	if err != nil {
		return nil, err
	}
	records, err := o.entries()
	if err != nil {
		return nil, err
	}
	return owners(records, operation, fields), nil
}

func owners(records managedfields.List, operation managedfields.Operation, fields *fieldpath.Set) (out managedfields.Entries) {
	for i := range records {
		e, err := records[i].Entry()
		if err == nil && e.Operation == operation && fields.Difference(e.Fields).Empty() {
			out = append(out, e)
		}
	}
	return out
}
