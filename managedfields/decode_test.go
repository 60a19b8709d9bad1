package managedfields_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	upstream "k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/tenure-ssa/tenure/internal/oracle"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

func wire(t testing.TB, text string) (out []metav1.ManagedFieldsEntry) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &out))
	return out
}

func tree(t testing.TB, text string) []any {
	t.Helper()
	var out []any
	require.NoError(t, utiljson.Unmarshal([]byte(text), &out))
	return out
}

// upstreamRoundTrip decodes and encodes as upstream does: its handler of the
// scale subresource keeps entries of versions without replicas as they are.
func upstreamRoundTrip(list []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, error) {
	mappings := upstream.ResourcePathMappings{}
	for _, e := range list {
		mappings[e.APIVersion] = nil
	}
	return upstream.NewScaleHandler(list, schema.GroupVersion{Version: "v1"}, mappings).ToParent(nil)
}

const fields = `"fieldsType":"FieldsV1","fieldsV1":{"f:spec":{}}`

func TestRoundTrip(t *testing.T) {
	for _, row := range []struct {
		name, why, in string
		want          string // empty if it equals in
	}{
		{"none", "", `[]`, `null`},
		{"apply", "", `[{"manager":"a","operation":"Apply","apiVersion":"v1","time":"2020-01-02T03:04:05Z",` + fields + `}]`,
			""},
		{"without time", "an entry may have no time",
			`[{"manager":"a","operation":"Update","apiVersion":"apps/v1",` + fields + `,"subresource":"status"}]`, ""},
		{"without manager", "or manager", `[{"operation":"Update","apiVersion":"v1",` + fields + `}]`, ""},
		{"without fields", "missing fields are none",
			`[{"manager":"a","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1"}]`,
			`[{"manager":"a","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{}}]`},
		{"not canonical", "fields are written canonically",
			`[{"manager":"a","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1",` +
				`"fieldsV1":{"f:b":{},"f:a":{".":{}}}}]`,
			`[{"manager":"a","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:a":{},"f:b":{}}}]`},
		{"unknown kind of path", "what a later version may have added is passed over",
			`[{"manager":"a","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:b":{},"z:b":{}}}]`,
			`[{"manager":"a","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:b":{}}}]`},
		{"same updater twice", "of two with the same key the later counts",
			`[{"manager":"a","operation":"Update","apiVersion":"v1",` + fields +
				`},{"manager":"a","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:b":{}}}]`,
			`[{"manager":"a","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:b":{}}}]`},
		{"same applier at two versions", "an applier's key leaves out the version",
			`[{"manager":"a","operation":"Apply","apiVersion":"v1",` + fields +
				`},{"manager":"a","operation":"Apply","apiVersion":"v2","fieldsType":"FieldsV1","fieldsV1":{"f:b":{}}}]`,
			`[{"manager":"a","operation":"Apply","apiVersion":"v2","fieldsType":"FieldsV1","fieldsV1":{"f:b":{}}}]`},
		{"same updater at two versions", "an updater's keeps it",
			`[{"manager":"a","operation":"Update","apiVersion":"v1",` + fields +
				`},{"manager":"a","operation":"Update","apiVersion":"v2",` + fields + `}]`, ""},
		{"applies first", "applies before updates",
			`[{"manager":"a","operation":"Update","apiVersion":"v1",` + fields +
				`},{"manager":"b","operation":"Apply","apiVersion":"v1",` + fields + `}]`,
			`[{"manager":"b","operation":"Apply","apiVersion":"v1",` + fields +
				`},{"manager":"a","operation":"Update","apiVersion":"v1",` + fields + `}]`},
		{"by time", "then by time, none first",
			`[{"manager":"a","operation":"Apply","apiVersion":"v1","time":"2020-01-02T00:00:00Z",` + fields +
				`},{"manager":"b","operation":"Apply","apiVersion":"v1","time":"2020-01-01T00:00:00Z",` + fields +
				`},{"manager":"c","operation":"Apply","apiVersion":"v1",` + fields + `}]`,
			`[{"manager":"c","operation":"Apply","apiVersion":"v1",` + fields +
				`},{"manager":"b","operation":"Apply","apiVersion":"v1","time":"2020-01-01T00:00:00Z",` + fields +
				`},{"manager":"a","operation":"Apply","apiVersion":"v1","time":"2020-01-02T00:00:00Z",` + fields + `}]`},
		{"before 1970", "a time before 1970 sorts before no time",
			`[{"manager":"a","operation":"Apply","apiVersion":"v1",` + fields +
				`},{"manager":"b","operation":"Apply","apiVersion":"v1","time":"1960-01-01T00:00:00Z",` + fields + `}]`,
			`[{"manager":"b","operation":"Apply","apiVersion":"v1","time":"1960-01-01T00:00:00Z",` + fields +
				`},{"manager":"a","operation":"Apply","apiVersion":"v1",` + fields + `}]`},
		{"by manager, version, subresource", "then by the rest",
			`[{"manager":"b","operation":"Update","apiVersion":"v1",` + fields +
				`},{"manager":"a","operation":"Update","apiVersion":"v2",` + fields +
				`},{"manager":"a","operation":"Update","apiVersion":"v1",` + fields +
				`,"subresource":"status"},{"manager":"a","operation":"Update","apiVersion":"v1",` + fields + `}]`,
			`[{"manager":"a","operation":"Update","apiVersion":"v1",` + fields +
				`},{"manager":"a","operation":"Update","apiVersion":"v1",` + fields +
				`,"subresource":"status"},{"manager":"a","operation":"Update","apiVersion":"v2",` + fields +
				`},{"manager":"b","operation":"Update","apiVersion":"v1",` + fields + `}]`},
	} {
		t.Run(row.name, func(t *testing.T) {
			if row.want == "" {
				row.want = row.in
			}
			entries, err := managedfields.Decode(wire(t, row.in))
			require.NoError(t, err)
			require.JSONEq(t, row.want, oracle.JSON(entries.Encode()), row.why)

			fromTree, err := managedfields.DecodeTree(tree(t, row.in))
			require.NoError(t, err)
			require.JSONEq(t, row.want, oracle.JSON(fromTree.EncodeTree()), "both wire forms agree")

			theirs, err := upstreamRoundTrip(wire(t, row.in))
			require.NoError(t, err)
			require.JSONEq(t, row.want, oracle.JSON(theirs), "upstream")
			require.Equal(t, row.want == "null", entries.Encode() == nil, "nil for none")
		})
	}
}

func TestMalformed(t *testing.T) {
	for _, row := range []struct {
		name, why, in string
		want          string
	}{
		{"operation", "there are two operations", `[{"manager":"a","operation":"Patch","apiVersion":"v1",` + fields + `}]`,
			`managedFields[0] of manager "a": operation must be Apply or Update, got "Patch"`},
		{"empty entry", "", `[{}]`, `managedFields[0] of manager "": operation must be Apply or Update, got ""`},
		{"version", "a version is needed", `[{"manager":"a","operation":"Apply",` + fields + `}]`,
			`managedFields[0] of manager "a": apiVersion must not be empty`},
		{"format", "there is one format", `[{"manager":"a","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV2"}]`,
			`managedFields[0] of manager "a": fieldsType must be FieldsV1, got "FieldsV2"`},
		{"no format", "", `[{"manager":"a","operation":"Apply","apiVersion":"v1"}]`,
			`managedFields[0] of manager "a": fieldsType must be FieldsV1, got ""`},
		{"second", "the error says which",
			`[{"manager":"a","operation":"Apply","apiVersion":"v1",` + fields +
				`},{"manager":"b","operation":"Apply","apiVersion":"","fieldsType":"FieldsV1"}]`,
			`managedFields[1] of manager "b": apiVersion must not be empty`},
		{"fields", "",
			`[{"manager":"a","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"k:1":{}}}]`, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := managedfields.DecodeTree(tree(t, row.in))
			var located *managedfields.Error
			require.ErrorAs(t, err, &located, row.why)
			if row.want != "" {
				require.EqualError(t, err, row.want, row.why)
			}
			_, err = managedfields.Decode(wire(t, row.in))
			require.ErrorAs(t, err, &located)
			if row.want != "" {
				require.EqualError(t, err, row.want)
			} else {
				var syntax *fieldpath.SyntaxError
				require.ErrorAs(t, err, &syntax, "the error of the fields is inside")
			}
			l, err := managedfields.Read(holder(wire(t, row.in)...))
			if strings.Contains(row.want, "operation") {
				require.EqualError(t, err, row.want)
			} else {
				require.NoError(t, err, "the key can be read")
				require.Equal(t, wire(t, row.in), l.Encode(), "as they were")
			}
			require.Error(t, upstream.ValidateManagedFields(wire(t, row.in)), "upstream")
		})
	}
}

func TestTimesOnTheWire(t *testing.T) {
	when := time.Date(2020, 1, 2, 3, 4, 5, 999, time.FixedZone("x", 3600))
	key := managedfields.KeyOf("a", metav1.ManagedFieldsOperationApply, "v1", "")
	e := managedfields.Entries{managedfields.NewEntry(key, "v1", &metav1.Time{Time: when}, nil)}
	got := e.EncodeTree()[0].(map[string]any)
	require.Equal(t, "2020-01-02T02:04:05Z", got["time"], "in whole seconds, at Greenwich")
	back, err := managedfields.DecodeTree(
		[]any{map[string]any{"operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "time": nil,
			"fieldsV1": nil}})
	require.NoError(t, err, "nulls are as good as nothing")
	require.Nil(t, back[0].Time)
}
