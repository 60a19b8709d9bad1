package upgrade

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/fieldpath"
	"github.com/tenure-ssa/tenure/managedfields"
)

// record is an entry of an object.
//
// Invariants:
//
//	wire != nil  ⇒  the entry is as it stands in the object
//	err != nil   ⇒  wire != nil, and Fields can't be told
type record struct {
	managedfields.Entry
	wire any
	err  error
}

// readRecords reads the managed fields of o. An entry whose fields can't be decoded
// is kept as it stands; a list in which not even the owners can be told is an error.
func readRecords(o object) ([]record, error) {
	v := o.metadata()["managedFields"]
	list, ok := v.([]any)
	if !ok && v != nil {
		return nil, fmt.Errorf("metadata.managedFields: expected a list, got %T", v)
	}
	if err := managedfields.CheckCount(len(list)); err != nil {
		return nil, err
	}
	out := make([]record, 0, len(list)+1)
	last := make(map[managedfields.Key]int, len(list))
	for i, item := range list {
		r, err := readRecord(item)
		var located *managedfields.Error
		if errors.As(cmp.Or(err, r.err), &located) {
			located.Index = i
		}
		if err != nil {
			return nil, err
		}
		// Where two entries have one key the later one counts, as everywhere.
		if at, twice := last[r.Key]; twice {
			out[at].wire = nil
		}
		last[r.Key] = len(out)
		out = append(out, r)
	}
	return slices.DeleteFunc(out, func(r record) bool { return r.wire == nil }), nil
}

func readRecord(item any) (record, error) {
	entries, err := managedfields.DecodeTree([]any{item})
	if err == nil {
		return record{Entry: entries[0], wire: item}, nil
	}
	m, ok := item.(map[string]any)
	if !ok {
		return record{}, err
	}
	header := maps.Clone(m)
	header["fieldsV1"] = map[string]any{}
	if entries, headerErr := managedfields.DecodeTree([]any{header}); headerErr == nil {
		return record{Entry: entries[0], wire: item, err: err}, nil
	}
	return record{}, err
}

// set gives r other fields.
func (r *record) set(fields *fieldpath.Set) {
	if !fields.Equal(r.Fields) {
		r.Fields, r.wire = fields, nil
	}
}

// encode returns the records on the wire, sorted, without those that own nothing
// (spec rules 2.4 and 2.10).
func encode(records []record) []any {
	records = slices.DeleteFunc(slices.Clone(records), func(r record) bool { return r.wire == nil && r.Fields.Empty() })
	slices.SortStableFunc(records, func(a, b record) int { return managedfields.Compare(a.Entry, b.Entry) })
	out := make([]any, len(records))
	for i, r := range records {
		if out[i] = r.wire; r.wire == nil {
			out[i] = managedfields.EncodeTree(managedfields.Entries{r.Entry})[0]
		}
	}
	return out
}

// Owners returns the entries of obj of one operation that own every path of fields:
// with the path of the annotation, who applied client-side. Entries whose fields
// can't be decoded own nothing. The sets are shared with nobody that changes them.
func Owners(obj runtime.Object, operation managedfields.Operation, fields *fieldpath.Set) (managedfields.Entries, error) {
	o, err := read(obj)
	if err != nil {
		return nil, err
	}
	records, err := readRecords(o)
	if err != nil {
		return nil, err
	}
	return owners(records, operation, fields), nil
}

func owners(records []record, operation managedfields.Operation, fields *fieldpath.Set) (out managedfields.Entries) {
	for _, r := range records {
		if r.err == nil && r.Operation == operation && fields.Difference(r.Fields).Empty() {
			out = append(out, r.Entry)
		}
	}
	return out
}
