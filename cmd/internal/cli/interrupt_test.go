package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
)

// interrupter is a terminal whose user interrupts as soon as something is shown.
type interrupter struct {
	text      strings.Builder
	interrupt func()
}

func (w *interrupter) Write(p []byte) (int, error) {
	w.interrupt()
	return w.text.Write(p)
}

// A long interleave shows how far it is. Interrupted, it says what is known so far,
// and what was not run.
func TestInterruptedScenario(t *testing.T) {
	dir := t.TempDir()
	text := "-- schema --\nspec: {type: object, properties: {a: {type: integer}}}\n-- interleave limit=100000 --\n"
	for _, name := range strings.Split("a b c d e f g h i j k l", " ") {
		text += "-- apply " + name + " --\nspec: {a: 1}\n"
	}
	text += "-- orders --\n"
	for _, name := range []string{"1.txtar", "2.txtar"} {
		require.NoError(t, os.WriteFile(dir+"/"+name, []byte(text), 0o600))
	}
	ctx, cancel := context.WithCancel(t.Context())
	stderr := &interrupter{interrupt: cancel}
	var stdout strings.Builder
	status := runMain(process.Env{
		Dir: dir, Stdout: &stdout, Stderr: stderr, Context: ctx, Terminal: func(any) bool { return true },
	}, []string{"test", "--update", "."})
	require.Equal(t, 1, status)
	require.Contains(t, stderr.text.String(), "interleave limit=100000")
	require.Regexp(t, `\d+ of 479001600 orders run, interrupted, a sample; they converge: 1 object`, stdout.String())
	require.Regexp(t, `(?m)^1 scenario: 0 passed, 1 failed$`, stdout.String())
	require.Contains(t, stderr.text.String(), "error: interrupted: 1 scenario was not run\n")
	after, err := os.ReadFile(dir + "/1.txtar")
	require.NoError(t, err)
	require.Equal(t, text, string(after), "nothing is written of what was not finished")
}

// The help of test says how a scenario is written.
func TestGrammarInHelp(t *testing.T) {
	var out strings.Builder
	require.Zero(t, runMain(process.Env{Stdout: &out, Stderr: &out}, []string{"test", "--help"}))
	for _, part := range []string{"  interleave [limit=N] [seed=N]\n", "  unchanged    nothing was written\n",
		"-- apply bob --"} {
		require.Contains(t, out.String(), part)
	}
}

// lineInterrupter is a stream whose reader interrupts after a number of lines.
type lineInterrupter struct {
	text      strings.Builder
	lines     int
	interrupt func()
}

func (w *lineInterrupter) Write(p []byte) (int, error) {
	if w.lines -= strings.Count(string(p), "\n"); w.lines <= 0 {
		w.interrupt()
	}
	return w.text.Write(p)
}

// An interrupted move has printed each object that was written, says how many were not, and how to go on.
func TestInterruptedMove(t *testing.T) {
	const each = 40
	c := newCountingCluster(t, each)
	ctx, cancel := context.WithCancel(t.Context())
	stdout := &lineInterrupter{lines: 10, interrupt: cancel}
	var stderr strings.Builder
	args := []string{"rename", "configmaps", "-A", "--from", "kubectl", "--to", "flux it", "--yes", "--concurrency", "2",
		"--kubeconfig", c.config, "--cache-dir", t.TempDir()}
	status := runMain(process.Env{Name: "kubectl-tenure", Stdout: stdout, Stderr: &stderr, Context: ctx}, args)
	require.Equal(t, 1, status)
	written := strings.Count(stdout.text.String(), " renamed\n")
	require.GreaterOrEqual(t, written, 10)
	require.Less(t, written, 20)
	require.Contains(t, stdout.text.String(), fmt.Sprintf("80 objects: %d renamed, 0 unchanged, 0 failed\n", written))
	require.Contains(t, stderr.String(), fmt.Sprintf("error: interrupted: %d renamed, %d objects are not; to go on: "+
		"kubectl tenure rename configmaps -A --from kubectl --to 'flux it' --yes", written, 2*each-written))
	require.Contains(t, c.run(0, "get", "configmaps", "-A"), "flux it")
	require.Contains(t, c.run(0, "rename", "configmaps", "-A", "--from", "kubectl", "--to", "flux it", "--yes"),
		fmt.Sprintf("%d renamed", 2*each-written))
}
