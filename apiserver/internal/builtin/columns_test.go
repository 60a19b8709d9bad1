package builtin_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/apiserver/internal/builtin"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// tables are objects and the Tables that Kubernetes 1.36.3 made of them.
type tables struct {
	Now     time.Time `json:"now"`
	Objects []struct {
		Object     json.RawMessage            `json:"object"`
		Cells      []any                      `json:"cells"`
		Conditions []metav1.TableRowCondition `json:"conditions"`
		// Columns stand beside the first object of a kind.
		Columns []metav1.TableColumnDefinition `json:"columns"`
	} `json:"objects"`
}

// TestColumnsAgainstUpstream compares columns and rows with those of upstream's printers.
// The objects are random objects of every kind with a printer, with the values that the
// printers distinguish.
func TestColumnsAgainstUpstream(t *testing.T) {
	var want tables
	require.NoError(t, json.Unmarshal(unzip(t, "testdata/tables-random.json.gz"), &want))
	table := resources.NewTable(builtin.Groups(builtin.Options{Now: func() time.Time { return want.Now }}), 1)
	for _, o := range want.Objects {
		kind, obj := decode(t, table, o.Object)
		columns := kind.TableColumns()
		if o.Columns != nil {
			compareColumns(t, o.Columns, columns.Definitions())
		}
		cells, err := columns.Cells(obj, resources.SinceAt(want.Now))
		require.NoError(t, err)
		require.JSONEq(t, string(encode(t, o.Cells)), string(encode(t, cells)), "%s", o.Object)
		if c, ok := columns.(resources.RowConditioner); ok {
			require.Equal(t, o.Conditions, c.Conditions(obj), "%s", o.Object)
		} else {
			require.Empty(t, o.Conditions)
		}
	}
}

// compareColumns compares columns without their descriptions, which change with the version
// of the Go types.
func compareColumns(t *testing.T, want, got []metav1.TableColumnDefinition) {
	require.Len(t, got, len(want))
	for i := range want {
		w, g := want[i], got[i]
		require.Equal(t, w.Description == "", g.Description == "", "%s: %s", w.Name, g.Description)
		w.Description, g.Description = "", ""
		require.Equal(t, w, g)
	}
}

func decode(t *testing.T, table *resources.Table, data []byte) (resources.Strategy, resources.Object) {
	u := &unstructured.Unstructured{}
	require.NoError(t, u.UnmarshalJSON(data))
	r := table.ResourceOf(u.GroupVersionKind())
	require.NotNil(t, r, "%s", u.GroupVersionKind())
	kind, err := r.Strategy()
	require.NoError(t, err)
	obj := kind.New()
	require.NoError(t, json.Unmarshal(data, obj))
	return kind, obj
}

func encode(t *testing.T, v any) []byte {
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return data
}

func unzip(t *testing.T, file string) []byte {
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	data, err := io.ReadAll(z)
	require.NoError(t, err)
	return data
}

// TestColumnsOfAll shows that an empty object of every kind has a cell for each column, and
// that kinds without a printer have the columns Name and Created At.
func TestColumnsOfAll(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	table := resources.NewTable(builtin.Groups(builtin.Options{Now: func() time.Time { return now }}), 1)
	for _, r := range table.Stored() {
		kind, err := r.Strategy()
		require.NoError(t, err, r.GVK())
		obj := kind.New()
		obj.SetName("n")
		obj.SetCreationTimestamp(metav1.NewTime(now.Add(-90 * time.Minute)))
		cells, err := kind.TableColumns().Cells(obj, resources.SinceAt(now))
		require.NoError(t, err, r.GVK())
		require.GreaterOrEqual(t, len(cells), len(kind.TableColumns().Definitions()), r.GVK())
		require.Contains(t, cells, "n", r.GVK())
	}
	roles, err := table.Resource(schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1",
		Resource: "roles"}).Strategy()
	require.NoError(t, err)
	require.Equal(t, "Created At", roles.TableColumns().Definitions()[1].Name)
}
