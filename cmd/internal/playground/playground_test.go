package playground_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/cmd/internal/playground"
	"github.com/tenure-ssa/tenure/fieldmanager/fieldmanagertest"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/internal/txtar"
)

const scenarios = "../../../testdata/scenarios"

func step(name, body string) fieldmanagertest.SourceStep {
	return fieldmanagertest.SourceStep{Name: name, Body: body}
}

// run runs steps in the same way as the page.
func run(t *testing.T, steps ...fieldmanagertest.SourceStep) playground.Response {
	t.Helper()
	request, err := json.Marshal(playground.Request{Steps: steps})
	require.NoError(t, err)
	var response playground.Response
	require.NoError(t, json.Unmarshal(playground.RunJSON(request), &response))
	return response
}

// The outcome of each step of an example is the one that the scenario expects. Other tests check the expected
// objects.
func TestExamples(t *testing.T) {
	outcomes := map[string]playground.Outcome{
		"want": playground.Changed, "unchanged": playground.Unchanged, "conflict": playground.Conflict,
		"error": playground.Failed,
	}
	examples, err := playground.ReadExamples(scenarios)
	require.NoError(t, err)
	require.Greater(t, len(examples), 60)
	conflicts := 0
	for _, e := range examples {
		t.Run(e.Name, func(t *testing.T) {
			require.NotEmpty(t, e.Rules)
			require.NotEmpty(t, e.About)
			text, err := os.ReadFile(filepath.Join(scenarios, e.Name+".txtar"))
			require.NoError(t, err)
			archive := txtar.Parse(text)
			var want []playground.Outcome // by step; "" for steps that expect no outcome
			for _, file := range archive.Files {
				word, _, _ := strings.Cut(file.Name, " ")
				last := len(want) - 1
				switch {
				case word == "warnings" || word == "orders":
				case outcomes[word] == "":
					want = append(want, "")
				case word == "want" && strings.HasPrefix(e.Steps[last].Name, "extract"):
					want[last] = playground.Done
				default:
					want[last] = outcomes[word]
				}
			}
			response := run(t, e.Steps...)
			require.Empty(t, response.Error)
			require.Len(t, response.Steps, len(want))
			for i, step := range response.Steps {
				if want[i] != "" {
					require.Equal(t, want[i], step.Outcome, "step %d, %s: %s", i+1, e.Steps[i].Name, step.Error)
				}
				if step.Outcome != playground.Failed {
					require.Empty(t, step.Error, "step %d, %s", i+1, e.Steps[i].Name)
				}
				if step.Outcome == playground.Conflict {
					conflicts++
					require.NotEmpty(t, step.Conflicts)
				}
			}
		})
	}
	require.Greater(t, conflicts, 10)
}

// notShown matches the rules that no example shows, with the reasons.
var notShown = regexp.MustCompile(`^(` +
	`11\.1` + // servers choose semantics; the page has the default ones
	`|12\.\d` + // limits need more input than people write by hand
	`|13\.2` + // defaults are set by the server, after the engine
	`|14\.\d` + // moves of ownership are not writes
	`|15\.\d` + // texts of paths are not writes either
	`)$`)

// Every rule of doc/spec.md has an example, except rules that a page can't show.
func TestEveryRuleHasAnExample(t *testing.T) {
	spec, err := os.ReadFile("../../../doc/spec.md")
	require.NoError(t, err)
	examples, err := playground.ReadExamples(scenarios)
	require.NoError(t, err)
	shown := map[string]bool{}
	for _, e := range examples {
		for _, rule := range e.Rules {
			shown[rule] = true
		}
	}
	rules := regexp.MustCompile(`(?m)^- \*\*(\d+\.\d+)\*\*`).FindAllStringSubmatch(string(spec), -1)
	require.Greater(t, len(rules), 50)
	for _, rule := range rules {
		require.Equal(t, !notShown.MatchString(rule[1]), shown[rule[1]], "rule %s", rule[1])
	}
}

const (
	alice = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 3}\n"
	bob   = "spec: {replicas: 5, paused: true}\n"
)

// A conflict has ways out, and applying the intent of any of them ends the conflict.
func TestWaysOut(t *testing.T) {
	steps := []fieldmanagertest.SourceStep{step("apply alice", alice), step("apply bob", bob)}
	conflict := run(t, steps...).Steps[1]
	require.Equal(t, playground.Conflict, conflict.Outcome)
	require.Equal(t, []playground.ConflictRow{{
		Field: ".spec.replicas", Owner: "alice", How: "Apply", Since: "2026-01-01T00:00:00Z", Live: "3", Applied: "5",
	}}, conflict.Conflicts)
	require.Len(t, conflict.Ways, 3)
	for _, way := range conflict.Ways {
		t.Run(way.Way, func(t *testing.T) {
			name := "apply bob"
			if way.Force {
				name += " force"
				require.Equal(t, []string{"alice loses .spec.replicas"}, way.Losses)
			}
			out := run(t, append(slices.Clone(steps), step(name, way.Intent))...).Steps[2]
			require.Equal(t, playground.Changed, out.Outcome, out.Error)
			want := map[string][]string{
				"force": {"bob"}, "share": {"alice", "bob"}, "give-up": {"alice"},
			}
			require.Equal(t, want[way.Way], ownersOf(out, ".spec.replicas"))
			require.Equal(t, []string{"bob"}, ownersOf(out, ".spec.paused"))
		})
	}
}

func ownersOf(s playground.Step, path string) []string {
	var out []string
	for _, line := range s.Object {
		if line.Path == path {
			for _, o := range line.Owners {
				out = append(out, o.Name)
			}
		}
	}
	slices.Sort(out)
	return out
}

// The result of an apply says which fields each manager gains and loses.
func TestOwnership(t *testing.T) {
	out := run(t, step("apply alice", alice), step("apply bob force", bob)).Steps[1]
	require.Equal(t, []playground.Ownership{
		{Manager: "alice", How: "Apply", Loses: []string{".spec.replicas"}},
		{Manager: "bob", How: "Apply", Gains: []string{".spec.paused", ".spec.replicas"}},
	}, out.Ownership)
	require.Contains(t, out.Before, "f:replicas: {}\n  manager: alice\n")
	require.Contains(t, out.After, "f:replicas: {}\n  manager: bob\n")
}

// Types can be deduced from the written objects. Examples have types from schemas and CRDs.
func TestDeduced(t *testing.T) {
	steps := run(t, step("deduced", ""), step("apply a", "apiVersion: x/v1\nkind: Widget\nspec: {a: [x, 1]}"),
		step("apply b", "spec: {a: [y]}")).Steps
	require.Equal(t, playground.Changed, steps[1].Outcome, "everything fits")
	require.Equal(t, playground.Conflict, steps[2].Outcome, "lists are atomic")
}

// The writes after an interleave step run in all orders, and the object does not change.
func TestInterleave(t *testing.T) {
	steps := run(t, step("schema", "spec: {type: object, properties: {a: {type: integer}}}"), step("interleave", ""),
		step("apply alice", "spec: {a: 1}"), step("apply bob", "spec: {a: 2}"), step("live", "spec: {a: 3}"),
		step("apply carol", "spec: {a: 3}")).Steps
	require.Contains(t, steps[1].Orders, "2 of 2 orders run; they diverge")
	require.Equal(t, playground.Grouped, steps[2].Outcome)
	require.Equal(t, playground.Grouped, steps[3].Outcome)
	require.Equal(t, []string{"before-first-apply", "carol"}, ownersOf(steps[5], ".spec.a"))

	for _, alone := range []string{"interleave", "interleave limit=9999999"} {
		out := run(t, step(alone, "")).Steps[0]
		require.Equal(t, playground.Failed, out.Outcome)
		require.Contains(t, out.Error, "expected writes after it")
	}
}

// Requests may contain anything, because links to the page can come from anybody.
func TestHostileRequests(t *testing.T) {
	many := make([]fieldmanagertest.SourceStep, playground.MaxSteps+1)
	require.Contains(t, run(t, many...).Error, "there are 101 steps, expected at most 100")
	var response playground.Response
	require.NoError(t, json.Unmarshal(playground.RunJSON([]byte(`{"steps": 1}`)), &response))
	require.NotEmpty(t, response.Error)
	require.NoError(t, json.Unmarshal(playground.RunJSON(make([]byte, playground.MaxRequest+1)), &response))
	require.Contains(t, response.Error, "expected at most 1048576")

	for _, row := range []struct{ name, body string }{
		{"", ""}, {"want", "a: b"}, {"apply", "]"}, {"apply a b c", "{}"}, {"apply a", "- 1"}, {"apply a", "a: &a [*a]"},
		{"apply a", "null"}, {"live", "metadata: 1"}, {"crd", "spec: 1"}, {"schema", "1"}, {"extract a", ""},
		{"patch a", "a: b"}, {"update a subresource=x", alice},
		{"apply a", strings.Repeat("a: {", 5000)}, {"crd", "spec: {group: 1, names: [], versions: {}}"},
	} {
		steps := run(t, step(row.name, row.body), step("apply alice", alice)).Steps
		require.Len(t, steps, 2, "%s: %s", row.name, row.body)
		require.Equal(t, playground.Failed, steps[0].Outcome, "%s: %s", row.name, row.body)
	}

	evil := "\u202e\x1b[2J<script>"
	out := run(t, step("apply "+strings.ReplaceAll(evil, "\x1b", ""), alice),
		step("apply bob", fmt.Sprintf("{metadata: {annotations: {%q: %q}}}", evil, evil))).Steps
	text, err := json.Marshal(out)
	require.NoError(t, err)
	var tree any
	require.NoError(t, json.Unmarshal(text, &tree))
	for _, s := range texts(tree) {
		require.Equal(t, printable.Lines(s), s)
	}
}

// texts returns the strings of a JSON value.
func texts(v any) (out []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, item := range v {
			out = append(out, texts(item)...)
		}
	case map[string]any:
		for _, item := range v {
			out = append(out, texts(item)...)
		}
	}
	return out
}
