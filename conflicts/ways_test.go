package conflicts_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

func TestWaysAsText(t *testing.T) {
	for _, w := range []conflicts.Way{conflicts.GiveUp, conflicts.Share, conflicts.Force} {
		text, err := w.MarshalText()
		require.NoError(t, err)
		var back conflicts.Way
		require.NoError(t, back.UnmarshalText(text))
		require.Equal(t, w, back)
	}
	var w conflicts.Way
	require.EqualError(t, w.UnmarshalText([]byte("flee")),
		`no way out of a conflict: expected give-up, share or force, got "flee"`)
	require.Equal(t, "Way(7)", conflicts.Way(7).String())
}

// TestJSON shows the whole JSON, so that no change of it is overlooked.
func TestJSON(t *testing.T) {
	since := &metav1.Time{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	hpa := updater("hpa", "scale")
	known := conflicts.Conflict{Path: fieldpath.Fields("spec", "replicas"), Owner: hpa, APIVersion: "apps/v1",
		Since: since, Live: int64(3), Applied: int64(1)}
	const hpaJSON = `{"manager":"hpa","operation":"Update","apiVersion":"apps/v1","subresource":"scale"}`
	for _, row := range []struct {
		name, why string
		in        conflicts.Conflict
		want      string
	}{
		{"all is known", "a time is as on the wire", known,
			`{"field":".spec.replicas","owner":` + hpaJSON + `,"since":"2026-01-02T03:04:05Z","live":3,"applied":1}`},
		{"little is known", "what is not known is left out, and values that are not there are null", on(applier("a"), "x"),
			`{"field":".x","owner":{"manager":"a","operation":"Apply"},"live":null,"applied":null}`},
		{"the version of an applier", "the key has none, so it comes from the conflict",
			conflicts.Conflict{Path: fieldpath.Fields("x"), Owner: applier("a"), APIVersion: "v1"},
			`{"field":".x","owner":{"manager":"a","operation":"Apply","apiVersion":"v1"},"live":null,"applied":null}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			data, err := json.Marshal(row.in)
			require.NoError(t, err)
			require.JSONEq(t, row.want, string(data), row.why)
		})
	}
}
