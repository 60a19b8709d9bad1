package view

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/internal/planning"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// left returns the fields that a policy leaves to their owners, because it gives them up or shares them.
func left(p *planning.Planned) (paths []fieldpath.Path) {
	for _, d := range p.Decided {
		isThere := slices.ContainsFunc(paths, d.Path.Equal)
		if (d.Decision == conflicts.GiveUp || d.Decision == conflicts.Share) && !isThere {
			paths = append(paths, d.Path)
		}
	}
	return paths
}

// IgnoreFormats are the output formats for ignore rules of an Argo CD Application, a Flux HelmRelease and a Flux
// Kustomization. With these rules, the GitOps tools leave the same fields to their owners as the policy does.
var IgnoreFormats = []string{"argocd", "flux", "flux-kustomization"}

// WriteIgnoreRules writes ignore rules for the fields that a policy leaves to their owners, in one of
// [IgnoreFormats].
func WriteIgnoreRules(env *process.Env, format string, all []planning.Planned) error {
	rules := []any{}
	for _, p := range all {
		t := p.Parent()
		fields := map[string]any{}
		for _, path := range left(&p) {
			if key, text := ignored(&p, env.Stderr, format, path); text != "" {
				texts, _ := fields[key].([]string)
				fields[key] = append(texts, text)
			}
		}
		target := map[string]any{"group": t.Kind.Group, "kind": t.Kind.Kind, "namespace": p.Namespace, "name": p.Name}
		maps.DeleteFunc(target, func(_ string, value any) bool { return value == "" })
		switch {
		case len(fields) == 0:
			continue
		case format == "argocd":
			maps.Copy(fields, target)
		default:
			target["name"] = regexp.QuoteMeta(p.Name)
			fields["target"] = target
		}
		rules = append(rules, fields)
	}
	spec := map[string]any{"ignore": rules}
	switch format {
	case "argocd":
		spec = map[string]any{"ignoreDifferences": rules, "syncPolicy": map[string]any{
			"syncOptions": []string{"RespectIgnoreDifferences=true", "ServerSideApply=true"},
		}}
	case "flux":
		spec = map[string]any{"driftDetection": map[string]any{"mode": "enabled", "ignore": rules}}
	}
	return Encode(env.Stdout, "yaml", map[string]any{"spec": spec})
}

// ignored returns the text that selects a field in an ignore rule, and the name of the rule's list that contains such
// texts. For a Kustomization, Flux copies the live value at a JSON pointer to the same pointer of the manifest.
// Therefore, a list item whose index in the manifest differs from its index in the live object can't be ignored; for
// such an item, ignored writes a note and returns "".
func ignored(p *planning.Planned, notes io.Writer, format string, path fieldpath.Path) (list, text string) {
	t := p.Parent()
	if format == "argocd" {
		if slices.ContainsFunc(path, func(e fieldpath.Element) bool { return !e.IsField() }) {
			return "jqPathExpressions", jq(t.Kind.Typ, path) // finds items by key, whatever their index is
		}
		return "jsonPointers", planning.Pointer(t.Kind.Typ, path, nil)
	}
	text = planning.Pointer(t.Kind.Typ, path, t.Object)
	if format == "flux-kustomization" && text != planning.Pointer(t.Kind.Typ, path, p.Given) {
		fmt.Fprintf(notes, "note: %s: %s: no rule, because its index differs in the manifest and the live object\n",
			p.Title(), path.Short())
		return "", ""
	}
	return "paths", text
}

// childType returns the type of a child; an empty type if the schema does not describe it.
func childType(t *typed.Type, e fieldpath.Element) *typed.Type {
	if child, _ := t.Child(e); child != nil {
		return child
	}
	return &typed.Type{}
}

var jqName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// jq returns a path as a jq expression: .spec.containers[] | select(.name == "a") | .image. The key of an item in the
// live object may contain defaults that the manifest omits. The expression selects the item in both:
// select((.protocol // "TCP") == "TCP").
func jq(t *typed.Type, path fieldpath.Path) (text string) {
	for i, e := range path {
		name, isField := e.Field()
		value, isValue := e.Value()
		index, isIndex := e.Index()
		key, _ := e.Key()
		if i > 0 && !path[i-1].IsField() && isField {
			text += " | "
		}
		child := childType(t, e)
		switch {
		case isField:
			text += jqField(name)
		case isIndex:
			text += fmt.Sprintf("[%d]", index)
		case isValue:
			text += "[] | select(. == " + jqValue(value) + ")"
		default:
			var conditions []string
			for _, f := range key {
				field, want := jqField(f.Name), jqValue(f.Value)
				if child.Map != nil && typed.Equal(child.Map.Field(f.Name).Default, f.Value) {
					field = "(" + field + " // " + want + ")"
				}
				conditions = append(conditions, field+" == "+want)
			}
			text += "[] | select(" + strings.Join(conditions, " and ") + ")"
		}
		t = child
	}
	return text
}

func jqField(name string) string {
	if jqName.MatchString(name) {
		return "." + name
	}
	return ".[" + jqValue(name) + "]"
}

func jqValue(value any) string {
	data, _ := json.Marshal(value)
	return string(data)
}
