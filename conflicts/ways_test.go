package conflicts_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldpath"
	"github.com/tenure-ssa/tenure/managedfields"
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
	require.EqualError(t, w.UnmarshalText([]byte("flee")), `no way out of a conflict: expected give-up, share or force, got "flee"`)
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
	style := conflicts.Style{Heading: code("1"), Field: code("2"), Owner: code("3"), Theirs: code("4"), Yours: code("5"), Way: code("6")}
	require.NoError(t, report.Render(&styled, style))
	for _, n := range []string{"1", "2", "3", "4", "5", "6"} {
		require.Contains(t, styled.String(), "\x1b["+n+"m")
	}
	require.Equal(t, plain.String(), regexp.MustCompile(`\x1b\[\dm`).ReplaceAllString(styled.String(), ""))
	require.Contains(t, plain.String(), "             and 5 more\n")
	require.NotContains(t, plain.String(), "\x1b")
}

func TestReportJSON(t *testing.T) {
	data, err := json.Marshal(conflicts.Report{Manager: "me"})
	require.NoError(t, err)
	require.JSONEq(t, `{"manager":"me","conflicts":[]}`, string(data))
	data, err = json.Marshal(conflicts.Conflicts{{Path: fieldpath.Fields("a"), Owner: managedfields.KeyOf("m", managedfields.Update, "v1", "status"), Version: "v1"}})
	require.NoError(t, err)
	require.JSONEq(t, `[{"field":".a","owner":{"manager":"m","operation":"Update","apiVersion":"v1","subresource":"status"},"live":null,"applied":null}]`, string(data))
}
