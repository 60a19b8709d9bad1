package conflictreport_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership/conflictreport"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

func applier(name string) managedfields.Key {
	return managedfields.KeyOf(name, metav1.ManagedFieldsOperationApply, "", "")
}

func updater(name, subresource string) managedfields.Key {
	return managedfields.KeyOf(name, metav1.ManagedFieldsOperationUpdate, "apps/v1", subresource)
}

func on(owner managedfields.Key, path ...string) conflicts.Conflict {
	return conflicts.Conflict{Path: fieldpath.NewPath(path...), Owner: owner}
}

// render renders conflicts whose objects are not known.
func render(w io.Writer, what, manager string, all ...conflicts.Conflict) error {
	report := conflictreport.Of(what, manager, all)
	return report.Render(w, conflictreport.Style{})
}

// TestRender: values are shown as JSON, and unknown times as unknown.
func TestRender(t *testing.T) {
	since := &metav1.Time{Time: time.Date(2026, 1, 2, 4, 4, 5, 0, time.FixedZone("x", 3600))}
	var b strings.Builder
	require.NoError(t, render(&b, "deployment.apps/nginx", "me",
		conflicts.Conflict{Path: fieldpath.NewPath("spec", "replicas"), Owner: updater("hpa", "scale"), Live: int64(3),
			Applied: int64(1)},
		conflicts.Conflict{Path: fieldpath.NewPath("spec", "é"), Owner: applier("b"), Live: "ü"},
		conflicts.Conflict{Path: fieldpath.NewPath("spec", "map"), Owner: applier("b"),
			Live: map[string]any{"a": []any{int64(1)}}, Applied: "x"},
		conflicts.Conflict{Path: fieldpath.NewPath("spec", "null"), Owner: applier("b"), LiveNull: true, Applied: "x"},
		conflicts.Conflict{Path: fieldpath.NewPath("spec", "odd"), Owner: applier("b"), Since: since, Live: math.NaN(),
			Applied: true}))
	require.Equal(t, `deployment.apps/nginx: 5 conflicts for manager "me"
  FIELD           OWNER                                                  THEIR VALUE  YOUR VALUE  SINCE
  .spec.replicas  "hpa" with subresource "scale" using apps/v1 (Update)  3            1           unknown
  .spec.é         "b" (Apply)                                            "ü"          absent      unknown
  .spec.map       "b" (Apply)                                            {"a":[1]}    "x"         unknown
  .spec.null      "b" (Apply)                                            null         "x"         unknown
  .spec.odd       "b" (Apply)                                            NaN          true        2026-01-02T03:04:05Z
Ways out:
  force    apply again with force: your values are set, and only you own the fields
  give up  leave the fields out of your manifest: their values and owners stay
  share    put the owners' values into your manifest: you and they own the fields
`, b.String())
}

// failing is a writer whose writes fail.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("no space") }

func TestRenderFails(t *testing.T) {
	require.EqualError(t, render(failing{}, "x", "me", on(applier("a"), "x")), "no space")
}

// TestLongTexts: long paths and values do not make rows longer than the limit (spec rule 12.7).
func TestLongTexts(t *testing.T) {
	var c conflicts.Conflicts
	name, value := strings.Repeat("a", 10_000), strings.Repeat("v", 1<<20)
	for i := range 2000 {
		c = append(c, conflicts.Conflict{
			Path: fieldpath.NewPath(name, fmt.Sprint(i)), Owner: applier(name), Live: value, Applied: nil,
		})
	}
	var b strings.Builder
	require.NoError(t, render(&b, "x", "y", c...))
	require.Less(t, b.Len(), 2<<20)
	require.Contains(t, b.String(), "  and 1000 more\n")
}

// TestRenderedValues: the table shows values as JSON, cut to the width of the column.
func TestRenderedValues(t *testing.T) {
	itself := map[string]any{}
	itself["a"] = itself
	for _, row := range []struct {
		name, why string
		value     any
		want      string
	}{
		{"a map", "keys are in order", map[string]any{"b": true, "a": nil}, `{"a":null,"b":true}`},
		{"a list", "", []any{int64(1), "x", 1.5}, `[1,"x",1.5]`},
		{"empty", "", map[string]any{"a": []any{}, "b": map[string]any{}}, `{"a":[],"b":{}}`},
		{"as Go has them", "a host may have set them", []any{int32(1), uint8(2), float32(0.5)}, `[1,2,0.5]`},
		{"infinite", "JSON has no word for it", math.Inf(-1), "-Inf"},
		{"a value that holds itself", "it is cut, not followed for ever", itself, strings.Repeat(`{"a":`, 9) + `{"…`},
		{"a long text", "characters count", strings.Repeat("ü", 60), `"` + strings.Repeat("ü", 46) + `…`},
		{"a large list", "", slices.Repeat([]any{"abcdefgh"}, 1000), `["abcdefgh","abcdefgh","abcdefgh","abcdefgh","a…`},
	} {
		t.Run(row.name, func(t *testing.T) {
			var b strings.Builder
			c := conflicts.Conflict{Path: fieldpath.NewPath("x"), Owner: applier("a"), Live: row.value, Applied: "-"}
			require.NoError(t, render(&b, "x", "me", c))
			cell, ok := strings.CutPrefix(strings.Split(b.String(), "\n")[2], `  .x     "a" (Apply)  `)
			require.True(t, ok, b.String())
			cell, ok = strings.CutSuffix(cell, `"-"         unknown`)
			require.True(t, ok, b.String())
			require.Equal(t, row.want, strings.TrimRight(cell, " "), row.why)
		})
	}
}

// TestDuplicates: in a conflict with the owner of duplicate items, the live value has all duplicates, although no
// intent may have duplicates.
func TestDuplicates(t *testing.T) {
	gvk := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	m, err := fieldmanager.New(gvk, openapi.Builtin(), fieldmanager.Options{})
	require.NoError(t, err)
	pod := func(env ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "a"},
			"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "env": env}}},
		}}
	}
	foo := func(value string) any { return map[string]any{"name": "FOO", "value": value} }
	live, err := writetest.Update(m, nil, pod(foo("one"), foo("two")), "creator")
	require.NoError(t, err)
	report, err := conflictreport.New(t.Context(), m, live, pod(foo("two")), "pod/a", plans.Options{Manager: "me"})
	require.NoError(t, err)
	require.Len(t, report.Conflicts, 1)
	require.Equal(t, []any{foo("one"), foo("two")}, report.Conflicts[0].Live)
	var b strings.Builder
	require.NoError(t, report.Render(&b, conflictreport.Style{}))
	require.Contains(t, b.String(), `  [{"name":"FOO","value":"one"},{"name":"FOO","va…  {"name":"FOO","value":"two"}  `)
	require.Contains(t, b.String(), "  share    not possible: live's value can't be shared: .spec.containers")
}

// TestStyle: a style decorates every part, and does not change the layout.
func TestStyle(t *testing.T) {
	report := conflictreport.Report{Object: "deployment.apps/nginx", Manager: "me", Conflicts: conflicts.Conflicts{
		{Path: fieldpath.NewPath("spec", "replicas"), Owner: updater("hpa", "scale"), Live: int64(3), Applied: int64(1)},
		{Path: fieldpath.NewPath("spec", "é"), Owner: applier("b"), Live: "ü", Applied: nil},
	}}
	loss := conflictreport.Loss{Owner: report.Conflicts[0].Entry()}
	for i := range 25 {
		loss.Fields = append(loss.Fields, fieldpath.NewPath("spec", strings.Repeat("x", i+1)))
	}
	report.Ways = []conflictreport.WayOut{{Decision: conflicts.Force, Force: true, Losses: []conflictreport.Loss{loss}}}
	code := func(n string) func(string) string {
		return func(s string) string { return "\x1b[" + n + "m" + s + "\x1b[0m" }
	}
	var plain, styled strings.Builder
	require.NoError(t, report.Render(&plain, conflictreport.Style{}))
	style := conflictreport.Style{Heading: code("1"), Field: code("2"), Owner: code("3"), Theirs: code("4"),
		Yours: code("5"),
		Way:   code("6")}
	require.NoError(t, report.Render(&styled, style))
	for _, n := range []string{"1", "2", "3", "4", "5", "6"} {
		require.Contains(t, styled.String(), "\x1b["+n+"m")
	}
	require.Equal(t, plain.String(), regexp.MustCompile(`\x1b\[\dm`).ReplaceAllString(styled.String(), ""))
	require.Contains(t, plain.String(), "             and 5 more\n")
	require.NotContains(t, plain.String(), "\x1b")
}

// FuzzRender renders conflicts with arbitrary content: rendering does not panic, prints a row for each conflict, and
// prints only printable characters.
func FuzzRender(f *testing.F) {
	f.Add("alice", "status", "v1", `{"a":["<",1,null]}`, `"x"`, "f:a", `k:{"a":"\n"}`)
	f.Add("a\tb\n", "", "", strings.Repeat("[", 100), `{`, "v:1e300", "i:-1")
	f.Add("\xff", "é", "日本", `"日本日本日本日本日本日本日本日本日本日本日本日本日本日本日本日本日本日本日本日本日本日本日本日本日本日本日本日本"`, `-0`, "f:", "f:\xff")
	f.Add("a\x1b[2J", "\u202e", "v1\u009b31m", `"\u202e\u009b"`, `{"\u2066":"\u200b"}`, "f:a\x1b]0;t\a", "f:\u202e")
	f.Fuzz(func(t *testing.T, manager, subresource, version, live, applied, first, second string) {
		owner := managedfields.KeyOf(manager, metav1.ManagedFieldsOperationUpdate, version, subresource)
		c := conflicts.Conflict{Owner: owner}
		if json.Unmarshal([]byte(live), &c.Live) != nil {
			c.Live = live
		}
		if json.Unmarshal([]byte(applied), &c.Applied) != nil {
			c.Applied = applied
		}
		for _, name := range []string{first, second} {
			set, _ := fieldpath.FromTree(map[string]any{name: nil})
			for e := range set.Level() {
				c.Path = append(c.Path, e)
			}
		}
		other := c
		other.Owner.Operation = metav1.ManagedFieldsOperationApply
		all := conflicts.Conflicts{c, other}
		all.Sort()
		var b strings.Builder
		require.NoError(t, render(&b, version, manager, all...))
		require.Equal(t, printable.Lines(b.String()), b.String())
		require.GreaterOrEqual(t, strings.Count(b.String(), "\n"), 2+len(all)+4)
	})
}
