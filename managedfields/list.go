package managedfields

import (
	"bytes"
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// List holds the entries of one object during a write. Keys are distinct. An entry is decoded when its fields are
// needed: of most entries of an unstructured object, a write only has to know that they own nothing of what it changes,
// which is looked up in their FieldsV1. Unchanged entries are written back as they were read, even if they can't be
// decoded.
//
// Who reads a List owns it and may change it. The object that it was read from is never changed.
type List []Record

// Record is one entry of a [List].
//
// Invariants:
//
//	asTree != nil    ⇒  the entry is unchanged, and is asTree in an unstructured object
//	asStruct != nil  ⇒  the fields are unchanged, and those of *asStruct, a Go struct
//	decoded          ⇒  set is what it owns
//	!decoded         ⇒  tree, a FieldsV1, is what it owns, or the fields of asStruct are
//	current          ⇒  tree is canonical and has today's topology, so that paths can be looked up in it
//	err != nil       ⇒  !decoded: it can't be decoded, and is kept as it was read
type Record struct {
	Key
	// APIVersion is the group version of the fields.
	APIVersion string
	// Time is when the manager last changed the object or what it owns; nil if it never did. Change it with
	// [Record.SetTime].
	Time *metav1.Time

	asTree   map[string]any
	asStruct *metav1.ManagedFieldsEntry
	tree     map[string]any // the FieldsV1 of an unstructured object, until it is decoded
	set      *fieldpath.Set
	cache    *fieldpath.Cache
	decoded  bool
	current  bool
	index    int // the position in the list that was read
	err      error
}

// NewRecord returns the record of an entry.
func NewRecord(e Entry) Record {
	return Record{Key: e.Key, APIVersion: e.APIVersion, Time: e.Time, set: e.Fields, decoded: true}
}

// Index returns the position of the record of k, or -1.
func (l List) Index(k Key) int {
	for i := range l {
		if l[i].Key == k {
			return i
		}
	}
	return -1
}

// Get returns the record of k, or nil. The pointer is into the list, and valid until the list grows.
func (l List) Get(k Key) *Record {
	if i := l.Index(k); i >= 0 {
		return &l[i]
	}
	return nil
}

// Without returns the list without the record of k. It reuses the memory of l.
func (l List) Without(k Key) List {
	if i := l.Index(k); i >= 0 {
		return slices.Delete(l, i, i+1)
	}
	return l
}

// Positions returns the positions of all records, for many lookups.
func (l List) Positions() map[Key]int {
	at := make(map[Key]int, len(l))
	for i := range l {
		at[l[i].Key] = i
	}
	return at
}

// Entries decodes all records.
func (l List) Entries() (Entries, error) {
	out := make(Entries, len(l))
	for i := range l {
		e, err := l[i].Entry()
		if err != nil {
			return nil, err
		}
		out[i] = e
	}
	return out, nil
}

// Sort sorts the records as servers sort entries (spec rule 2.4).
func (l List) Sort() {
	slices.SortStableFunc(l, func(a, b Record) int { return compareRecords(&a, &b) })
}

func compareRecords(a, b *Record) int {
	return compareHeaders(&a.Key, &b.Key, a.APIVersion, b.APIVersion, a.Time, b.Time)
}

// EncodeTree returns the list as maps of an unstructured object, sorted; nil for none. It sorts l.
func (l List) EncodeTree() []any {
	if len(l) == 0 {
		return nil
	}
	l.Sort()
	out := make([]any, len(l))
	for i := range l {
		out[i] = l[i].encodeTree()
	}
	return out
}

// Encode returns the list as Go structs, sorted; nil for none. It sorts l.
func (l List) Encode() []metav1.ManagedFieldsEntry {
	if len(l) == 0 {
		return nil
	}
	l.Sort()
	out := make([]metav1.ManagedFieldsEntry, len(l))
	for i := range l {
		out[i] = l[i].encode()
	}
	return out
}

// Fields returns what the record owns. An error is an *[Error].
func (r *Record) Fields() (*fieldpath.Set, error) {
	if r.decoded || r.err != nil {
		return r.set, r.err
	}
	var err error
	if r.asStruct == nil {
		r.set, err = fieldpath.FromTree(r.tree, fieldpath.Lenient)
	} else {
		r.set, err = r.cache.Parse(r.asStruct.FieldsV1.GetRawBytes()) // of no FieldsV1, no bytes: the empty set
	}
	if err != nil {
		r.set, r.err = nil, &Error{r.index, r.Manager, err}
		return nil, r.err
	}
	r.decoded = true
	return r.set, nil
}

// Entry returns the decoded record. An error is an *[Error].
func (r *Record) Entry() (Entry, error) {
	set, err := r.Fields()
	return Entry{Key: r.Key, APIVersion: r.APIVersion, Time: r.Time, Fields: set}, err
}

// Header returns the record as an entry without fields.
func (r *Record) Header() Entry { return Entry{Key: r.Key, APIVersion: r.APIVersion, Time: r.Time} }

// IsUnchanged reports whether the record is as it was read.
func (r *Record) IsUnchanged() bool { return r.asTree != nil || r.asStruct != nil }

// SetFields replaces the fields of the record. A record whose fields are already set is unchanged, and is written as
// it was read.
func (r *Record) SetFields(set *fieldpath.Set) {
	if r.decoded && set == r.set {
		return
	}
	r.set, r.decoded, r.err = set, true, nil
	r.asTree, r.asStruct, r.tree = nil, nil, nil
}

// SetTime replaces the time of the record.
func (r *Record) SetTime(at *metav1.Time) {
	if r.asStruct != nil {
		// The fields are unchanged.
		changed := *r.asStruct
		changed.Time = at
		r.asStruct = &changed
	}
	r.Time, r.asTree = at, nil
}

// isInTree reports whether paths can be looked up in the record's FieldsV1.
func (r *Record) isInTree() bool { return r.current && !r.decoded && r.err == nil }

// IsEmpty reports whether the record owns nothing. A record that can't be decoded is not empty.
func (r *Record) IsEmpty() bool {
	if r.isInTree() {
		return len(r.tree) == 0
	}
	set, err := r.Fields()
	return err == nil && set.Empty()
}

// Reconcile adapts the record to the topology of t (spec rules 8.1, 8.2 and 8.3).
func (r *Record) Reconcile(t *typed.Type) error {
	if !r.decoded && r.tree != nil && (r.current || t.IsReconciled(r.tree)) {
		r.current = true
		return nil
	}
	set, err := r.Fields()
	if err != nil {
		return err
	}
	r.SetFields(t.Reconcile(set))
	return nil
}

// Intersection returns the paths of set that the record owns; none if it can't be decoded.
func (r *Record) Intersection(set *fieldpath.Set) *fieldpath.Set {
	if r.isInTree() {
		return set.IntersectTree(r.tree)
	}
	own, _ := r.Fields()
	return own.Intersection(set)
}

// Subtract removes the paths of set from the record.
func (r *Record) Subtract(set *fieldpath.Set) {
	if r.isInTree() && r.Intersection(set).Empty() {
		return
	}
	if own, err := r.Fields(); err == nil {
		r.SetFields(own.Difference(set))
	}
}

// Add adds the paths of set to the record.
func (r *Record) Add(set *fieldpath.Set) {
	own, err := r.Fields()
	if err != nil {
		return
	}
	if union := own.Union(set); !union.Equal(own) {
		r.SetFields(union)
	}
}

// Sent turns l, the entries that a client sent, into those that a write starts from (spec rule 2.6). An entry that
// equals live's is replaced by live's, even if it is malformed. Any other is brought into canonical form; it is an
// *[Error] if it can't be decoded. typeAt returns the type of a group version, or nil.
func (l List) Sent(live func() List, typeAt func(version string) *typed.Type) error {
	var before List
	var at map[Key]int
	for i := range l {
		r := &l[i]
		if r.isCanonical(typeAt) {
			continue
		}
		if at == nil {
			before = live()
			at = before.Positions()
		}
		if j, ok := at[r.Key]; ok && r.isSame(&before[j]) {
			*r = before[j]
			continue
		}
		if _, err := r.Fields(); err != nil {
			return err
		}
		r.asTree, r.asStruct, r.tree = nil, nil, nil
	}
	return nil
}

// isCanonical reports whether an entry of an unstructured object is as it would be written.
func (r *Record) isCanonical(typeAt func(version string) *typed.Type) bool {
	n := len(r.asTree)
	if r.Subresource != "" {
		n--
	}
	if r.Time != nil {
		n--
	}
	if r.tree == nil || n != len([...]string{"manager", "operation", "apiVersion", "fieldsType", "fieldsV1"}) {
		return false
	}
	if t := typeAt(r.APIVersion); t != nil && t.IsReconciled(r.tree) {
		r.current = true
		return true
	}
	return fieldpath.IsCanonical(r.tree)
}

// isSame reports whether two records of one key are equal as they were read. Records of different forms are not.
func (r *Record) isSame(o *Record) bool {
	if r.asStruct != nil && o.asStruct != nil {
		a, b := r.asStruct, o.asStruct
		return a.APIVersion == b.APIVersion && a.Time.Equal(b.Time) &&
			bytes.Equal(a.FieldsV1.GetRawBytes(), b.FieldsV1.GetRawBytes())
	}
	// Unusual entries have no asTree ([ReadTree]). They are sent as they are.
	return r.asTree != nil && typed.Equal(r.asTree, o.asTree)
}

func (r *Record) encodeTree() map[string]any {
	if r.asTree != nil {
		return r.asTree
	}
	out := encodeTree(r.Header())
	switch {
	case r.tree != nil: // only its time has changed
		out["fieldsV1"] = r.tree
	case r.decoded:
		out["fieldsV1"] = r.set.Tree()
	default:
		// The entry of a Go struct that was not decoded, or can't be, goes into an unstructured object. Bytes that are not
		// JSON can't be represented there.
		var fields any
		if utiljson.Unmarshal(r.asStruct.FieldsV1.GetRawBytes(), &fields) == nil {
			out["fieldsV1"] = fields
		}
	}
	return out
}

func (r *Record) encode() metav1.ManagedFieldsEntry {
	if r.asStruct != nil {
		return *r.asStruct
	}
	set, err := r.Fields()
	out := Encode(Entries{{Key: r.Key, APIVersion: r.APIVersion, Time: r.Time, Fields: set}})[0]
	if err != nil {
		// An entry of an unstructured object that can't be decoded goes into a Go struct.
		var fields any = r.tree
		if r.asTree != nil {
			fields = r.asTree["fieldsV1"]
		}
		if data, err := json.Marshal(fields); err == nil {
			out.FieldsV1.SetRawBytes(data)
		}
	}
	return out
}
