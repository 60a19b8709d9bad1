package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestNoVersion: a pattern that matches no version causes an error, instead of an unchanged table.
func TestNoVersion(t *testing.T) {
	err := new(runner).tryVersions(t.Context(), regexp.MustCompile("^1.30$"), "1:1", io.Discard)
	require.ErrorContains(t, err, "--only: expected a pattern of v1.26.15, ")
}

// TestVersionRow: the line counts passed tests, and names failed and skipped ones.
func TestVersionRow(t *testing.T) {
	day := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	const passed = `--- PASS: TestClusterScripts (0.00s)
    --- SKIP: TestClusterScripts/resolve (0.61s)
    --- PASS: TestClusterScripts/plan (0.61s)
    truth_random_test.go:97: left out: no matches for kind "MutatingAdmissionPolicy" in version "v1"
    truth_random_test.go:65: 50 clusters: map[changed:694]
--- PASS: TestTruthAtRandom (88.78s)
`
	line := "| 1.33 | v1.33.5 | 2026-01-02 | 1 | none | 50 | MutatingAdmissionPolicy, resolve |"
	require.Equal(t, line, versionRow("v1.33.5", day, passed))
	require.Equal(t, "| 1.37 | v1.37.2 | 2026-01-02 | 0 | apply, plan | failed | none |", versionRow("v1.37.2", day, `
--- FAIL: TestClusterScripts (0.00s)
    --- FAIL: TestClusterScripts/plan (0.61s)
    --- FAIL: TestClusterScripts/apply (0.61s)
--- FAIL: TestTruthAtRandom (88.78s)
`))

	page := filepath.Join(t.TempDir(), "page.md")
	require.NoError(t, os.WriteFile(page, []byte("a\n| 1.3 | x |\n| 1.33 | old |\nb\n"), 0o600))
	require.NoError(t, writeRow(page, line))
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, "a\n| 1.3 | x |\n"+line+"\nb\n", string(text))
	require.ErrorContains(t, writeRow(page, "| 1.4 | x |"), "expected a line that begins with")
}
