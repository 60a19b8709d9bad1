package main

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// shares are what parts of a CPU profile are spent in.
type shares struct {
	seconds float64
	// fieldManagement counts every stack with a frame of an engine in it, upstream's or
	// Tenure's. Frames that an engine called count as well: conversions, copies, encodings.
	fieldManagement float64
	// decoding counts other stacks with a frame of the decoding of YAML in it.
	decoding float64
	// collection counts stacks of the garbage collector without an engine in it.
	collection float64
}

var (
	// Package value of structured-merge-diff is the unstructured converter's as well.
	ofIntents = regexp.MustCompile(`hosts/engine\.(\(\*Intent\)\.(Decode|Check)|decodeJSON|\(\*jsonReader\))`)
	ofEngine  = regexp.MustCompile(
		`structured-merge-diff/v6/(typed|merge|fieldpath|schema)|util/managedfields|tenure-ssa/tenure/`,
	)
	// A patched function that calls upstream's has Tenure in the stack of all that upstream's does.
	ofUpstream  = regexp.MustCompile(`\(\*(unstructuredSchemaCoercer|applyPatcher)\)\.upstream`)
	ofYAML      = regexp.MustCompile(`sigs\.k8s\.io/yaml|go\.yaml\.in/`)
	ofCollector = regexp.MustCompile(`runtime\.(gcBgMarkWorker|gcAssist|bgsweep|bgscavenge|gcStart)`)
	traceHead   = regexp.MustCompile(`^\s*([\d.]+)(ns|us|ms|s|mins)\s+(.*)`)
)

var units = map[string]float64{"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "mins": 60}

// sharesOf reads a CPU profile. Stacks are cut at 64 frames, so that an entry point may be
// missing; hence any frame counts.
func sharesOf(path string) (shares, error) {
	out, err := exec.Command("go", "tool", "pprof", "-traces", "-nodefraction=0", path).Output()
	if err != nil {
		return shares{}, fmt.Errorf("go tool pprof -traces %s: %w", path, err)
	}
	return sharesIn(string(out)), nil
}

func sharesIn(traces string) (s shares) {
	for _, stack := range strings.Split(traces, "-----------+-------------------------------------------------------") {
		lines := strings.Split(strings.TrimPrefix(stack, "\n"), "\n")
		m := traceHead.FindStringSubmatch(lines[0])
		if m == nil {
			continue
		}
		v, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			continue
		}
		v *= units[m[2]]
		s.seconds += v
		lines[0] = m[3]
		isEngine, isDecoding, isCollection := false, false, false
		for _, frame := range lines { // the innermost first
			if ofUpstream.MatchString(frame) {
				break
			}
			switch {
			case ofIntents.MatchString(frame), ofYAML.MatchString(frame):
				isDecoding = true
			case ofEngine.MatchString(frame):
				isEngine = true
			case ofCollector.MatchString(frame):
				isCollection = true
			}
		}
		switch {
		case isEngine:
			s.fieldManagement += v
		case isDecoding:
			s.decoding += v
		case isCollection:
			s.collection += v
		}
	}
	return s
}

func (s shares) percent(v float64) float64 { return 100 * v / s.seconds }
