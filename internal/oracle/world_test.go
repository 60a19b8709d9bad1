package oracle

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestAtOnce shows which second a slow write dated its entries with, and when the write is repeated.
func TestAtOnce(t *testing.T) {
	for _, row := range []struct {
		name, why string
		dates     []time.Duration // time from the start of the write to each date
		lasts     time.Duration
		want      time.Duration // time since the first try
		tries     int
	}{
		{"slow", "the time is that of the entry", []time.Duration{2 * time.Second}, 3 * time.Second, 2 * time.Second, 1},
		{"nothing dated", "the time does not matter", nil, 3 * time.Second, 0, 1},
		{"within a second", "", []time.Duration{0}, 0, 0, 1},
		{"across the turn of a second", "entries of one write have one time", []time.Duration{0, time.Second},
			time.Second, 9 * time.Second, 10},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first := time.Now().UTC()
				tries := 0
				_, second, err := AtOnce(func() (runtime.Object, error) {
					tries++
					began := time.Now().UTC()
					old, future := metav1.NewTime(first.Add(-time.Hour)), metav1.NewTime(first.Add(time.Hour))
					entries := []metav1.ManagedFieldsEntry{{Time: &old}, {}, {Time: &future}}
					for _, after := range row.dates {
						date := metav1.NewTime(began.Add(after))
						entries = append(entries, metav1.ManagedFieldsEntry{Manager: after.String(), Time: &date})
					}
					time.Sleep(row.lasts)
					out := &unstructured.Unstructured{Object: map[string]any{}}
					out.SetManagedFields(entries)
					return out, nil
				})
				require.NoError(t, err)
				require.Equal(t, row.want, second.Sub(first), row.why)
				require.Equal(t, row.tries, tries, row.why)
			})
		})
	}
}
