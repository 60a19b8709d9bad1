package kubernetes

import (
	"encoding/json"
	"math/rand"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration"
	apiservice "k8s.io/kube-aggregator/pkg/registry/apiservice/etcd"
	"k8s.io/kubernetes/pkg/printers"
	printersinternal "k8s.io/kubernetes/pkg/printers/internalversion"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// TestOracleTables compares the columns of Tables, the cells and the conditions of rows.
func TestOracleTables(t *testing.T) {
	wide := printers.GenerateOptions{Wide: true}
	generator := printers.NewTableGenerator().With(printersinternal.AddHandlers)
	for _, s := range subjectsAt(t, time.Now) {
		t.Run(s.name(), func(t *testing.T) {
			columns := s.strategy.TableColumns()
			fuzz(t, 8, 1, func(t *testing.T, seed int64) bool {
				obj := s.object(t, s.random(t, seed))
				spread(reflect.ValueOf(obj), rand.New(rand.NewSource(seed)))
				var table *metav1.Table
				var err error
				ok := attempt(func() {
					internal := s.internal(t, obj)
					if _, ok := internal.(*apiregistration.APIService); ok {
						table, err = (&apiservice.REST{}).ConvertToTable(t.Context(), internal, nil)
						return
					}
					table, err = generator.GenerateTable(internal, wide)
				})
				if !ok {
					return false
				}
				if err != nil {
					// A kind without a printer has two columns of registry/rest.
					require.Len(t, columns.Definitions(), 2)
					return true
				}
				require.Len(t, table.Rows, 1)
				require.Empty(t, difference(described(t, s, table.ColumnDefinitions), described(t, s, columns.Definitions())))
				row := metav1.TableRow{}
				row.Cells, err = columns.Cells(obj, resources.SinceAt(time.Now()))
				require.NoError(t, err)
				if c, ok := columns.(resources.RowConditioner); ok {
					row.Conditions = c.Conditions(obj)
				}
				table.Rows[0].Object = runtime.RawExtension{}
				if text := difference(indented(t, table.Rows[0]), indented(t, row)); text != "" {
					require.Fail(t, text, "seed %d: %s", seed, s.text(t, obj))
				}
				return true
			})
		})
	}
}

func indented(t *testing.T, v any) string {
	data, err := json.MarshalIndent(v, "", " ")
	require.NoError(t, err)
	return string(data)
}

// described returns columns as text, without the descriptions that this server takes from v1 (doc/differences.md).
func described(t *testing.T, s subject, columns []metav1.TableColumnDefinition) string {
	columns = slices.Clone(columns)
	switch s.Kind {
	case "CertificateSigningRequest", "RoleBinding", "ClusterRoleBinding":
		for i := range columns {
			columns[i].Description = ""
		}
	}
	return indented(t, columns)
}

// ages are in the middle of the steps in which ages are shown.
var ages = []time.Duration{-40*time.Hour - 30*time.Minute, 30*time.Minute + 30*time.Second,
	5*time.Hour + 10*time.Minute + 30*time.Second, 30*time.Hour + 30*time.Minute, 100*24*time.Hour + 12*time.Hour,
	5*365*24*time.Hour + 12*time.Hour}

// spread sets all times of an object.
func spread(v reflect.Value, r *rand.Rand) {
	switch at := time.Now().Add(-ages[r.Intn(len(ages))]); v.Type() {
	case reflect.TypeFor[metav1.Time]():
		if !v.Field(0).IsZero() {
			v.Set(reflect.ValueOf(metav1.NewTime(at)))
		}
		return
	case reflect.TypeFor[metav1.MicroTime]():
		if !v.Field(0).IsZero() {
			v.Set(reflect.ValueOf(metav1.NewMicroTime(at)))
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			spread(v.Elem(), r)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				spread(v.Field(i), r)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			spread(v.Index(i), r)
		}
	}
}
