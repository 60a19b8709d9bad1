package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"github.com/tenure-ssa/tenure/hosts/internal/tree"
)

// versions are the kube-apiserver versions with which the command tenure is tested, one for each minor version.
var versions = []string{
	"v1.26.15", "v1.27.16", "v1.28.15", "v1.29.15", "v1.30.14", "v1.31.14", "v1.32.13", "v1.33.5", "v1.34.4", "v1.35.4",
	"v1.36.3", "v1.37.2",
}

// versionsPage is the document with the table of versions.
const versionsPage = "doc/compatibility.md"

// tryVersions runs the cluster scripts and TestTruthAtRandom on stock kube-apiservers, for the versions that match
// the pattern. It builds missing servers, and updates the lines of the table.
func (r *runner) tryVersions(ctx context.Context, pattern *regexp.Regexp, seeds string, out io.Writer) error {
	if !slices.ContainsFunc(versions, pattern.MatchString) {
		return fmt.Errorf("--only: expected a pattern of %s, got %s", strings.Join(versions, ", "), pattern)
	}
	var errs []error
	for _, version := range versions {
		if !pattern.MatchString(version) {
			continue
		}
		text, err := r.tryVersion(ctx, version, seeds)
		if text == "" {
			errs = append(errs, fmt.Errorf("%s: %w", version, err))
			continue
		}
		line := versionRow(version, time.Now(), text)
		fmt.Fprintln(out, line)
		if err != nil {
			err = fmt.Errorf("%s: see %s: %w", version, r.versionLog(version), err)
		}
		errs = append(errs, err, writeRow(filepath.Join(r.root, versionsPage), line))
	}
	return errors.Join(errs...)
}

func (r *runner) versionLog(version string) string { return filepath.Join(r.logs, version+".log") }

// tryVersion returns the output of the tests for a version.
func (r *runner) tryVersion(ctx context.Context, version, seeds string) (text string, err error) {
	t, err := tree.Open(filepath.Join(r.dir, version), version)
	if err != nil {
		return "", err
	}
	command := tree.Command{Name: "kube-apiserver", To: "kube-apiserver-stock", Procs: r.procs}
	if _, err := os.Stat(t.Bin(command.To)); errors.Is(err, fs.ErrNotExist) {
		if err := errors.Join(t.WriteStock(), t.Build(ctx, tree.Stock, command, os.Stderr)); err != nil {
			return "", err
		}
	}
	test := exec.CommandContext(ctx, "go", "test", "./cmd/internal/cli",
		"-run", "^(TestClusterScripts|TestTruthAtRandom)$",
		"-count=1", "-v", "-timeout=3h")
	test.Dir = r.root
	test.Env = append(os.Environ(), "KUBE_APISERVER="+t.Bin(command.To), "SEEDS="+seeds)
	printed, err := test.CombinedOutput()
	err = errors.Join(err, os.WriteFile(r.versionLog(version), printed, 0o600))
	if !bytes.Contains(printed, []byte(": TestTruthAtRandom (")) {
		return "", fmt.Errorf("the tests did not end, see %s: %w", r.versionLog(version), err)
	}
	return string(printed), err
}

var (
	isLeftOut = regexp.MustCompile(`left out: .* kind "(\w+)"`)
	clusters  = regexp.MustCompile(`(\d+) clusters: map`)
)

// versionRow returns the table's line for a version: how many scripts and clusters passed, failed and were skipped.
func versionRow(version string, day time.Time, text string) string {
	results := map[string][]string{}
	random := "failed"
	for _, m := range testResult.FindAllStringSubmatch(text, -1) {
		if name, ok := strings.CutPrefix(m[3], "TestClusterScripts/"); ok {
			results[m[2]] = append(results[m[2]], name)
		}
		if c := clusters.FindStringSubmatch(text); c != nil && m[3] == "TestTruthAtRandom" && m[2] == "PASS" {
			random = c[1]
		}
	}
	leftOut := results["SKIP"]
	for _, m := range isLeftOut.FindAllStringSubmatch(text, -1) {
		leftOut = append(leftOut, m[1])
	}
	slices.Sort(leftOut)
	slices.Sort(results["FAIL"])
	list := func(names []string) string { return cmp.Or(strings.Join(names, ", "), "none") }
	return fmt.Sprintf("| %s | %s | %s | %d | %s | %s | %s |",
		strings.TrimPrefix(semver.MajorMinor(version), "v"), version,
		day.UTC().Format(time.DateOnly), len(results["PASS"]), list(results["FAIL"]), random, list(slices.Compact(leftOut)))
}

// writeRow replaces the line for the same minor version in a page.
func writeRow(page, line string) error {
	data, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	prefix := line[:strings.Index(line, " | ")+len(" | ")]
	lines := strings.Split(string(data), "\n")
	i := slices.IndexFunc(lines, func(old string) bool { return strings.HasPrefix(old, prefix) })
	if i < 0 {
		return fmt.Errorf("%s: expected a line that begins with %q", page, prefix)
	}
	lines[i] = line
	return os.WriteFile(page, []byte(strings.Join(lines, "\n")), 0o666)
}
