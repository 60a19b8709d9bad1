package fieldmanagertest

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tenure-ssa/tenure/internal/txtar"
	"github.com/tenure-ssa/tenure/managedfields"
)

// script is a scenario in its text form.
type script struct {
	about   string
	rules   []string
	differs []int
	comment []byte
	steps   []*step
}

// step is one step of the archive, with the files after it that have the expected results.
type step struct {
	name string // as written
	word string
	args arguments
	body []byte
	want []txtar.File
	// grouped are the writes of an interleave.
	grouped []*step
}

// arguments are the words after the first word of a step.
type arguments struct {
	list    []string // words without =, except for force
	force   bool
	keys    map[string]string
	manager string // manager, from the list or from agent=
}

// stepWords are the steps, with the results that each may have.
var stepWords = map[string][]string{
	"schema":     nil,
	"crd":        nil,
	"deduced":    nil,
	"live":       nil,
	"apply":      {"want", "unchanged", "conflict", "error", "warnings"},
	"update":     {"want", "unchanged", "conflict", "error", "warnings"},
	"patch":      {"want", "unchanged", "conflict", "error", "warnings"},
	"extract":    {"want", "error"},
	"interleave": {"orders"},
}

// stepKeys are the key=value words of steps.
var stepKeys = map[string][]string{
	"apply":      {"version", "subresource", "agent"},
	"update":     {"version", "subresource", "agent"},
	"patch":      {"version", "subresource", "agent"},
	"extract":    {"subresource"},
	"interleave": {"limit", "seed"},
}

var expectations = []string{"want", "unchanged", "conflict", "error", "warnings", "orders"}

// directive matches a line of the comment that is for programs.
var directive = regexp.MustCompile(`(?m)^(rules|differs):(.*)\n?`)

// parse parses a scenario. An error has the name of the step. Lines may end in CRLF.
func parse(data []byte) (*script, error) {
	archive := txtar.Parse(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")))
	s := &script{comment: archive.Comment}
	for _, m := range directive.FindAllStringSubmatch(string(archive.Comment), -1) {
		words := strings.FieldsFunc(m[2], func(r rune) bool { return r == ' ' || r == ',' })
		if m[1] == "rules" {
			s.rules = append(s.rules, words...)
			continue
		}
		for _, word := range words {
			n, err := strconv.Atoi(word)
			if err != nil {
				return nil, fmt.Errorf("differs: expected a number, got %q", word)
			}
			s.differs = append(s.differs, n)
		}
	}
	s.about = strings.TrimSpace(directive.ReplaceAllString(string(archive.Comment), ""))
	for i, file := range archive.Files {
		if err := s.add(file); err != nil {
			return nil, fmt.Errorf("step %d, %q: %w", i+1, file.Name, err)
		}
	}
	if len(s.steps) == 0 {
		return nil, errors.New("no steps, expected lines such as -- apply alice --")
	}
	for _, st := range s.steps {
		if st.word == "interleave" && len(st.grouped) == 0 {
			return nil, fmt.Errorf("step %q: expected writes after it", st.name)
		}
	}
	return s, nil
}

// add adds the next file of the archive.
func (s *script) add(file txtar.File) error {
	words := strings.Fields(file.Name)
	if len(words) == 0 {
		return fmt.Errorf("expected a step")
	}
	var last *step
	if len(s.steps) > 0 {
		last = s.steps[len(s.steps)-1]
	}
	if slices.Contains(expectations, words[0]) {
		switch {
		case len(words) > 1:
			return fmt.Errorf("unknown word %q", words[1])
		case last == nil:
			return fmt.Errorf("nothing was done that could be expected to come to that")
		case !slices.Contains(stepWords[last.word], words[0]):
			return fmt.Errorf("%q comes to no such thing", last.word)
		case slices.ContainsFunc(last.want, func(f txtar.File) bool { return f.Name == words[0] }):
			return fmt.Errorf("expected twice of one step")
		}
		last.want = append(last.want, txtar.File{Name: words[0], Data: file.Data})
		return nil
	}
	if _, ok := stepWords[words[0]]; !ok {
		return fmt.Errorf("unknown step %q", words[0])
	}
	st := &step{name: file.Name, word: words[0], body: file.Data}
	if err := st.parseWords(words[1:]); err != nil {
		return err
	}
	_, isWrite := verbs[st.word]
	if last != nil && last.word == "interleave" && len(last.want) == 0 && isWrite {
		last.grouped = append(last.grouped, st)
		return nil
	}
	s.steps = append(s.steps, st)
	return nil
}

var verbs = map[string]verb{"apply": applyVerb, "update": updateVerb, "patch": patchVerb}

func (st *step) parseWords(words []string) error {
	st.args.keys = map[string]string{}
	for _, word := range words {
		key, value, isKey := strings.Cut(word, "=")
		switch {
		case isKey && slices.Contains(stepKeys[st.word], key):
			st.args.keys[key] = value
		case isKey:
			return fmt.Errorf("unknown word %q", word)
		case word == "force" && st.word == "apply":
			st.args.force = true
		default:
			st.args.list = append(st.args.list, word)
		}
	}
	names := 0
	switch st.word {
	case "apply", "update", "patch", "extract":
		names = 1
	case "schema":
		names = len(st.args.list)
	}
	if len(st.args.list) > names {
		return fmt.Errorf("unknown word %q", st.args.list[names])
	}
	if names == 1 && len(st.args.list) == 1 {
		st.args.manager = st.args.list[0]
	}
	if agent, ok := st.args.keys["agent"]; ok {
		st.args.manager = managedfields.ManagerFromUserAgent(agent)
	}
	for _, key := range []string{"limit", "seed"} {
		if v, ok := st.args.keys[key]; ok {
			if _, err := strconv.ParseUint(v, 10, 31); err != nil {
				return fmt.Errorf("%s: expected a whole number, got %q", key, v)
			}
		}
	}
	return nil
}

// write returns the step as a write.
func (st *step) write() Write {
	return Write{
		verb: verbs[st.word], manager: st.args.manager, object: st.body, force: st.args.force,
		version: st.args.keys["version"], subresource: st.args.keys["subresource"],
	}
}

func (st *step) number(key string) int {
	n, _ := strconv.Atoi(st.args.keys[key])
	return n
}
