package fieldmanager

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/fieldpath"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
)

// record is an entry on its way through a write. Most entries of an object are
// not touched by a write; such a record stays what stands in live, and its
// fields are never decoded nor encoded. Where a write changes a few of them, they
// are changed as they stand (fieldpath.Set.TakenFrom and others).
//
// Invariants:
//
//	wire != nil  ⇒  the entry is as it stands in live, an unstructured object
//	given != nil ⇒  the entry is as it stands in live, a Go struct
//	decoded      ⇒  Fields says what the entry owns
//	!decoded     ⇒  Fields is nil, and tree, a FieldsV1, says what it would be;
//	                once it is reconciled, in canonical form
type record struct {
	managedfields.Entry
	wire       map[string]any
	given      *metav1.ManagedFieldsEntry
	tree       map[string]any
	decoded    bool
	reconciled bool // tree is known to be, at the version's type
}

// records are the entries of an object, no two with the same key. They belong to
// one write.
type records []record

// readRecords reads the headers of the managed fields of a tree, wherever they
// came from. Where two entries have the same key, the later one counts. The
// fields are not looked at. It fails for an entry without a proper header.
func readRecords(tree map[string]any) (records, error) {
	v, _ := managedfields.Of(tree)
	list, ok := v.([]any)
	if !ok && v != nil {
		return nil, fmt.Errorf("metadata.managedFields: expected a list, got %T", v)
	}
	if err := managedfields.CheckCount(len(list)); err != nil {
		return nil, err
	}
	out := make(records, 0, len(list)+1)
	var at map[managedfields.Key]int // positions in out, for long lists
	if len(list) > 16 {
		at = make(map[managedfields.Key]int, len(list))
	}
	for i, item := range list {
		r, err := readRecord(i, item)
		if err != nil {
			return nil, err
		}
		j, twice := at[r.Key]
		if at == nil {
			j = out.index(r.Key)
			twice = j >= 0
		}
		if twice {
			out[j] = r
			continue
		}
		if at != nil {
			at[r.Key] = len(out)
		}
		out = append(out, r)
	}
	return out, nil
}

func readRecord(i int, item any) (record, error) {
	if m, ok := item.(map[string]any); ok {
		if h, ok := headerOf(m); ok {
			fields, _ := m["fieldsV1"].(map[string]any)
			return record{wire: m, tree: fields, Entry: managedfields.Entry{Key: h.key(), Version: h.version, Time: h.time}}, nil
		}
	}
	// An unusual entry is decoded as a whole, or gives a located error.
	entries, err := managedfields.DecodeTree([]any{item})
	if err != nil {
		var located *managedfields.Error
		if errors.As(err, &located) {
			located.Index = i
		}
		return record{}, err
	}
	return record{Entry: entries[0], decoded: true}, nil
}

// recordsOf returns the records of a list that a client sent. What it sent as it
// stands in live is live's, whatever it is; anything else is an error if it can't
// be decoded, and is brought into canonical form, which most of it has.
func (m *FieldManager) recordsOf(now, live map[string]any) (records, error) {
	out, err := readRecords(now)
	if err != nil || len(out) == 0 {
		return nil, err
	}
	var before records
	var at map[managedfields.Key]int
	for i := range out {
		r := &out[i]
		if r.canonical() {
			if t := m.typeAt(r.Version); t != nil && t.Reconciled(r.tree) {
				r.reconciled = true
				continue
			}
			if fieldpath.IsCanonical(r.tree) {
				continue
			}
		}
		if before == nil {
			if before, err = readRecords(live); err != nil {
				before = records{}
			}
			at = before.positions()
		}
		if j, ok := at[r.Key]; ok && r.wire != nil && typed.Equal(r.wire, before[j].wire) {
			*r = before[j]
			continue
		}
		if err := r.decode(); err != nil {
			return nil, err
		}
		r.wire = nil
	}
	return out, nil
}

// canonical reports whether r stands as it would be encoded, but for its fields.
func (r *record) canonical() bool {
	n := len(r.wire)
	if r.Subresource != "" {
		n--
	}
	if r.Time != nil {
		n--
	}
	return r.tree != nil && n == len([...]string{"manager", "operation", "apiVersion", "fieldsType", "fieldsV1"})
}

func (rs records) index(k managedfields.Key) int {
	return slices.IndexFunc(rs, func(r record) bool { return r.Key == k })
}

// positions returns where each record is, for those who look for many.
func (rs records) positions() map[managedfields.Key]int {
	at := make(map[managedfields.Key]int, len(rs))
	for i := range rs {
		at[rs[i].Key] = i
	}
	return at
}

// decode makes sure that r.Fields is decoded.
func (r *record) decode() error {
	if r.decoded {
		return nil
	}
	fields, err := fieldpath.FromTree(r.tree, fieldpath.Lenient)
	if err != nil {
		return &managedfields.Error{Manager: r.Manager, Err: err}
	}
	r.Fields, r.decoded = fields, true
	return nil
}

// setTree gives r another tree.
func (r *record) setTree(tree map[string]any) { r.tree, r.wire = tree, nil }

// set gives r other fields, if they are others: what was decoded and has not
// changed stays as it stands in live.
func (r *record) set(fields *fieldpath.Set) {
	if fields != r.Fields {
		r.Fields, r.wire, r.given = fields, nil, nil
	}
}

// empty reports whether r owns nothing. Members of a kind that is not known do
// not count.
func (r *record) empty() bool {
	if !r.decoded {
		if ownsAny(r.tree) {
			return false
		}
		if r.decode() != nil {
			return false
		}
	}
	return r.Fields.Empty()
}

// reconcile brings r up to the topology of today.
func (r *record) reconcile(t *typed.Type) error {
	if r.reconciled || !r.decoded && t.Reconciled(r.tree) {
		return nil
	}
	if err := r.decode(); err != nil {
		return err
	}
	r.set(t.Reconcile(r.Fields))
	return nil
}

// touches reports whether r owns a path of set, once it is reconciled.
func (r *record) touches(set *fieldpath.Set) bool {
	if r.decoded {
		return !r.Fields.Intersection(set).Empty()
	}
	return set.Touches(r.tree)
}

// decodeAll decodes every record, and returns them as entries.
func (rs records) decodeAll() (managedfields.Entries, error) {
	out := make(managedfields.Entries, len(rs))
	for i := range rs {
		if err := rs[i].decode(); err != nil {
			return nil, err
		}
		out[i] = rs[i].Entry
	}
	return out, nil
}

// encode returns the records on the wire, sorted (spec rule 2.4); nil for none.
func (rs records) encode() []any {
	if len(rs) == 0 {
		return nil
	}
	rs.sort()
	out := make([]any, len(rs))
	for i := range rs {
		out[i] = rs[i].encode()
	}
	return out
}

// encodeEntries is encode for a Go struct; all records must be decoded.
func (rs records) encodeEntries() []metav1.ManagedFieldsEntry {
	if len(rs) == 0 {
		return nil
	}
	rs.sort()
	out := make([]metav1.ManagedFieldsEntry, len(rs))
	for i := range rs {
		if rs[i].given != nil {
			out[i] = *rs[i].given
		} else {
			out[i] = managedfields.Encode(managedfields.Entries{rs[i].Entry})[0]
		}
	}
	return out
}

// sort sorts the records as entries are on the wire (spec rule 2.4).
func (rs records) sort() {
	slices.SortStableFunc(rs, func(a, b record) int { return managedfields.Compare(a.Entry, b.Entry) })
}

// encode returns r on the wire.
func (r *record) encode() map[string]any {
	if r.wire != nil {
		return r.wire
	}
	out := managedfields.EncodeTree(managedfields.Entries{r.Entry})[0].(map[string]any)
	if !r.decoded {
		out["fieldsV1"] = r.tree
	}
	return out
}
