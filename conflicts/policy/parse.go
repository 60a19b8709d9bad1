package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	goyaml "go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utiljson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Parse reads a policy in YAML or JSON, strictly: unknown and repeated fields are errors, and so is what [Policy.Validate]
// finds. Each error names the line and the path.
func Parse(data []byte) (*Policy, error) {
	var doc goyaml.Node
	docs := goyaml.NewDecoder(bytes.NewReader(data))
	if err := docs.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("expected a policy, got an empty file")
		}
		return nil, err
	}
	var more goyaml.Node
	if err := docs.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("line %d: expected one document, got more", max(more.Line, 1))
	}
	text, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, err
	}
	p, all := &Policy{}, field.ErrorList{}
	unknown, err := utiljson.UnmarshalStrict(text, p)
	if err != nil {
		return nil, mistyped(&doc, text, err)
	}
	for _, err := range unknown {
		path := quoted.FindString(err.Error())
		all = append(all, field.Forbidden(fieldAt(strings.Trim(path, `"`)), strings.TrimSpace(strings.TrimSuffix(err.Error(), path))))
	}
	var found []error
	for _, err := range append(all, p.Validate()...) {
		found = append(found, at(&doc, err.Field, err))
	}
	for i := range p.Rules {
		p.lines = append(p.lines, lineOf(&doc, fmt.Sprintf("rules[%d]", i)))
	}
	return p, errors.Join(found...)
}

var quoted = regexp.MustCompile(`"[^"]*"$`)

func fieldAt(path string) *field.Path { return field.NewPath(path) }

// at returns an error with the line of its path.
func at(doc *goyaml.Node, path string, err error) error {
	return fmt.Errorf("line %d: %w", lineOf(doc, path), err)
}

// mistyped returns an error about a value of another type. encoding/json names no item of a list: so the rules and
// examples are decoded one by one until the error is found.
func mistyped(doc *goyaml.Node, text []byte, whole error) error {
	var wrong *json.UnmarshalTypeError
	var lists map[string]json.RawMessage
	if utiljson.UnmarshalCaseSensitivePreserveInts(text, &lists) != nil {
		return whole
	}
	for _, name := range []string{"rules", "examples"} {
		var items []json.RawMessage
		if utiljson.UnmarshalCaseSensitivePreserveInts(lists[name], &items) != nil {
			continue
		}
		for i, item := range items {
			var into any = &Rule{}
			if name == "examples" {
				into = &Example{}
			}
			if errors.As(utiljson.UnmarshalCaseSensitivePreserveInts(item, into), &wrong) {
				path := fmt.Sprintf("%s[%d]", name, i)
				if wrong.Field != "" {
					path += "." + wrong.Field
				}
				return at(doc, path, fmt.Errorf("%s: expected %s, got %s", path, wrong.Type, wrong.Value))
			}
		}
	}
	if errors.As(whole, &wrong) {
		return at(doc, wrong.Field, fmt.Errorf("%s: expected %s, got %s", wrong.Field, wrong.Type, wrong.Value))
	}
	return whole
}

// lineOf returns the line of a path, or of what holds it: rules[1].fields[0].
func lineOf(doc *goyaml.Node, path string) int {
	node := doc
	if node.Kind == goyaml.DocumentNode && len(node.Content) > 0 {
		node = node.Content[0]
	}
	line := node.Line
	for _, step := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		if node.Kind == goyaml.AliasNode {
			node = node.Alias
		}
		n, err := strconv.Atoi(step)
		switch {
		case node.Kind == goyaml.SequenceNode && err == nil && n < len(node.Content):
			node = node.Content[n]
			line = node.Line
		case node.Kind == goyaml.MappingNode:
			for i := 0; i+1 < len(node.Content); i += 2 {
				if node.Content[i].Value == step {
					line, node = node.Content[i].Line, node.Content[i+1]
					break
				}
			}
		}
	}
	return line
}

// Validate returns what is wrong with a policy, each with its path.
func (p *Policy) Validate() (all field.ErrorList) {
	if p.APIVersion != APIVersion {
		all = append(all, field.NotSupported(field.NewPath("apiVersion"), p.APIVersion, []string{APIVersion}))
	}
	if p.Kind != Kind {
		all = append(all, field.NotSupported(field.NewPath("kind"), p.Kind, []string{Kind}))
	}
	for i, r := range p.Rules {
		path := field.NewPath("rules").Index(i)
		all = append(all, r.validate(path)...)
	}
	for i, e := range p.Examples {
		path := field.NewPath("examples").Index(i)
		if e.Object.Kind == "" {
			all = append(all, field.Required(path.Child("object", "kind"), ""))
		}
		if e.Owner.Manager == "" {
			all = append(all, field.Required(path.Child("owner", "manager"), ""))
		}
		all = append(all, validOperation(path.Child("owner", "operation"), e.Owner.Operation)...)
		all = append(all, validField(path.Child("field"), e.Field)...)
		all = append(all, validDecision(path, e.Decision)...)
	}
	return all
}

func (r Rule) validate(path *field.Path) (all field.ErrorList) {
	for name, texts := range map[string][]string{
		"managers": r.Managers, "kinds": r.Kinds, "namespaces": r.Namespaces, "names": r.Names,
	} {
		if i := slices.Index(texts, ""); i >= 0 {
			all = append(all, field.Required(path.Child(name).Index(i), ""))
		}
	}
	all = append(all, validOperation(path.Child("operation"), r.Operation)...)
	for i, text := range r.Fields {
		all = append(all, validField(path.Child("fields").Index(i), text)...)
	}
	if _, err := metav1.LabelSelectorAsSelector(r.LabelSelector); err != nil {
		all = append(all, field.Invalid(path.Child("labelSelector"), "", err.Error()))
	}
	all = append(all, validDecision(path, r.Decision)...)
	slices.SortFunc(all, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return all
}

func validOperation(path *field.Path, o metav1.ManagedFieldsOperationType) field.ErrorList {
	known := []metav1.ManagedFieldsOperationType{metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate}
	if o == "" || slices.Contains(known, o) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, o, known)}
}

func validDecision(path *field.Path, d Decision) field.ErrorList {
	known := []Decision{Force, GiveUp, Refuse, Share}
	switch {
	case d == "":
		return field.ErrorList{field.Required(path.Child("decision"), "expected force, giveUp, refuse or share")}
	case !slices.Contains(known, d):
		return field.ErrorList{field.NotSupported(path.Child("decision"), d, known)}
	}
	return nil
}

// validField checks the text of a path: names begin with a dot and are not empty, brackets are closed.
func validField(path *field.Path, text string) field.ErrorList {
	for rest := text; rest != "" && (rest[0] == '.' || rest[0] == '['); {
		all := ends(rest)
		if len(all) == 0 {
			break
		}
		if rest = rest[all[0]:]; rest == "" {
			return nil
		}
	}
	return field.ErrorList{field.Invalid(path, text, "expected a path as conflicts name it, such as .spec.replicas")}
}
