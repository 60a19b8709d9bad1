package fieldmanager_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// opaque is a filter that can't be looked into: with it no apply is tried as a
// restatement, and all go through the pipeline.
type opaque struct{ of fieldpath.Filter }

func (o opaque) Filter(set *fieldpath.Set) *fieldpath.Set { return o.of.Filter(set) }

// TestFiltersThatCannotBeLookedInto shows that such filters do what they do: they
// only cost the short cut.
func TestFiltersThatCannotBeLookedInto(t *testing.T) {
	filter := opaque{fieldpath.Excluding{Set: fieldpath.NewSet(fieldpath.Fields("spec", "count"))}}
	m := newManager(
		t,
		"v1",
		func(o *fieldmanager.Options) { o.ResetFields = map[string]fieldpath.Filter{"example.dev/v1": filter} },
	)
	intent := object(t, "v1", "spec: {text: a, count: 1}")
	live, err := writetest.Apply(m, nil, intent, "alice", false)
	require.NoError(t, err)
	require.Equal(t, "alice Apply example.dev/v1 {\"f:spec\":{\"f:text\":{}}}\n", owners(t, live))
	again, err := writetest.Apply(m, stored(live), intent, "alice", false)
	require.NoError(t, err)
	require.Equal(t, stored(live), again)
	entries := again.(*unstructured.Unstructured).GetManagedFields()
	require.Len(t, entries, 1)
	require.Equal(t, metav1.ManagedFieldsOperationApply, entries[0].Operation)
}
