package managedfields_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/internal/fieldsv1"
	"github.com/tenure-ssa/tenure/internal/hooks"
	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

type m = map[string]any

const at = "2026-01-02T03:04:05Z"

// item returns an entry as in an unstructured object. change has names and values in pairs.
func item(manager, op string, fields any, change ...any) m {
	out := m{"manager": manager, "operation": op, "apiVersion": "v1", "fieldsType": "FieldsV1", "time": at,
		"fieldsV1": fields}
	for i := 0; i < len(change); i += 2 {
		if change[i+1] == nil {
			delete(out, change[i].(string))
		} else {
			out[change[i].(string)] = change[i+1]
		}
	}
	return out
}

func objectWith(items ...any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: m{"apiVersion": "v1", "kind": "X",
		"metadata": m{"name": "x", "resourceVersion": "7", "managedFields": items}}}
}

func itemsOf(obj runtime.Object) any {
	list, _ := managedfields.Of(obj.(*unstructured.Unstructured).Object)
	return list
}

// structOf returns a Go struct with the entries as a server would decode them.
func structOf(t *testing.T, items ...any) *metav1.PartialObjectMetadata {
	t.Helper()
	out := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "x", ResourceVersion: "7"}}
	data, err := json.Marshal(items)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &out.ManagedFields))
	return out
}

func owning(name string) m { return m{"f:spec": m{"f:" + name: m{}}} }

func parse(t *testing.T, text string) *fieldpath.Set {
	t.Helper()
	set, err := fieldpath.Parse([]byte(text))
	require.NoError(t, err)
	return set
}

// TestListReadsBothForms: a Go struct and an unstructured object result in the same entries, and each entry is written
// unchanged in either form.
func TestListReadsBothForms(t *testing.T) {
	for _, row := range []struct {
		name, why string
		items     []any
	}{
		{"none", "", nil},
		{"one", "", []any{item("a", "Apply", owning("x"))}},
		{"several", "", []any{item("a", "Apply", owning("x")), item("u", "Update", owning("y"), "subresource", "status")}},
		{"no time", "a manager that changed nothing has none", []any{item("a", "Apply", owning("x"), "time", nil)}},
		{"no fields", "", []any{item("a", "Apply", m{})}},
		{"a member of no kind", "it can't be decoded", []any{item("a", "Apply", m{"x": m{}})}},
		{"no JSON in a key", "it can't be decoded",
			[]any{item("a", "Apply", m{"f:spec": m{"k:{": m{}}}), item("b", "Apply", owning("y"))}},
		{"a text", "it can't be decoded", []any{item("a", "Apply", "text")}},
		{"a list", "it can't be decoded", []any{item("a", "Apply", []any{"text"})}},
	} {
		t.Run(row.name, func(t *testing.T) {
			given, as := objectWith(row.items...), structOf(t, row.items...)
			before, asBefore := given.DeepCopy(), as.DeepCopy()
			for _, from := range []runtime.Object{given, as} {
				l, err := managedfields.Read(from)
				require.NoError(t, err)
				require.Len(t, l, len(row.items))
				for range 2 { // first as read, then after each entry that can be decoded was decoded
					bare := objectWith()
					delete(bare.Object["metadata"].(m), "managedFields")
					intoTree, err := l.Into(bare)
					require.NoError(t, err)
					list, _ := itemsOf(intoTree).([]any)
					require.Equal(t, row.items, list, row.why)
					intoStruct, err := l.Into(&metav1.PartialObjectMetadata{})
					require.NoError(t, err)
					require.Equal(t, plainJSON(t, row.items), plainJSON(t, intoStruct.(*metav1.PartialObjectMetadata).ManagedFields),
						row.why)
					for i := range l {
						_, _ = l[i].FieldSet()
					}
				}
			}
			require.Equal(t, before, given, "what was read is not changed")
			require.Equal(t, asBefore, as)
		})
	}
}

// plainJSON returns v as JSON with sorted names; no list equals an empty list.
func plainJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	require.NoError(t, err)
	var plain any
	require.NoError(t, json.Unmarshal(data, &plain))
	if plain == nil {
		plain = []any{}
	}
	data, err = json.Marshal(plain)
	require.NoError(t, err)
	return string(data)
}

// TestListErrors: an error has the position of its entry. Only an invalid key is an error of the whole list.
func TestListErrors(t *testing.T) {
	good := item("good", "Apply", owning("x"))
	for _, row := range []struct {
		name   string
		bad    any
		isKept bool
		want   string
	}{
		{"fields", item("bad", "Apply", m{"x": m{}}), true, `managedFields[1] of manager "bad": fieldsV1 at the root`},
		{"fields are a text", item("bad", "Apply", "text"), true,
			`managedFields[1] of manager "bad": fieldsV1: expected a map, got string`},
		{"time", item("bad", "Apply", owning("x"), "time", "yesterday"), true,
			`managedFields[1] of manager "bad": time: expected RFC 3339`},
		{"no fieldsType", item("bad", "Apply", owning("x"), "fieldsType", nil), true,
			`managedFields[1] of manager "bad": fieldsType must be FieldsV1, got ""`},
		{"another fieldsType", item("bad", "Apply", nil, "fieldsType", "FieldsV2"), true,
			`managedFields[1] of manager "bad": fieldsType must be FieldsV1, got "FieldsV2"`},
		{"no apiVersion", item("bad", "Apply", owning("x"), "apiVersion", nil), true,
			`managedFields[1] of manager "bad": apiVersion must not be empty`},
		{"operation", item("bad", "Patch", owning("x")), false, `managedFields[1] of manager "bad": operation must be`},
		{"manager", item("bad", "Apply", owning("x"), "manager", int64(1)), false,
			`managedFields[1] of manager "": manager: expected a string`},
		{"entry", "bad", false, `managedFields[1] of manager "": expected a map, got string`},
	} {
		t.Run(row.name, func(t *testing.T) {
			l, err := managedfields.Read(objectWith(good, row.bad))
			entry, oneErr := managedfields.ReadEntry(row.bad, 1)
			if row.isKept {
				require.NoError(t, err)
				require.NoError(t, oneErr)
				_, err = l[1].FieldSet()
				_, oneErr = entry.FieldSet()
				require.False(t, l[1].IsEmpty(), "it may own anything")
				require.Empty(t, l[1].Intersection(parse(t, `{"f:spec":{"f:x":{}}}`)), "nothing is known to be taken from it")
				l[1].Subtract(parse(t, `{"f:spec":{}}`))
				l[1].Add(parse(t, `{"f:spec":{}}`))
				require.Error(t, l[1].Reconcile(typed.Deduced()))
				require.Equal(t, row.bad, l.EncodeTree()[0], "sorted, and as it was")
				require.ErrorContains(t, l.Err(), "bad")
			}
			require.ErrorContains(t, err, row.want)
			require.ErrorContains(t, oneErr, row.want)
			var located *managedfields.Error
			require.ErrorAs(t, err, &located)
			require.Equal(t, 1, located.Index)
		})
	}
	for name, metadata := range map[string]any{"expected a map, got string": "x",
		"expected a list, got string": m{"managedFields": "x"}} {
		_, err := managedfields.Read(&unstructured.Unstructured{Object: m{"metadata": metadata}})
		require.ErrorContains(t, err, name)
	}
	_, err := managedfields.Read(&metav1.Status{})
	require.ErrorContains(t, err, "Status")
	_, err = managedfields.Read(objectWith(make([]any, limits.MaxEntries+1)...))
	require.ErrorContains(t, err, "entries")
	bytes := structOf(t, good)
	bytes.ManagedFields[0].FieldsV1 = fieldsv1.New("{no JSON")
	l, err := managedfields.Read(bytes)
	require.NoError(t, err)
	_, err = l[0].FieldSet()
	require.Error(t, err)
	into, err := l.Into(&metav1.PartialObjectMetadata{})
	require.NoError(t, err)
	require.Equal(t, bytes.ManagedFields, into.(*metav1.PartialObjectMetadata).ManagedFields)
	require.NotContains(t, l.EncodeTree()[0], "fieldsV1", "a tree has no place for what is no JSON")
	bytes.ManagedFields[0].FieldsV1 = nil
	l, err = managedfields.Read(bytes)
	require.NoError(t, err)
	require.NotContains(t, l.EncodeTree()[0], "fieldsV1", "nothing is added")
}

// TestListOrderAndDuplicates: if two entries have one key, the later one is used, in the position of the first. The
// list is written sorted.
func TestListOrderAndDuplicates(t *testing.T) {
	for _, n := range []int{0, 30} { // short lists are searched linearly, long lists are hashed
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			a, later := item("a", "Apply", owning("x")), item("a", "Apply", owning("y"), "apiVersion", "v2")
			u, broken := item("u", "Update", owning("x")), item("u", "Update", m{"x": m{}})
			var more []any
			for i := range n {
				more = append(more, item(fmt.Sprintf("z%02d", i), "Update", owning("x")))
			}
			given := append([]any{u, a, later, broken}, more...)
			var l, sorted managedfields.Entries
			isCurrent, err := hooks.ReadEntries(objectWith(given...), &l)
			require.NoError(t, err)
			require.False(t, isCurrent)
			require.Equal(t, append([]any{later, broken}, more...), l.EncodeTree())
			require.Equal(t, "v2", l.Get(managedfields.Key{Manager: "a", Operation: "Apply"}).APIVersion)
			require.Nil(t, l.Get(managedfields.Key{Manager: "b", Operation: "Apply"}))
			for k, i := range l.Positions() {
				require.Equal(t, i, l.Index(k))
			}
			isCurrent, err = hooks.ReadEntries(objectWith(append([]any{a, u}, more...)...), &sorted)
			require.NoError(t, err)
			require.True(t, isCurrent)
			require.Len(t, sorted.Without(managedfields.Key{Manager: "b"}), 2+n)
			require.Equal(t, append([]any{u}, more...),
				sorted.Without(managedfields.Key{Manager: "a", Operation: "Apply"}).EncodeTree())
			require.Nil(t, managedfields.Entries{}.EncodeTree())
			require.Nil(t, managedfields.Entries{}.Encode())
		})
	}
}

// TestRecordSets compares the operations of entries, in all forms, with the operations of sets.
func TestRecordSets(t *testing.T) {
	texts := []string{`{}`, `{"f:a":{}}`, `{"f:a":{".":{},"f:b":{}}}`, `{"f:a":{"f:b":{}},"f:c":{}}`,
		`{"f:l":{"k:{\"n\":\"x\"}":{".":{},"f:n":{}}}}`, `{"f:l":{"k:{\"n\":\"x\"}":{"f:v":{}},"v:1":{}}}`}
	for _, own := range texts {
		for _, other := range texts {
			var fields m
			require.NoError(t, json.Unmarshal([]byte(own), &fields))
			given, set, other := item("a", "Apply", fields), parse(t, own), parse(t, other)
			for name, from := range map[string]runtime.Object{
				"tree": objectWith(given), "reconciled tree": objectWith(given), "struct": structOf(t, given),
			} {
				record := func() *managedfields.Entry {
					l, err := managedfields.Read(from.DeepCopyObject())
					require.NoError(t, err)
					if name == "reconciled tree" {
						require.NoError(t, l[0].Reconcile(typed.Deduced()))
					}
					return &l[0]
				}
				check := func(r *managedfields.Entry, want *fieldpath.Set, what string) {
					t.Helper()
					same := want.Equal(set)
					require.Equal(t, same, r.IsUnchanged(), "%s of %s and %s in a %s", what, set, other, name)
					got, err := r.FieldSet()
					require.NoError(t, err)
					require.Equal(t, want.String(), got.String(), "%s of %s and %s in a %s", what, set, other, name)
					require.Equal(t, want.IsEmpty(), r.IsEmpty())
				}
				r := record()
				require.Equal(t, set.Intersection(other).String(), r.Intersection(other).String())
				require.Equal(t, set.IsEmpty(), r.IsEmpty())
				check(r, set, "nothing")
				r = record()
				r.Subtract(other)
				require.Equal(t, name != "reconciled tree", r.IsDecoded(), "a reconciled tree is not decoded for it")
				check(r, set.Difference(other), "Subtract")
				r = record()
				r.Add(other)
				check(r, set.Union(other), "Add")
				r = record()
				r.Subtract(other)
				r.Add(other)
				got, err := r.FieldSet()
				require.NoError(t, err)
				require.Equal(t, set.Union(other).String(), got.String())
				r = record()
				r.SetFieldSet(other)
				got, err = r.FieldSet()
				require.NoError(t, err)
				require.Equal(t, other.String(), got.String())
				require.False(t, r.IsUnchanged())
			}
		}
	}
}

// TestRecordChanges: changes are written in both forms, and everything else is written as it was read.
func TestRecordChanges(t *testing.T) {
	other := metav1.NewTime(time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC))
	const later = "2027-01-02T03:04:05Z"
	given := []any{item("a", "Apply", owning("x")), item("b", "Apply", owning("x")), item("c", "Apply", owning("x")),
		item("d", "Apply", m{"x": m{}})} // d can't be decoded
	want := []any{
		given[0],
		item("b", "Apply", m{"f:z": m{}}, "time", later),
		item("c", "Apply", owning("x"), "time", later),
		item("d", "Apply", m{"x": m{}}, "time", later),
	}
	for name, from := range map[string]runtime.Object{"tree": objectWith(given...), "struct": structOf(t, given...)} {
		l, err := managedfields.Read(from)
		require.NoError(t, err, name)
		l[1].SetTime(&other)
		l[1].SetFieldSet(parse(t, `{"f:z":{}}`))
		l[2].SetTime(&other)
		l[3].SetTime(&other)
		require.Equal(t, want, l.EncodeTree(), name)
		require.Equal(t, plainJSON(t, want), plainJSON(t, l.Encode()), name)
		fields, err := l[0].FieldSet()
		require.NoError(t, err)
		l[0].SetFieldSet(fields)
		require.True(t, l[0].IsUnchanged(), "the same set is no change")
		require.Equal(t, `{"f:z":{}}`, string(l[1].Owned().AppendJSON(nil)))
		require.NoError(t, l[:3].Err())
		require.Nil(t, l[3].Owned())
	}
}

// TestSetTimeOfMalformed: if the fieldsV1 of an entry is not a map, the other members are kept.
func TestSetTimeOfMalformed(t *testing.T) {
	malformed := item("a", "Update", "no map", "time", nil)
	e, err := managedfields.ReadEntry(malformed, 0)
	require.NoError(t, err)
	e.SetTime(nil)
	delete(malformed, "fieldsV1")
	require.Equal(t, []any{malformed}, managedfields.Entries{e}.EncodeTree())
}

// TestIsEmpty: an entry that was not decoded is empty if it has no fields of known kinds.
func TestIsEmpty(t *testing.T) {
	for _, row := range []struct {
		name, why string
		fields    m
		want      bool
	}{
		{"nothing", "", m{}, true},
		{"itself", "the object itself is no field", m{".": m{}}, true},
		{"a field", "", m{"f:a": m{}}, false},
		{"an item by its key", "", m{`k:{"a":1}`: m{}}, false},
		{"an item by its value", "", m{"v:1": m{}}, false},
		{"an item by its position", "", m{"i:1": m{}}, false},
		{"a kind of a later version", "it is left out when the entry is decoded", m{"q:later": m{}}, true},
		{"a kind of a later version, and a field", "", m{"q:later": m{}, "f:a": m{}}, false},
		{"no kind", "what can't be decoded may own anything", m{"a": m{}}, false},
		{"no name", "it can't be decoded", m{"": m{}}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			l, err := managedfields.Read(objectWith(item("a", "Apply", row.fields)))
			require.NoError(t, err)
			require.Equal(t, row.want, l[0].IsEmpty(), row.why)
		})
	}
}

// TestRecordReconcile: an entry in either form is adapted to the topology (spec rule 8.1). If it already has the
// topology, it is not changed.
func TestRecordReconcile(t *testing.T) {
	atomic := &typed.Type{Map: typed.NewMap(map[string]typed.Field{
		"a": {Type: &typed.Type{Map: typed.NewMap(nil, typed.Deduced()).WithAtomic(true)}},
		"b": {Type: typed.Deduced()},
	}, nil)}
	given := []any{item("a", "Apply", m{"f:a": m{"f:x": m{}}, "f:b": m{}}), item("b", "Apply", m{"f:a": m{}})}
	want := []any{item("a", "Apply", m{"f:a": m{}, "f:b": m{}}), given[1]}
	for name, from := range map[string]runtime.Object{"tree": objectWith(given...), "struct": structOf(t, given...)} {
		l, err := managedfields.Read(from)
		require.NoError(t, err)
		for i := range l {
			require.NoError(t, l[i].Reconcile(atomic))
			require.Equal(t, i == 1, l[i].IsUnchanged(), name)
		}
		require.NoError(t, l[1].Reconcile(atomic), "again")
		require.Equal(t, want, l.EncodeTree(), name)
	}
}

// TestCompareKeys: keys are in the order of their JSON, as in upstream.
func TestCompareKeys(t *testing.T) {
	texts := []string{"", "a", "b", "ab", "a b", "a!", `a"`, "a#", `a\`, "a<", "é", "a\n", "\x7f",
		"\xff", "a\xfe", "<&>", "a\u2028"}
	r := rand.New(rand.NewPCG(1, 2))
	pick := func() string { return texts[r.IntN(len(texts))] }
	written := func(k managedfields.Key) string {
		data, err := json.Marshal(metav1.ManagedFieldsEntry{
			Manager: k.Manager, Operation: k.Operation, APIVersion: k.APIVersion, Subresource: k.Subresource})
		require.NoError(t, err)
		return string(data)
	}
	for range 20_000 {
		a := managedfields.Key{Manager: pick(), Operation: metav1.ManagedFieldsOperationType(pick()), APIVersion: pick(),
			Subresource: pick()}
		b := managedfields.Key{Manager: pick(), Operation: metav1.ManagedFieldsOperationType(pick()), APIVersion: pick(),
			Subresource: pick()}
		if r.IntN(2) == 0 {
			b.Manager = a.Manager
		}
		want := 0
		if x, y := written(a), written(b); x < y {
			want = -1
		} else if x > y {
			want = 1
		}
		require.Equal(t, want, a.Compare(b), "%s and %s", written(a), written(b))
	}
}
