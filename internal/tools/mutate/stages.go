package main

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// A mutant meets only the tests that reach it, in stages, until one kills it:
//
//  1. quick tests, a few in one process, those that take least first;
//  2. the first second of each test that takes at least five times as long;
//  3. all of each slow test, with up to groupSize mutants turned on at once. A group that
//     is killed is halved, until the mutants are found that are killed alone.
//
// No mutant is called killed that was not killed alone. A mutant could live because another
// of its group hides it; so mutants of one line are in different groups, and one that a
// test did not reach because of the others is tried again without them.
const (
	quick     = time.Second            // slow tests take longer
	first     = time.Second            // what of a slow test is run at first
	together  = 300 * time.Millisecond // what the tests of one process take, about
	groupSize = 16
)

// stages finds the verdicts on the mutants of one file.
type stages struct {
	b        *build
	tests    []test        // of all packages, the quick ones of each first
	atLeast  time.Duration // what any process may take
	progress io.Writer
	verdicts map[int]string // by number; none for one that lived
	left     []mutant       // those that the quick tests did not kill
}

// limit is the processor time that tests may take: several times of what they took.
func (s *stages) limit(tests []test) time.Duration {
	out := s.atLeast
	for _, t := range tests {
		out += 4 * t.cpu
	}
	return out
}

// kill runs tests of one package on one mutant, and returns whether they killed it.
func (s *stages) kill(b *build, m mutant, tests []test) (bool, error) {
	got, err := b.execute(tests[0].pkg, names(tests), s.limit(tests), false, m.number)
	if err != nil || got.outcome == passed {
		return false, err
	}
	s.verdicts[m.number] = verdictOf(got.outcome, tests[0].pkg)
	return true, nil
}

func verdictOf(o outcome, pkg string) string {
	if o == outOfTime {
		return timedOut
	}
	return "killed by " + pkg
}

func names(tests []test) (out []string) {
	for _, t := range tests {
		out = append(out, t.name)
	}
	return out
}

// runQuick is the first stage, of one mutant.
func (s *stages) runQuick(b *build, m mutant) error {
	var batch []test
	var sum time.Duration
	for i, t := range s.tests {
		if t.reaches[m.number] && t.cpu <= quick {
			batch = append(batch, t)
			sum += t.cpu
		}
		if len(batch) > 0 && (i+1 == len(s.tests) || sum > together || s.tests[i+1].pkg != t.pkg) {
			if dead, err := s.kill(b, m, batch); dead || err != nil {
				return err
			}
			batch, sum = nil, 0
		}
	}
	s.left = append(s.left, m)
	return nil
}

// runCut tries a mutant that has a build of its own. Its slow tests are not grouped.
func (s *stages) runCut(m mutant, src sources) error {
	b, err := newBuild(s.b.root, src.without(m))
	if err != nil {
		return err
	}
	defer b.remove()
	// Tests of another package are not built where the package itself does not compile.
	if name, _, err := b.binary(s.tests[0].pkg); err != nil {
		return err
	} else if name == "" {
		s.verdicts[m.number] = noneAtAll
		return nil
	}
	left := s.left
	if err := s.runQuick(b, m); err != nil || s.verdicts[m.number] != "" {
		return err
	}
	s.left = left
	for _, t := range s.tests {
		if t.reaches[m.number] && t.cpu > quick {
			if dead, err := s.kill(b, m, []test{t}); dead || err != nil {
				return err
			}
		}
	}
	return nil
}

// runSlow is the second and the third stage, of all mutants that are left.
func (s *stages) runSlow() error {
	for _, t := range s.tests {
		if t.cpu <= quick {
			continue
		}
		var groups [][]mutant
		for _, m := range s.left {
			if !t.reaches[m.number] || s.verdicts[m.number] != "" {
				continue
			}
			if t.cpu < 5*first {
				groups = addToGroup(groups, m)
				continue
			}
			got, err := s.b.execute(t.pkg, []string{t.name}, first, false, m.number)
			switch {
			case err != nil:
				return err
			case got.outcome == failed:
				s.verdicts[m.number] = verdictOf(failed, t.pkg)
			case got.outcome == outOfTime:
				groups = addToGroup(groups, m)
			}
		}
		fmt.Fprintf(s.progress, "%s: %d groups\n", t.name, len(groups))
		for _, g := range groups {
			if err := s.runGroup(t, g); err != nil {
				return err
			}
		}
	}
	return nil
}

func addToGroup(groups [][]mutant, m mutant) [][]mutant {
	for i, g := range groups {
		if len(g) < groupSize && !slices.ContainsFunc(g, func(o mutant) bool { return o.line == m.line }) {
			groups[i] = append(g, m)
			return groups
		}
	}
	return append(groups, []mutant{m})
}

// runGroup runs a test with a group of mutants turned on.
func (s *stages) runGroup(t test, group []mutant) error {
	var on []int
	for _, m := range group {
		on = append(on, m.number)
	}
	got, err := s.b.execute(t.pkg, []string{t.name}, s.limit([]test{t}), true, on...)
	if err != nil {
		return err
	}
	var hidden []mutant
	for _, m := range group {
		if !got.reached[m.number] {
			hidden = append(hidden, m)
		}
	}
	switch {
	case len(group) == 1:
		if got.outcome != passed {
			s.verdicts[group[0].number] = verdictOf(got.outcome, t.pkg)
		}
		return nil
	case got.outcome == passed && len(hidden) == 0:
		return nil
	case got.outcome == passed && len(hidden) < len(group):
		return s.runGroup(t, hidden)
	}
	if err := s.runGroup(t, group[:len(group)/2]); err != nil {
		return err
	}
	return s.runGroup(t, group[len(group)/2:])
}
