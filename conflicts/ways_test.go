package conflicts_test

import (
	"encoding/json"
	"regexp"
	"strings"
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

func TestLosses(t *testing.T) {
	c := conflicts.Conflicts{on(applier("a"), "x"), on(updater("b", "status"), "y"), on(applier("a"), "z")}
	got := c.Losses()
	require.Len(t, got, 2)
	require.Equal(t, ".x\n.z", got[0].Fields.String())
	require.Equal(t, updater("b", "status"), got[1].Owner)
	require.Empty(t, conflicts.Conflicts(nil).Losses())
}

// TestStyle shows that a style decorates every part and moves none.
func TestStyle(t *testing.T) {
	report := conflicts.Report{Object: "deployment.apps/nginx", Manager: "me", Conflicts: conflicts.Conflicts{
		{Path: fieldpath.Fields("spec", "replicas"), Owner: updater("hpa", "scale"), Live: int64(3), Applied: int64(1)},
		{Path: fieldpath.Fields("spec", "é"), Owner: applier("b"), Live: "ü", Applied: nil},
	}}
	for i := range 25 {
		report.Conflicts = append(report.Conflicts, on(applier("c"), "spec", strings.Repeat("x", i+1)))
	}
	report.Ways = []conflicts.WayOut{{Way: conflicts.Force, Force: true, Losses: report.Conflicts.Losses()}}
	code := func(n string) func(string) string {
		return func(s string) string { return "\x1b[" + n + "m" + s + "\x1b[0m" }
	}
	var plain, styled strings.Builder
	require.NoError(t, report.Render(&plain, conflicts.Style{}))
	style := conflicts.Style{Heading: code("1"), Field: code("2"), Owner: code("3"), Theirs: code("4"), Yours: code("5"),
		Way: code("6")}
	require.NoError(t, report.Render(&styled, style))
	for _, n := range []string{"1", "2", "3", "4", "5", "6"} {
		require.Contains(t, styled.String(), "\x1b["+n+"m")
	}
	require.Equal(t, plain.String(), regexp.MustCompile(`\x1b\[\dm`).ReplaceAllString(styled.String(), ""))
	require.Contains(t, plain.String(), "             and 5 more\n")
	require.NotContains(t, plain.String(), "\x1b")
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
		in        any
		want      string
	}{
		{"all is known", "a time is as on the wire", known,
			`{"field":".spec.replicas","owner":` + hpaJSON + `,"since":"2026-01-02T03:04:05Z","live":3,"applied":1}`},
		{"little is known", "what is not known is left out, and values that are not there are null", on(applier("a"), "x"),
			`{"field":".x","owner":{"manager":"a","operation":"Apply"},"live":null,"applied":null}`},
		{"the version of an applier", "the key has none, so it comes from the conflict",
			conflicts.Conflict{Path: fieldpath.Fields("x"), Owner: applier("a"), APIVersion: "v1"},
			`{"field":".x","owner":{"manager":"a","operation":"Apply","apiVersion":"v1"},"live":null,"applied":null}`},
		{"a loss", "fields are in the order of the set",
			conflicts.Loss{Owner: hpa, APIVersion: "apps/v1",
				Fields: fieldpath.NewSet(fieldpath.Fields("b"), fieldpath.Fields("a", "c"), fieldpath.Fields("a"))},
			`{"owner":` + hpaJSON + `,"fields":[".a",".b",".a.c"]}`},
		{"a loss of nothing", "an empty list, not null", conflicts.Loss{Owner: hpa, APIVersion: "apps/v1"},
			`{"owner":` + hpaJSON + `,"fields":[]}`},
		{"a report of conflicts", "the message is that of the Status",
			conflicts.Report{Object: "deployment.apps/nginx", Manager: "me",
				Conflicts: conflicts.Conflicts{on(applier("a"), "x")}},
			`{"object":"deployment.apps/nginx","manager":"me","message":"Apply failed with 1 conflict: conflict with \"a\": .x",
			  "conflicts":[{"field":".x","owner":{"manager":"a","operation":"Apply"},"live":null,"applied":null}]}`},
		{"a report of none", "there is no message, and an empty list", conflicts.Report{Manager: "me"},
			`{"manager":"me","conflicts":[]}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			data, err := json.Marshal(row.in)
			require.NoError(t, err)
			require.JSONEq(t, row.want, string(data), row.why)
		})
	}
}
