// Command mutate tells which changes of a condition no test notices.
//
//	cd internal/tools && GOWORK=off go run ./mutate [flags] PACKAGE-DIR...
//
// It changes one thing at a time in the files of the packages that are not tests:
//
//   - a comparison is negated, and an ordered one has its boundary shifted;
//   - && and || lose each of their operands;
//   - the condition of an if, a for or a case is made true, and made false;
//   - a case of a switch over a value or a type is left out;
//   - a ! is left out.
//
// Each mutant meets the tests of its own package that reach it, then, if it lived, those of
// -tests, one package after the other; see [stages]. One that makes a test fail, or run
// out of time, is killed. Nothing is written to the tree: the go command is told of mutated files by
// its -overlay. All mutants of a package are built at once, and turned on one by one;
// only a case that is left out is built by itself, and is no mutant if it does not
// compile.
//
// Packages and -tests are relative to -root. The exit status is 1 when a mutant
// lived that is not in the allow list, and 2 when the command itself failed.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

func main() {
	lived, err := mutate(os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(2)
	case lived:
		os.Exit(1)
	}
}

// run is one run of the command.
type run struct {
	out      io.Writer
	progress io.Writer
	root     string
	timeout  time.Duration
	wider    []string
	matches  *regexp.Regexp
	skip     *regexp.Regexp // nil for none
	known    map[site]string

	sum   summary
	met   map[site]bool // the mutants that lived
	lived bool          // one that is not known did
}

// mutate does what the command does, and returns whether a mutant lived that is
// not allowed to.
func mutate(args []string, out, progress io.Writer) (lived bool, err error) {
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	only := flags.String("run", "", "only mutants whose line of output matches this `regexp`")
	timeout := flags.Duration("timeout", 2*time.Second,
		"processor time that tests may take, besides four times of what they take without a mutant")
	wider := flags.String("tests", "", "`packages` whose tests the mutants meet that their own did not kill")
	skip := flags.String("skip", "", "tests whose names match this `regexp` are not run")
	root := flags.String("root", "../..", "the `directory` that packages are relative to")
	allow := flags.String("allow", "mutate/survivors.txt", "the allow list")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	r := run{
		out: out, progress: progress, root: *root, timeout: *timeout, wider: strings.Fields(*wider),
		met: map[site]bool{},
	}
	if r.matches, err = regexp.Compile(*only); err != nil {
		return false, err
	}
	if *skip != "" {
		if r.skip, err = regexp.Compile(*skip); err != nil {
			return false, err
		}
	}
	file, err := os.Open(*allow)
	if err != nil {
		return false, err
	}
	defer file.Close()
	if r.known, err = readSurvivors(file); err != nil {
		return false, fmt.Errorf("%s: %w", *allow, err)
	}
	for _, dir := range flags.Args() {
		if err := r.mutate(filepath.ToSlash(filepath.Clean(dir))); err != nil {
			return false, err
		}
	}
	r.sum.print(out)
	if *only == "" {
		for s := range r.known {
			if !r.met[s] && r.sum.of[s.file] != nil {
				fmt.Fprintf(out, "in the allow list, but it did not live:\n%s", s)
			}
		}
	}
	return r.lived, nil
}

// mutate tries the mutants of one package.
func (r *run) mutate(dir string) error {
	s, err := readSources(r.root, dir)
	if err != nil {
		return err
	}
	all, err := newBuild(r.root, s.allAtOnce())
	if err != nil {
		return err
	}
	defer all.remove()
	var tests []test
	for _, pkg := range append([]string{"./" + dir}, r.wider...) {
		of, err := all.measure(pkg, r.skip)
		if err != nil {
			return err
		}
		var sum time.Duration
		for _, t := range of {
			sum += t.cpu
		}
		fmt.Fprintf(r.progress, "%s: %d tests take %s\n", pkg, len(of), sum.Round(time.Second/10))
		tests = append(tests, of...)
	}
	if len(tests) == 0 {
		return fmt.Errorf("%s: no tests", dir)
	}
	for _, file := range s.names {
		st := &stages{b: all, tests: tests, atLeast: r.timeout, progress: r.progress, verdicts: map[int]string{}}
		if err := r.mutateFile(s, file, st); err != nil {
			return err
		}
	}
	return nil
}

// mutateFile tries the mutants of one file.
func (r *run) mutateFile(s sources, file string, st *stages) error {
	var of []mutant
	for _, m := range s.mutants {
		if m.file != file || !r.matches.MatchString(m.String()) {
			continue
		}
		of = append(of, m)
		var err error
		if m.cut {
			err = st.runCut(m, s)
		} else {
			err = st.runQuick(st.b, m)
		}
		if err != nil {
			return err
		}
	}
	if len(of) == 0 {
		return nil
	}
	fmt.Fprintf(r.progress, "%s: %d of %d left by quick tests\n", file, len(st.left), len(of))
	if err := st.runSlow(); err != nil {
		return err
	}
	for _, m := range of {
		n := 0
		for _, t := range st.tests {
			if t.reaches[m.number] {
				n++
			}
		}
		r.report(m, st.verdicts[m.number], n)
	}
	return nil
}

// report prints the verdict on a mutant, and how many tests reach it if it lived.
func (r *run) report(m mutant, verdict string, tests int) {
	switch line := m.String(); {
	case verdict != "":
		fmt.Fprintf(r.out, "%s: %s\n", line, verdict)
	case r.known[m.site] != "":
		fmt.Fprintf(r.out, "%s: lived, %s\n", line, r.known[m.site])
	default:
		fmt.Fprintf(r.out, "%s: LIVED, not in the allow list, reached by %d tests\n%s", line, tests, m.site)
		r.lived = true
	}
	if verdict == "" {
		r.met[m.site] = true
	}
	r.sum.count(m, verdict)
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
	if verdict == "" {
		c.lived++
	} else {
		c.killed++
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
