package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/cmd/internal/cli"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/server"
)

// There is a page for every command, with its flags, and a repeated run writes identical files.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, run([]string{dir}, "1767225600", time.Time{}))
	pages := 0
	for _, command := range cli.Root(&process.Env{Server: server.New()}).Commands() {
		text, err := os.ReadFile(filepath.Join(dir, "man", "tenure-"+command.Name()+".1"))
		require.NoError(t, err)
		require.Contains(t, string(text), `"Jan 2026"`)
		require.Contains(t, string(text), strings.Fields(command.Short)[0])
		pages++
	}
	require.Greater(t, pages, 20)
	require.FileExists(t, filepath.Join(dir, "man", "tenure.1"))

	again := t.TempDir()
	require.NoError(t, run([]string{again}, "1767225600", time.Now()))
	for _, name := range []string{"man/tenure.1", "completions/tenure.bash", "completions/tenure.zsh",
		"completions/tenure.fish", "completions/tenure.ps1"} {
		first, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		second, err := os.ReadFile(filepath.Join(again, name))
		require.NoError(t, err)
		require.NotEmpty(t, first, name)
		require.Equal(t, string(first), string(second), name)
	}
	if bash, err := exec.LookPath("bash"); err == nil {
		out, err := exec.Command(bash, "-n", filepath.Join(dir, "completions", "tenure.bash")).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}

	require.Error(t, run(nil, "", time.Now()))
	require.ErrorContains(t, run([]string{dir}, "today", time.Now()), "SOURCE_DATE_EPOCH")
}
