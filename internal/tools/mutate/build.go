package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// The verdicts on mutants that did not live.
const (
	killed    = "killed"
	timedOut  = "killed, out of time"
	noneAtAll = "does not compile"
)

// build makes test binaries of packages, each when it is first needed, with some of
// their files, or of those that they import, replaced.
type build struct {
	root    string
	scratch string // a directory of its own
	overlay string
	timeout time.Duration
	made    map[string]string // binaries by package; "" for one that does not compile
}

func newBuild(root string, timeout time.Duration, files map[string][]byte) (*build, error) {
	scratch, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return nil, err
	}
	b := &build{root: root, scratch: scratch, timeout: timeout, made: map[string]string{}}
	if b.overlay, err = overlay(root, scratch, files); err != nil {
		b.remove()
		return nil, err
	}
	return b, nil
}

func (b *build) remove() { os.RemoveAll(b.scratch) }

// binary returns the name of the test binary of a package.
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

// test returns the verdict of a package's tests on the mutant of a number, "" for
// none.
func (b *build) test(number int, pkg string) (verdict string, err error) {
	name, output, err := b.binary(pkg)
	switch {
	case err != nil:
		return "", err
	case name == "" && number == 0:
		return "", fmt.Errorf("the mutants do not compile:\n%s", output)
	case name == "":
		return noneAtAll, nil
	}
	cmd := exec.Command(name, "-test.failfast", "-test.timeout="+b.timeout.String())
	cmd.Dir = filepath.Join(b.root, filepath.FromSlash(pkg))
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", variable, number))
	output, err = cmd.CombinedOutput()
	var failed *exec.ExitError
	switch {
	case err == nil:
		return "", nil
	case !errors.As(err, &failed):
		return "", err
	case strings.Contains(string(output), "panic: test timed out"):
		return timedOut, nil
	}
	return killed + " by " + pkg, nil
}
