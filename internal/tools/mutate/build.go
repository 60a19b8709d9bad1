package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The verdicts on mutants that did not live.
const (
	timedOut  = "killed, out of time"
	noneAtAll = "does not compile"
)

// build makes test binaries of packages, each when it is first needed, with some of
// their files, or of those that they import, replaced.
type build struct {
	root    string
	scratch string // a directory of its own
	overlay string
	made    map[string]string // binaries by package; "" for one that does not compile
}

func newBuild(root string, files map[string][]byte) (*build, error) {
	scratch, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return nil, err
	}
	b := &build{root: root, scratch: scratch, made: map[string]string{}}
	if b.overlay, err = overlay(root, scratch, files); err != nil {
		b.remove()
		return nil, err
	}
	return b, nil
}

func (b *build) remove() { os.RemoveAll(b.scratch) }

// binary returns the name of the test binary of a package, "" if it does not compile.
func (b *build) binary(pkg string) (name string, output []byte, err error) {
	if name, ok := b.made[pkg]; ok {
		return name, nil, nil
	}
	name = filepath.Join(b.scratch, fmt.Sprint(len(b.made), ".test"))
	cmd := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay="+b.overlay, "-o="+name, pkg)
	cmd.Dir = b.root
	for _, v := range os.Environ() {
		// Where the tests are, the workspace counts.
		if !strings.HasPrefix(v, "GOWORK=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	output, err = cmd.CombinedOutput()
	if err != nil {
		var failed *exec.ExitError
		if !errors.As(err, &failed) {
			return "", nil, err
		}
		name = ""
	}
	b.made[pkg] = name
	return name, output, nil
}

type outcome int

const (
	passed outcome = iota
	failed
	outOfTime
)

// result is what became of one run of tests.
type result struct {
	outcome
	cpu     time.Duration
	reached map[int]bool // the mutants that the tests reached, if they were traced
	output  string
}

// execute runs some tests of a package with mutants turned on. The limit is one of
// processor time: on a busy machine, tests take longer and do not compute more. A limit of
// none is for measuring.
func (b *build) execute(
	pkg string,
	tests []string,
	limit time.Duration,
	trace bool,
	on ...int,
) (out result, err error) {
	name, output, err := b.binary(pkg)
	if err != nil {
		return out, err
	}
	if name == "" {
		return out, fmt.Errorf("%s does not compile:\n%s", pkg, output)
	}
	pattern := "^(" + strings.Join(tests, "|") + ")$"
	args := []string{name, "-test.failfast", "-test.run=" + pattern}
	if limit > 0 {
		seconds := strconv.Itoa(int((limit + time.Second - 1) / time.Second))
		args = append([]string{"sh", "-c", `ulimit -t "$0" && exec "$@"`, seconds}, args...)
		// Tests that wait for ever compute nothing.
		args = append(args, "-test.timeout="+(20*limit+time.Minute).String())
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = filepath.Join(b.root, filepath.FromSlash(pkg))
	cmd.Env = append(os.Environ(), variable+"="+strings.Trim(strings.ReplaceAll(fmt.Sprint(on), " ", ","), "[]"))
	traced := ""
	if trace {
		traced = filepath.Join(b.scratch, "trace")
		if err := os.WriteFile(traced, nil, 0o600); err != nil {
			return out, err
		}
	}
	cmd.Env = append(cmd.Env, traceVariable+"="+traced)
	output, err = cmd.CombinedOutput()
	out.output = string(output)
	if cmd.ProcessState != nil {
		out.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
	case !errors.As(err, &exit):
		return out, err
	case exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL,
		strings.Contains(out.output, "panic: test timed out"):
		out.outcome = outOfTime
	default:
		out.outcome = failed
	}
	if trace {
		out.reached, err = readTrace(traced)
		return out, err
	}
	return out, nil
}

func readTrace(name string) (map[int]bool, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	out := map[int]bool{}
	for _, line := range strings.Fields(string(text)) {
		n, err := strconv.Atoi(line)
		if err != nil {
			return nil, fmt.Errorf("trace of mutants: %w", err)
		}
		out[n] = true
	}
	return out, nil
}

// test is a test of a package, measured without a mutant.
type test struct {
	pkg, name string
	cpu       time.Duration
	reaches   map[int]bool // the mutants that it reaches
}

// measure runs each test of a package by itself, but for those to skip, and returns them, the quick ones first.
func (b *build) measure(pkg string, skip *regexp.Regexp) ([]test, error) {
	name, output, err := b.binary(pkg)
	if err != nil {
		return nil, err
	}
	if name == "" {
		return nil, fmt.Errorf("the mutants do not compile:\n%s", output)
	}
	cmd := exec.Command(name, "-test.list=.")
	cmd.Dir = filepath.Join(b.root, filepath.FromSlash(pkg))
	list, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the tests of %s: %w", pkg, err)
	}
	var out []test
	for _, name := range strings.Fields(string(list)) {
		if strings.HasPrefix(name, "Benchmark") || skip != nil && skip.MatchString(name) {
			continue
		}
		got, err := b.execute(pkg, []string{name}, 0, true)
		if err != nil {
			return nil, err
		}
		if got.outcome != passed {
			// It would kill every mutant.
			return nil, fmt.Errorf("%s of %s fails without a mutant:\n%s", name, pkg, got.output)
		}
		out = append(out, test{pkg, name, got.cpu, got.reached})
	}
	slices.SortStableFunc(out, func(a, b test) int { return int(a.cpu - b.cpu) })
	return out, nil
}
