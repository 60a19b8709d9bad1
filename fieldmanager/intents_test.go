package fieldmanager_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// TestIntentsThatSayLittle has intents of which next to nothing is left.
func TestIntentsThatSayLittle(t *testing.T) {
	m := newManager(t, "v1")
	got, err := writetest.Apply(
		m,
		nil,
		object(t, "v1", "metadata: {name: x, managedFields: null}\nspec: {text: a}"),
		"alice",
		false,
	)
	require.NoError(t, err, "a null is no managed fields")
	require.Contains(t, owners(t, got), "alice Apply")

	everything := fieldpath.NewSet(
		fieldpath.Fields("apiVersion"),
		fieldpath.Fields("kind"),
		fieldpath.Fields("metadata"),
		fieldpath.Fields("spec"),
	)
	m = newManager(
		t,
		"v1",
		func(o *fieldmanager.Options) {
			o.ResetFields = map[string]fieldpath.Filter{"example.dev/v1": fieldpath.Excluding{Set: everything}}
		},
	)
	got, err = writetest.Apply(m, nil, object(t, "v1", "spec: {text: a}"), "alice", false)
	require.NoError(t, err)
	require.NotContains(
		t,
		contents(got)["metadata"],
		"managedFields",
		"who owns nothing has no entry, and an object without entries no list",
	)

	m = newManager(t, "v1", func(o *fieldmanager.Options) { o.FieldValidation = metav1.FieldValidationWarn })
	got, err = writetest.Apply(m, nil, object(t, "v1", "spec: {text: a, nope: 1}"), "alice", false)
	require.NoError(t, err, "there need be nobody to warn")
	require.Equal(t, map[string]any{"text": "a"}, contents(got)["spec"])
}

// TestAppliesThatChangeNothing: what is equal stays as live has it, and is not defaulted again.
func TestAppliesThatChangeNothing(t *testing.T) {
	defaulted := 0
	m, err := fieldmanager.New(thingKind, anyType{}, fieldmanager.Options{
		Defaulter: func(runtime.Object) { defaulted++ },
	})
	require.NoError(t, err)
	live := stored(object(t, "v1", ""))
	live.Object["n"] = 1.0
	intent := object(t, "v1", "")
	intent.Object["n"] = int64(1)
	got, err := writetest.Apply(m, live, intent, "alice", false)
	require.NoError(t, err)
	require.Equal(t, any(1.0), contents(got)["n"], "1 and 1.0 are one number")
	require.Zero(t, defaulted)
	intent.Object["n"] = int64(2)
	_, err = writetest.Apply(m, live, intent, "alice", true)
	require.NoError(t, err)
	require.Equal(t, 1, defaulted)
}
