package fieldmanagertest_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/fieldmanager/fieldmanagertest"
)

var update = flag.Bool("update", false, "rewrite what the scenarios expect")

// TestScenarios runs every scenario.
func TestScenarios(t *testing.T) {
	paths, err := filepath.Glob("../../testdata/scenarios/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			s, err := fieldmanagertest.RunFile(path)
			require.NoError(t, err)
			require.NotEmpty(t, s.About, "a scenario says in words what it shows")
			require.NotEmpty(t, s.Rules, "a scenario names the rules that it shows")
			if *update {
				text, err := s.Rewritten()
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(path, text, 0o644))
				return
			}
			fieldmanagertest.Run(t, path)
		})
	}
}

// TestRefusedOrders: if no write succeeded, the results of the orders have no meaning.
func TestRefusedOrders(t *testing.T) {
	for _, row := range []struct {
		name, alice, bob string
		want             []string
		not              string
	}{
		{
			"all writes are refused", "spec: {b: 1}", "spec: {c: 1}",
			[]string{
				"2 of 2 orders run; every write was refused: 1 object, 1 set of owners; " +
					"0 orders with conflicts, 2 orders with refused writes\n",
				"alice is refused: applied object (thing; example.dev/v1, Kind=Thing): .spec.b: ", "bob is refused: ",
			}, "converge",
		},
		{
			"some are", "spec: {a: 1}", "spec: {c: 1}",
			[]string{"they converge: ", "0 orders with conflicts, 2 orders with refused writes\n", "bob is refused: "},
			"alice is",
		},
		{"none is", "spec: {a: 1}", "spec: {a: 1}", []string{"they converge: ", "0 orders with conflicts\n"}, "refused"},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := fieldmanagertest.New(t, fieldmanagertest.WithSchema(`spec: {type: object, properties: {a: {type: integer}}}`))
			report := h.Interleave(fieldmanagertest.Sample{},
				[]fieldmanagertest.Write{fieldmanagertest.Apply("alice", row.alice)},
				[]fieldmanagertest.Write{fieldmanagertest.Apply("bob", row.bob)}).String()
			for _, want := range row.want {
				require.Contains(t, report, want)
			}
			require.NotContains(t, report, row.not)
			require.LessOrEqual(t, strings.Count(report, "bob is refused: "), 1, "each reason once")
		})
	}
}

// manyOrders returns a scenario with an interleave step of twelve managers, and a step after it.
func manyOrders(t *testing.T) string {
	var b strings.Builder
	b.WriteString(
		"Twelve managers.\n\n-- schema --\nspec: {type: object, properties: {a: {type: integer}}}\n" +
			"-- interleave limit=100000 --\n",
	)
	for _, name := range strings.Split("a b c d e f g h i j k l", " ") {
		b.WriteString("-- apply " + name + " --\nspec: {a: 1}\n")
	}
	b.WriteString("-- orders --\n-- apply m --\nspec: {a: 1}\n-- want --\n")
	path := filepath.Join(t.TempDir(), "many.txtar")
	require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o600))
	return path
}

// TestInterrupt: a long interleave step reports its progress, and can be interrupted; its report then has the results
// so far.
func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var told []int
	s, err := fieldmanagertest.RunFileWith(manyOrders(t),
		fieldmanagertest.RunOptions{Context: ctx, Progress: func(step string, done, total int) {
			require.Equal(t, "interleave limit=100000", step)
			require.Equal(t, 100000, total)
			if told = append(told, done); done == 6 {
				cancel()
			}
		}})
	require.NoError(t, err)
	require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7}, told)
	require.Len(t, s.Steps, 2, "what is behind it is not done")
	require.ErrorIs(t, s.Steps[1].Err, fieldmanagertest.ErrInterrupted)
	require.ErrorContains(t, s.Steps[1].Err, "7 of 479001600 orders run, interrupted, a sample; they converge: 1 object")
	_, err = s.Rewritten()
	require.ErrorIs(t, err, fieldmanagertest.ErrInterrupted, "nothing becomes an expectation")

	cancel()
	s, err = fieldmanagertest.RunFileWith(manyOrders(t), fieldmanagertest.RunOptions{Context: ctx})
	require.NoError(t, err)
	require.Len(t, s.Steps, 1, "it ended before it began")
}
