package main

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// outcome is the parsed output of a suite. If a test runs Ginkgo specs, the specs are counted instead of the test.
type outcome struct {
	run, subtests   int
	passed, skipped int
	failed          []string // names; for a test with failed subtests only the subtests
	specs           bool
	broken          string // a package that failed to build or ended early
	log             string
	// shadow counts the differences in the mode shadow, by their number in doc/differences.md.
	shadow map[string]int
}

var (
	colors = regexp.MustCompile(`\x1b(?:\[[0-9;]*m|\(B)`)

	testResult  = regexp.MustCompile(`(?m)^( *)--- (PASS|FAIL|SKIP): (\S+) \(`)
	specsResult = regexp.MustCompile(`(?m)^Ran (\d+) of (\d+) Specs`)
	specsCount  = regexp.MustCompile(`(\d+) (Passed|Failed|Pending|Skipped)`)
	specFailed  = regexp.MustCompile(`(?m)^\s*\[FAIL\] (.*)$`)
	// packageResult matches the last line of a package's output.
	packageResult = regexp.MustCompile(`(?m)^(?:ok|FAIL)\s+\S+\s+[0-9.]+s$`)
	// shadowLine matches a difference in the log of package shadow.
	shadowLine = regexp.MustCompile(`"Tenure differs from upstream" difference="([^"]*)"`)
	// scriptResult matches the output of a function of Kubernetes' scripts; scriptsEnded matches the last line of the
	// scripts.
	scriptResult = regexp.MustCompile(`(?ms)^\+\+\+ Running case: test-cmd\.(\S+) .*?^\+\+\+ exit code: (\d+)`)
	scriptsEnded = regexp.MustCompile(`(?m)^(?:FAILED TESTS: |\+\+\+ .*TESTS PASSED)`)
	notBuilt     = regexp.MustCompile(
		`(?m)^(?:FAIL\s+\S+ \[(?:build|setup) failed\]|panic: .*|fatal error: .*|signal: .*)$`,
	)
)

// canary is a function of Kubernetes' scripts that must fail, so parse does not count it.
const canary = "record_command_canary"

// parse parses the output of go test -v, or of Kubernetes' scripts.
func parse(text string) *outcome {
	text = colors.ReplaceAllString(text, "")
	o := &outcome{broken: notBuilt.FindString(text)}
	for _, m := range shadowLine.FindAllStringSubmatch(text, -1) {
		if o.shadow == nil {
			o.shadow = map[string]int{}
		}
		o.shadow[m[1]]++
	}
	if found := specsResult.FindAllStringSubmatchIndex(text, -1); found != nil {
		o.specs = true
		for _, m := range found { // one for each package
			ran, _ := strconv.Atoi(text[m[2]:m[3]])
			o.run += ran
			for _, c := range specsCount.FindAllStringSubmatch(text[m[0]:], 4) {
				n, _ := strconv.Atoi(c[1])
				switch c[2] {
				case "Passed":
					o.passed += n
				case "Pending", "Skipped":
					o.skipped += n
				}
			}
		}
		for _, section := range packageResult.Split(text, -1) {
			o.failed = append(o.failed, failedIn(section)...)
		}
		return o
	}
	if found := scriptResult.FindAllStringSubmatch(text, -1); found != nil {
		for _, m := range found {
			if m[1] == canary {
				continue
			}
			if o.run++; m[2] == "0" {
				o.passed++
			} else {
				o.failed = append(o.failed, m[1])
			}
		}
		if o.broken == "" && !scriptsEnded.MatchString(text) {
			o.broken = "the scripts ended early, after " + found[len(found)-1][1]
		}
		return o
	}
	for _, m := range testResult.FindAllStringSubmatch(text, -1) {
		if m[1] != "" || strings.Contains(m[3], "/") {
			o.subtests++
			if m[2] == "FAIL" {
				o.failed = append(o.failed, m[3])
			}
			continue
		}
		o.run++
		switch m[2] {
		case "PASS":
			o.passed++
		case "SKIP":
			o.skipped++
		case "FAIL":
			o.failed = append(o.failed, m[3])
		}
	}
	o.failed = leaves(o.failed)
	return o
}

// failedIn returns the failed specs in a package's output or, if no spec failed, the failed tests.
func failedIn(section string) (names []string) {
	for _, f := range specFailed.FindAllStringSubmatch(section, -1) {
		if name := strings.TrimSpace(f[1]); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		return names
	}
	for _, m := range testResult.FindAllStringSubmatch(section, -1) {
		if m[2] == "FAIL" {
			names = append(names, m[3])
		}
	}
	return leaves(names)
}

// leaves returns names without the tests that have subtests in names.
func leaves(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.ContainsFunc(names, func(other string) bool { return strings.HasPrefix(other, name+"/") })
	})
}

// row returns a line of the table.
func (o *outcome) row(s suite) string {
	run := fmt.Sprint(o.run)
	if o.specs {
		run += " specs"
	} else if o.subtests > 0 {
		run += fmt.Sprintf(" (%d subtests)", o.subtests)
	}
	failed := "none"
	if len(o.failed) > 0 {
		var names []string
		for _, name := range o.failed {
			number := s.differences[name]
			if number == "" {
				number = "no number"
			}
			names = append(names, fmt.Sprintf("`%s` (%s)", name, number))
		}
		failed = strings.Join(names, "; ")
	}
	return fmt.Sprintf("| %s | %s | %d | %d | %s |", s.name, run, o.passed, o.skipped, failed)
}

// shadowRow returns a line with the differences in the mode shadow.
func (o *outcome) shadowRow() string {
	var out []string
	for _, number := range slices.Sorted(maps.Keys(o.shadow)) {
		out = append(out, fmt.Sprintf("%s (%d times)", number, o.shadow[number]))
	}
	return cmp.Or(strings.Join(out, ", "), "none")
}

// unknown returns the failed tests that have no known reason.
func (o *outcome) unknown(s suite) []string {
	return slices.DeleteFunc(slices.Clone(o.failed), func(name string) bool { return s.differences[name] != "" })
}
