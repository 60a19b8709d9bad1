package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	goyaml "go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utiljson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/internal/expansion"
	"github.com/tenure-ssa/tenure/internal/secrets"
)

// Parse reads a policy in YAML or JSON, strictly: unknown and repeated fields are errors, and so are the violations
// that [Policy.Validate] finds. Each error names the line and the path.
func Parse(data []byte) (*Policy, error) {
	var doc goyaml.Node
	docs := goyaml.NewDecoder(bytes.NewReader(data))
	if err := docs.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("expected a policy, got an empty file")
		}
		return nil, secrets.Unreadable(err, 0, "a policy in YAML or JSON")
	}
	var more goyaml.Node
	if err := docs.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("line %d: expected one document, got more", max(more.Line, 1))
	}
	if err := expansion.Check(data); err != nil { // spec rule 12.9
		return nil, err
	}
	root := doc.Content[0]
	if root.Kind != goyaml.MappingNode {
		return nil, fmt.Errorf("line %d: expected an object", root.Line)
	}
	text, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, secrets.Unreadable(err, 0, "a policy in YAML or JSON")
	}
	p := &Policy{}
	all := p.decode(text)
	if len(all) == 0 {
		all = p.Validate()
	}
	var found []error
	for _, err := range all {
		found = append(found, fmt.Errorf("line %d: %w", lineOf(root, err.Field), err))
	}
	for i := range p.Rules {
		p.lines = append(p.lines, lineOf(root, fmt.Sprintf("rules[%d]", i)))
	}
	return p, errors.Join(found...)
}

// decode decodes the items of lists one by one, because errors of encoding/json do not say which item is wrong.
func (p *Policy) decode(text []byte) (all field.ErrorList) {
	var lists struct {
		*Policy
		Rules       []json.RawMessage `json:"rules"`
		Permissions []json.RawMessage `json:"permissions"`
		Examples    []json.RawMessage `json:"examples"`
	}
	lists.Policy = p
	all = decode(nil, text, &lists)
	p.Rules, p.Examples = make([]Rule, len(lists.Rules)), make([]Example, len(lists.Examples))
	for i, item := range lists.Rules {
		all = append(all, decode(field.NewPath("rules").Index(i), item, &p.Rules[i])...)
	}
	p.Permissions = make([]Permission, len(lists.Permissions))
	for i, item := range lists.Permissions {
		all = append(all, decode(field.NewPath("permissions").Index(i), item, &p.Permissions[i])...)
	}
	for i, item := range lists.Examples {
		all = append(all, decode(field.NewPath("examples").Index(i), item, &p.Examples[i])...)
	}
	return all
}

var kinds = map[reflect.Kind]string{reflect.Slice: "a list", reflect.String: "a string"}

var named = regexp.MustCompile(`^(.*) "([^"]*)"$`)

// decode decodes a value strictly. Its errors have the paths of unknown fields and of values of the wrong type.
func decode(path *field.Path, text []byte, into any) (all field.ErrorList) {
	pathOf := func(name string) *field.Path {
		if name == "" {
			return path
		}
		return path.Child(name)
	}
	unknown, err := utiljson.UnmarshalStrict(text, into)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		all = append(all, field.TypeInvalid(pathOf(wrong.Field), field.OmitValueType{},
			fmt.Sprintf("expected %s, got %s", cmp.Or(kinds[wrong.Type.Kind()], "an object"),
				strings.Fields(wrong.Value)[0]))) // wrong.Value may be "number 1"
	} else if err != nil {
		all = append(all, field.Invalid(path, field.OmitValueType{}, "expected another value"))
	}
	for _, err := range unknown {
		parts := append(named.FindStringSubmatch(err.Error()), err.Error(), "", "")
		all = append(all, field.Forbidden(pathOf(parts[2]), parts[1]))
	}
	return all
}

// lineOf returns the line of a path, such as rules[1].fields[0], or of the innermost existing node around it.
func lineOf(node *goyaml.Node, path string) int {
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

// Validate returns the violations of a policy, each with its path.
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
		all = append(all, oneOf(path.Child("decision"), r.Decision, decisions)...)
	}
	for i, permission := range p.Permissions {
		all = append(all, permission.rule().validate(field.NewPath("permissions").Index(i))...)
	}
	for i, e := range p.Examples {
		path := field.NewPath("examples").Index(i)
		if e.Object.Kind == "" {
			all = append(all, field.Required(path.Child("object", "kind"), ""))
		}
		if e.Owner.Manager == "" {
			all = append(all, field.Required(path.Child("owner", "manager"), ""))
		}
		all = append(all, oneOf(path.Child("owner", "operation"), e.Owner.Operation, operations)...)
		if len(readings(e.Field)) == 0 {
			all = append(all, invalidField(path.Child("field"), e.Field))
		}
		all = append(all, oneOf(path.Child("decision"), e.Decision, decisions)...)
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
	for i, text := range r.Fields {
		if !isPath.MatchString(text) {
			all = append(all, invalidField(path.Child("fields").Index(i), text))
		}
	}
	if _, err := metav1.LabelSelectorAsSelector(r.LabelSelector); err != nil {
		all = append(all, field.Invalid(path.Child("labelSelector"), "", err.Error()))
	}
	all = append(all, oneOf(path.Child("operation"), r.Operation, operations)...)
	slices.SortFunc(all, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return all
}

var (
	operations = []metav1.ManagedFieldsOperationType{
		"", metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate,
	}
	decisions = []conflicts.Decision{conflicts.Force, conflicts.GiveUp, conflicts.Refuse, conflicts.Share}
)

func oneOf[T ~string](path *field.Path, value T, known []T) field.ErrorList {
	if slices.Contains(known, value) {
		return nil
	}
	known = slices.DeleteFunc(slices.Clone(known), func(name T) bool { return name == "" })
	return field.ErrorList{field.NotSupported(path, value, known)}
}

func invalidField(path *field.Path, text string) *field.Error {
	return field.Invalid(path, text, "expected a path as conflicts name it, such as .spec.replicas")
}
