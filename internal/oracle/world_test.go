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

// TestAtOnce shows that all entries that a slow write dated get the second in which it began, and no others.
func TestAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now().UTC()
		later := metav1.NewTime(began.Add(time.Hour))
		write := func(out metav1.Object) func() (runtime.Object, error) {
			return func() (runtime.Object, error) {
				before := metav1.NewTime(began.Add(-time.Hour))
				entries := []metav1.ManagedFieldsEntry{{Manager: "old", Time: &before}, {Manager: "never"}}
				for _, manager := range []string{"before-first-apply", "applier"} {
					time.Sleep(1500 * time.Millisecond)
					now := metav1.Now()
					entries = append(entries, metav1.ManagedFieldsEntry{Manager: manager, Time: &now})
				}
				out.SetManagedFields(append(entries, metav1.ManagedFieldsEntry{Manager: "later", Time: &later}))
				return out.(runtime.Object), nil
			}
		}
		tree := &unstructured.Unstructured{Object: map[string]any{}}
		for _, out := range []metav1.Object{tree, &metav1.PartialObjectMetadata{}} {
			second := time.Now().UTC()
			_, at, err := AtOnce(write(out))
			require.NoError(t, err)
			require.Equal(t, second, at)
			entries := out.GetManagedFields()
			require.Len(t, entries, 5)
			require.True(t, entries[0].Time.Before(&metav1.Time{Time: began}), "an entry of another write")
			require.Nil(t, entries[1].Time)
			require.True(t, entries[2].Time.Time.Equal(second))
			require.True(t, entries[3].Time.Time.Equal(second))
			require.True(t, entries[4].Time.Time.Equal(later.Time), "of no write before now")
		}
	})
}
