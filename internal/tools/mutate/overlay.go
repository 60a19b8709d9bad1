package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// The environment variables of an instrumented package: numbers of mutants to turn on, separated by commas,
// and a file to write the numbers of the mutants that are reached.
const (
	variable      = "MUTATE"
	traceVariable = "MUTATE_TRACE"
)

// switchboard is the file that an instrumented package has besides its own. A number is written when the
// mutant is first reached. Most mutants are reached only if they change the condition.
const switchboard = `package %s

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
)

var (
	mutantsOn      [%[2]d]bool
	mutantsReached [%[2]d]atomic.Bool
	mutantsTrace   *os.File
)

func init() {
	for _, n := range strings.Split(os.Getenv("` + variable + `"), ",") {
		if n, err := strconv.Atoi(n); err == nil {
			mutantsOn[n] = true
		}
	}
	if name := os.Getenv("` + traceVariable + `"); name != "" {
		mutantsTrace, _ = os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	}
}

func mutantIs(n int) bool {
	if mutantsTrace != nil && !mutantsReached[n].Swap(true) {
		fmt.Fprintln(mutantsTrace, n)
	}
	return mutantsOn[n]
}
`

// instrumented returns a file with all its mutants in it that are not cuts, each
// turned off until [variable] names it, so that one build serves them all:
//
//	if a == b     becomes     if ((((a == b) || mutantIs(1))) && !mutantIs(2))
//
// Behind a condition stand its mutants, those of its parts first. Of a cut, only the case tells that it is
// reached.
func instrumented(source []byte, mutants []mutant) []byte {
	type insertion struct {
		at, start int
		text      string
	}
	var all []insertion
	for _, m := range mutants {
		if m.cut {
			all = append(all, insertion{m.body, m.body, fmt.Sprintf(" _ = mutantIs(%d);", m.number)})
			continue
		}
		on := fmt.Sprintf("mutantIs(%d)", m.number)
		all = append(all, insertion{m.start, m.start, "(("},
			insertion{m.end, m.start, fmt.Sprintf(m.after, on) + ")"})
	}
	// What ends at one place ends with what began last.
	slices.SortStableFunc(all, func(a, b insertion) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(b.start, a.start))
	})
	var out []byte
	done := 0
	for _, i := range all {
		out = append(append(out, source[done:i.at]...), i.text...)
		done = i.at
	}
	return append(out, source[done:]...)
}

// overlay writes files in the place of those of the root, by their names there, to
// a directory, and returns the name of the file that tells the go command so.
func overlay(root, to string, files map[string][]byte) (string, error) {
	replace := map[string]string{}
	for name, text := range files {
		original, err := filepath.Abs(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return "", err
		}
		replace[original] = filepath.Join(to, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(replace[original], text, 0o600); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(to, "overlay.json")
	return name, os.WriteFile(name, text, 0o600)
}

// allAtOnce returns the files of a package with all mutants in them but the cuts.
func (s sources) allAtOnce() map[string][]byte {
	out := map[string][]byte{}
	for _, name := range s.names {
		var of []mutant
		for _, m := range s.mutants {
			if m.file == name {
				of = append(of, m)
			}
		}
		out[name] = instrumented(s.text[name], of)
	}
	out[path.Dir(s.names[0])+"/mutants_switchboard.go"] = fmt.Appendf(nil, switchboard, s.pkg, len(s.mutants)+1)
	return out
}

// without returns the file that a cut is of, without what it cuts.
func (s sources) without(m mutant) map[string][]byte {
	text := s.text[m.file]
	return map[string][]byte{m.file: slices.Concat(text[:m.start], text[m.end:])}
}
