package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// The allow list holds the mutants that are known to live, each with the reason.
// An entry has four lines; blank lines and lines that start with # are between
// entries:
//
//	typed/merge.go merger.mergeLists
//		if len(out) == len(l) {
//		true for len(out) == len(l)
//		why: the loop stops at the first item that is another
//
// There is no line number: an entry holds while its line stays as it is.

// readSurvivors reads an allow list: reasons by site.
func readSurvivors(r io.Reader) (map[site]string, error) {
	out := map[site]string{}
	var lines []string
	scan := bufio.NewScanner(r)
	for n := 1; scan.Scan(); n++ {
		text := strings.TrimSpace(scan.Text())
		if len(lines) == 0 && (text == "" || strings.HasPrefix(text, "#")) {
			continue
		}
		if lines = append(lines, text); len(lines) < 4 {
			continue
		}
		file, function, ok := strings.Cut(lines[0], " ")
		why, reasoned := strings.CutPrefix(lines[3], "why: ")
		if !ok || !reasoned {
			return nil, fmt.Errorf("line %d: expected a file and a function, a line, a mutation, and a reason", n)
		}
		s := site{file, function, lines[1], lines[2]}
		if _, twice := out[s]; twice {
			return nil, fmt.Errorf("line %d: listed twice", n)
		}
		out[s] = why
		lines = nil
	}
	if len(lines) > 0 {
		return nil, fmt.Errorf("the last entry has %d lines, expected 4", len(lines))
	}
	return out, scan.Err()
}
