// Command mutate tells which changes of a condition no test notices.
//
//	cd tools && GOWORK=off go run ./mutate [flags] PACKAGE-DIR...
//
// It changes one thing at a time in the files of the packages that are not tests:
//
//   - a comparison is negated, and an ordered one has its boundary shifted;
//   - && and || lose each of their operands;
//   - the condition of an if, a for or a case is made true, and made false;
//   - a case of a switch over a value or a type is left out;
//   - a ! is left out.
//
// Each mutant is built beside the tree (go build's -overlay) and meets the tests of
// its own package, then, if it lived, those of -tests. A mutant that does not
// compile is none. One that makes a test fail, or run out of time, is killed.
//
// Packages and -tests are relative to -root. The exit status is 1 when a mutant
// lived that is not in the allow list, and 2 when the command itself failed.
package main

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

func main() {
	lived, err := mutate(os.Args[1:], os.Stdout)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(2)
	case lived:
		os.Exit(1)
	}
}

// mutate does what the command does, and returns whether a mutant lived that is
// not allowed to.
func mutate(args []string, out io.Writer) (lived bool, err error) {
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	run := flags.String("run", "", "only mutants whose line of output matches this `regexp`")
	timeout := flags.Duration("timeout", time.Minute, "how long the tests of a package may take")
	wider := flags.String("tests", "", "`packages` whose tests the mutants meet that their own did not kill")
	root := flags.String("root", "..", "the `directory` that packages are relative to")
	allow := flags.String("allow", "mutate/survivors.txt", "the allow list")
	list := flags.Bool("list", false, "only list the mutants")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	matches, err := regexp.Compile(*run)
	if err != nil {
		return false, err
	}
	file, err := os.Open(*allow)
	if err != nil {
		return false, err
	}
	defer file.Close()
	known, err := readSurvivors(file)
	if err != nil {
		return false, fmt.Errorf("%s: %w", *allow, err)
	}
	scratch, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(scratch)
	t := tester{root: *root, scratch: scratch, timeout: *timeout}

	var sum summary
	met := map[site]bool{}
	for _, dir := range flags.Args() {
		own, others := "./"+filepath.ToSlash(filepath.Clean(dir)), strings.Fields(*wider)
		mutants, err := mutantsOf(*root, dir)
		if err != nil {
			return false, err
		}
		if !*list {
			// Tests that fail anyway would kill every mutant.
			for _, p := range append(others, own) {
				if verdict, err := t.test(nil, p); err != nil || verdict != "" {
					return false, cmp.Or(err, fmt.Errorf("the tests of %s fail as it is: %s", p, verdict))
				}
			}
		}
		for _, m := range mutants {
			line := fmt.Sprintf("%s:%d:%d %s: %s", m.file, m.line, m.column, m.function, m.mutation)
			if !matches.MatchString(line) {
				continue
			}
			if *list {
				fmt.Fprintln(out, line)
				continue
			}
			verdict, err := t.test(&m, own)
			for i := 0; i < len(others) && err == nil && verdict == ""; i++ {
				verdict, err = t.test(&m, others[i])
			}
			if err != nil {
				return false, err
			}
			if verdict == "" {
				verdict = "lived"
				met[m.site] = true
				if known[m.site] == "" {
					verdict = "LIVED, not in the allow list"
					lived = true
				}
			}
			sum.count(m, verdict)
			fmt.Fprintf(out, "%s: %s\n", line, verdict)
			if strings.HasPrefix(verdict, "LIVED") {
				fmt.Fprint(out, m.site)
			}
		}
	}
	sum.print(out)
	if *run == "" && !*list {
		for s := range known {
			if !met[s] && sum.of[s.file] != nil {
				fmt.Fprintf(out, "in the allow list, but it did not live:\n%s", s)
			}
		}
	}
	return lived, nil
}

// tester runs tests.
type tester struct {
	root, scratch string
	timeout       time.Duration
}

// The verdicts on mutants that did not live.
const (
	killed    = "killed"
	timedOut  = "killed, out of time"
	noneAtAll = "does not compile"
)

// test returns the verdict of the tests of a package on a mutant, "" for none. A nil
// mutant is the code as it is.
func (t *tester) test(m *mutant, pkg string) (verdict string, err error) {
	args := []string{"test", "-count=1", "-failfast", "-vet=off", "-timeout=" + t.timeout.String()}
	if m != nil {
		overlay, err := t.overlay(m)
		if err != nil {
			return "", err
		}
		args = append(args, "-overlay="+overlay)
	}
	cmd := exec.Command("go", append(args, pkg)...)
	cmd.Dir = t.root
	for _, v := range os.Environ() {
		// Where the tests are, the workspace counts.
		if !strings.HasPrefix(v, "GOWORK=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	out, err := cmd.CombinedOutput()
	if err == nil {
		return "", nil
	}
	if _, ok := err.(*exec.ExitError); !ok {
		return "", err
	}
	switch text := string(out); {
	case strings.Contains(text, "[build failed]"):
		return noneAtAll, nil
	case strings.Contains(text, "panic: test timed out"):
		return timedOut, nil
	case strings.Contains(text, "\nFAIL\t"):
		return killed + " by " + pkg, nil
	default:
		return "", fmt.Errorf("go %s:\n%s", strings.Join(cmd.Args[1:], " "), text)
	}
}

// overlay writes the mutated file, and the file that puts it into its place.
func (t *tester) overlay(m *mutant) (name string, err error) {
	original, err := filepath.Abs(filepath.Join(t.root, filepath.FromSlash(m.file)))
	if err != nil {
		return "", err
	}
	source, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	text := string(source[:m.start]) + m.text + string(source[m.end:])
	mutated := filepath.Join(t.scratch, "mutated.go")
	if err := os.WriteFile(mutated, []byte(text), 0o600); err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{original: mutated}})
	if err != nil {
		return "", err
	}
	name = filepath.Join(t.scratch, "overlay.json")
	return name, os.WriteFile(name, overlay, 0o600)
}

// summary counts verdicts by file, in the order in which the files were met.
type summary struct {
	files []string
	of    map[string]*counts
}

type counts struct{ mutants, killed, lived int }

func (s *summary) count(m mutant, verdict string) {
	if verdict == noneAtAll {
		return
	}
	c := s.of[m.file]
	if c == nil {
		if s.of == nil {
			s.of = map[string]*counts{}
		}
		c = &counts{}
		s.of[m.file] = c
		s.files = append(s.files, m.file)
	}
	c.mutants++
	if strings.HasPrefix(verdict, killed) {
		c.killed++
	} else {
		c.lived++
	}
}

// print writes the counts as a table.
func (s *summary) print(out io.Writer) {
	if len(s.files) == 0 {
		return
	}
	var all counts
	fmt.Fprint(out, "\n| file | mutants | killed | lived |\n| --- | ---: | ---: | ---: |\n")
	for _, file := range s.files {
		c := s.of[file]
		fmt.Fprintf(out, "| %s | %d | %d | %d |\n", file, c.mutants, c.killed, c.lived)
		all.mutants += c.mutants
		all.killed += c.killed
		all.lived += c.lived
	}
	fmt.Fprintf(out, "| all | %d | %d | %d |\n", all.mutants, all.killed, all.lived)
}
