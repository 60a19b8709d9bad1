package fieldmanagertest

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tenure-ssa/tenure/internal/txtar"
	"github.com/tenure-ssa/tenure/managedfields"
)

// Grammar describes how a scenario is written: its steps and their expected results.
//
//go:embed grammar.txt
var Grammar string

// step is one step of the archive, and the files with its expected results, which follow it in the archive.
type step struct {
	name string // as written
	word string
	body []byte
	want []txtar.File
	// grouped are the writes that belong to an interleave step.
	grouped []*step

	// The fields below come from the words after the first word.
	list  []string // words without =, except force
	keys  map[string]string
	write Write // the write that the words describe
}

// stepWord describes the allowed words and results of a step with a given first word.
type stepWord struct {
	isWrite    bool
	hasManager bool
	keys       []string // allowed keys of key=value words
	results    []string // nil for a step that defines the type or the object
}

var writeWord = stepWord{
	isWrite: true, hasManager: true, keys: []string{"version", "subresource", "agent"},
	results: []string{"want", "unchanged", "conflict", "error", "warnings"},
}

var stepWords = map[string]stepWord{
	"schema": {}, "crd": {}, "deduced": {}, "live": {},
	"apply": writeWord, "update": writeWord, "patch": writeWord,
	"extract":    {hasManager: true, keys: []string{"subresource"}, results: []string{"want", "error"}},
	"interleave": {keys: []string{"limit", "seed"}, results: []string{"orders"}},
}

var expectations = append(writeWord.results, "orders")

// directive matches a line for programs in the comment.
var directive = regexp.MustCompile(`(?m)^(rules|differs):(.*)\n?`)

// parse parses a scenario without running it. An error names the step. Lines may end in CRLF.
func parse(data []byte) (*Scenario, error) {
	archive := txtar.Parse(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")))
	s := &Scenario{comment: archive.Comment}
	for _, m := range directive.FindAllStringSubmatch(string(archive.Comment), -1) {
		words := strings.FieldsFunc(m[2], func(r rune) bool { return r == ' ' || r == ',' })
		if m[1] == "rules" {
			s.Rules = append(s.Rules, words...)
			continue
		}
		for _, word := range words {
			n, err := strconv.Atoi(word)
			if err != nil {
				return nil, fmt.Errorf("differs: expected a number, got %q", word)
			}
			s.Differs = append(s.Differs, n)
		}
	}
	s.About = strings.TrimSpace(directive.ReplaceAllString(string(archive.Comment), ""))
	for i, file := range archive.Files {
		if err := s.add(file); err != nil {
			return nil, fmt.Errorf("step %d, %q: %w", i+1, file.Name, err)
		}
	}
	if len(s.script) == 0 {
		return nil, errors.New("no steps, expected lines such as -- apply alice --")
	}
	for _, st := range s.script {
		if st.word == "interleave" && len(st.grouped) == 0 {
			return nil, st.withoutWrites()
		}
	}
	return s, nil
}

// add adds the next file of the archive.
func (s *Scenario) add(file txtar.File) error {
	words := strings.Fields(file.Name)
	if len(words) == 0 {
		return fmt.Errorf("expected a step")
	}
	var last *step
	if len(s.script) > 0 {
		last = s.script[len(s.script)-1]
	}
	if slices.Contains(expectations, words[0]) {
		switch {
		case len(words) > 1:
			return fmt.Errorf("unknown word %q", words[1])
		case last == nil:
			return fmt.Errorf("there is no step before it with this result")
		case !slices.Contains(stepWords[last.word].results, words[0]):
			return fmt.Errorf("a step %q has no such result", last.word)
		case slices.ContainsFunc(last.want, func(f txtar.File) bool { return f.Name == words[0] }):
			return fmt.Errorf("expected twice of one step")
		}
		last.want = append(last.want, txtar.File{Name: words[0], Data: file.Data})
		return nil
	}
	word, ok := stepWords[words[0]]
	if !ok {
		return fmt.Errorf("unknown step %q", words[0])
	}
	st := &step{name: file.Name, word: words[0], body: file.Data}
	st.write = Write{verb: verb(st.word), object: st.body}
	if err := st.parseWords(word, words[1:]); err != nil {
		return err
	}
	if last != nil && last.word == "interleave" && len(last.want) == 0 && word.isWrite {
		last.grouped = append(last.grouped, st)
		return nil
	}
	s.script = append(s.script, st)
	return nil
}

// withoutWrites returns the error for an interleave step without writes.
func (st *step) withoutWrites() error {
	return fmt.Errorf("step %q: expected writes after it", st.name)
}

func (st *step) parseWords(kind stepWord, words []string) error {
	st.keys = map[string]string{}
	for _, word := range words {
		key, value, isKey := strings.Cut(word, "=")
		switch {
		case isKey && slices.Contains(kind.keys, key):
			st.keys[key] = value
		case isKey:
			return fmt.Errorf("unknown word %q", word)
		case word == "force" && st.word == "apply":
			st.write.force = true
		default:
			st.list = append(st.list, word)
		}
	}
	rest := st.list
	if kind.hasManager && len(rest) > 0 {
		st.write.manager, rest = rest[0], rest[1:]
	}
	if st.word != "schema" && len(rest) > 0 { // the words after schema are versions
		return fmt.Errorf("unknown word %q", rest[0])
	}
	if agent, ok := st.keys["agent"]; ok {
		st.write.manager = managedfields.ManagerFromUserAgent(agent)
	}
	st.write.version, st.write.subresource = st.keys["version"], st.keys["subresource"]
	for _, key := range []string{"limit", "seed"} {
		if v, ok := st.keys[key]; ok {
			if _, err := strconv.ParseUint(v, 10, 31); err != nil {
				return fmt.Errorf("%s: expected a whole number, got %q", key, v)
			}
		}
	}
	return nil
}

func (st *step) number(key string) int {
	n, _ := strconv.Atoi(st.keys[key])
	return n
}
