package managedfields_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
)

func anyType(string) (*typed.Type, error) { return typed.Deduced(), nil }

// TestSent: entries in a request that equal live's are replaced by live's, even if they can't be decoded. Others must
// be well-formed, and are brought into canonical form.
func TestSent(t *testing.T) {
	broken := item("b", "Apply", m{"x": m{}})
	none := item("n", "Apply", nil, "fieldsV1", nil)
	live := []any{broken, item("c", "Apply", owning("x")), none, item("u", "Update", m{"q:later": m{}, "f:x": m{}})}
	const nobody = "an entry that can't be decoded may only be live's"
	for _, row := range []struct {
		name, why string
		sent      []any
		want      []any
		err       string
	}{
		{"as it is", "", live, live, ""},
		{"less", "what is left out is dropped", live[1:], live[1:], ""},
		{"other fields", "", []any{item("c", "Apply", owning("y"))}, []any{item("c", "Apply", owning("y"))}, ""},
		{"not canonical", "a mark of its own says nothing beside no others",
			[]any{item("c", "Apply", m{"f:x": m{".": m{}}})}, []any{item("c", "Apply", m{"f:x": m{}})}, ""},
		{"without fields, as live's", "", []any{none}, []any{none}, ""},
		{"without fields, where live's has some", "", []any{item("c", "Apply", nil, "fieldsV1", nil)},
			[]any{item("c", "Apply", m{})}, ""},
		{"with fields, where live's has none", "", []any{item("n", "Apply", m{"f:x": m{".": m{}}})},
			[]any{item("n", "Apply", m{"f:x": m{}})}, ""},
		{"another that can't be decoded", nobody, []any{item("d", "Apply", m{"x": m{}})}, nil, `manager "d"`},
		{"that, of another time", nobody, []any{item("b", "Apply", m{"x": m{}}, "time", nil)}, nil, `manager "b"`},
		{"that, of another version", nobody, []any{item("b", "Apply", m{"x": m{}}, "apiVersion", "v2")}, nil, `manager "b"`},
		{"that, with other bytes", nobody, []any{item("b", "Apply", m{"y": m{}})}, nil, `manager "b"`},
		{"fields are a text", nobody, []any{item("c", "Apply", "text")}, nil, `manager "c"`},
	} {
		for name, form := range map[string]func(items ...any) runtime.Object{
			"tree":   func(items ...any) runtime.Object { return objectWith(items...) },
			"struct": func(items ...any) runtime.Object { return structOf(t, items...) },
		} {
			t.Run(row.name+"/"+name, func(t *testing.T) {
				sent, err := managedfields.Read(form(row.sent...))
				require.NoError(t, err)
				before, err := managedfields.Read(form(live...))
				require.NoError(t, err)
				err = sent.Normalize(before, anyType)
				if row.err != "" {
					require.ErrorContains(t, err, row.err, row.why)
					return
				}
				require.NoError(t, err)
				if name == "tree" {
					require.Equal(t, row.want, sent.EncodeTree(), row.why)
				} else {
					require.Equal(t, plainJSON(t, row.want), plainJSON(t, sent.Encode()), row.why)
				}
			})
		}
	}
}

// TestSentAsItWouldBeWritten: an entry that live does not have is brought into the form that servers write, or
// rejected.
func TestSentAsItWouldBeWritten(t *testing.T) {
	null := item("a", "Apply", nil)
	null["fieldsV1"] = nil
	for _, row := range []struct {
		name string
		sent m
		want m // nil if it equals sent
		err  string
	}{
		{"with a time", item("a", "Apply", owning("x")), nil, ""},
		{"without a time", item("a", "Apply", owning("x"), "time", nil), nil, ""},
		{"of a subresource", item("a", "Apply", owning("x"), "subresource", "status"), nil, ""},
		{"of a subresource, without a time", item("a", "Apply", owning("x"), "subresource", "status", "time", nil), nil, ""},
		{"another member", item("a", "Apply", owning("x"), "more", "text"), item("a", "Apply", owning("x")), ""},
		{"another member, and no time", item("a", "Apply", owning("x"), "more", "text", "time", nil),
			item("a", "Apply", owning("x"), "time", nil), ""},
		{"fields are null", null, item("a", "Apply", m{}), ""},
		{"a member in place of the fields", item("a", "Apply", nil, "fieldsV1", nil, "more", "text"),
			item("a", "Apply", m{}), ""},
		{"no such time", item("a", "Apply", owning("x"), "time", "yesterday"), nil, "RFC 3339"},
		{"a mark of its own beside no others", item("a", "Apply", m{"f:x": m{".": m{}}}),
			item("a", "Apply", m{"f:x": m{}}), ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			sent, err := managedfields.Read(objectWith(row.sent))
			require.NoError(t, err)
			err = sent.Normalize(nil, anyType)
			if row.err != "" {
				require.ErrorContains(t, err, row.err)
				return
			}
			require.NoError(t, err)
			want := row.want
			if want == nil {
				want = row.sent
			}
			require.Equal(t, []any{want}, sent.EncodeTree())
		})
	}
}

// TestSentUnusual: entries in a form that no server writes are never treated as live's, so the entries of the request
// are used.
func TestSentUnusual(t *testing.T) {
	read := func(name string) managedfields.Entries {
		l, err := managedfields.Read(
			objectWith(item("a", "Apply", owning(name), "time", "2026-01-02T03:04:05.678Z")))
		require.NoError(t, err)
		return l
	}
	sent := read("x")
	require.NoError(t, sent.Normalize(read("y"), anyType))
	require.Equal(t, []any{item("a", "Apply", owning("x"))}, sent.EncodeTree())
}

// TestSentInAnotherForm: an entry of a Go struct is never treated as equal to an entry of an unstructured object.
func TestSentInAnotherForm(t *testing.T) {
	for _, row := range []struct {
		name       string
		sent, live runtime.Object
	}{
		{"struct over tree",
			structOf(t, item("a", "Apply", m{"f:x": m{".": m{}}})), objectWith(item("a", "Apply", m{"f:y": m{}}))},
		{"tree over struct",
			objectWith(item("a", "Apply", m{"f:x": m{".": m{}}})), structOf(t, item("a", "Apply", m{"f:y": m{}}))},
	} {
		t.Run(row.name, func(t *testing.T) {
			sent, err := managedfields.Read(row.sent)
			require.NoError(t, err)
			live, err := managedfields.Read(row.live)
			require.NoError(t, err)
			require.NoError(t, sent.Normalize(live, anyType))
			require.Equal(t, []any{item("a", "Apply", m{"f:x": m{}})}, sent.EncodeTree())
		})
	}
}
