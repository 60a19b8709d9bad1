package view

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tenure-ssa/tenure/conflicts/policy"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// left returns the fields that a policy leaves to their owners: those that an apply gives up or takes the value of.
func (p *Planned) left() (paths []fieldpath.Path) {
	for _, d := range p.Decided {
		isThere := slices.ContainsFunc(paths, d.Path.Equal)
		if (d.Decision == policy.GiveUp || d.Decision == policy.Share) && !isThere {
			paths = append(paths, d.Path)
		}
	}
	return paths
}

// ArgoCD returns the part of an Application that leaves to others what a policy leaves to them.
func ArgoCD(all []Planned) any {
	type ignored struct {
		Group     string   `json:"group,omitempty"`
		Kind      string   `json:"kind"`
		Name      string   `json:"name"`
		Namespace string   `json:"namespace,omitempty"`
		Pointers  []string `json:"jsonPointers,omitempty"`
		JQ        []string `json:"jqPathExpressions,omitempty"`
	}
	list := []ignored{}
	for _, p := range all {
		one := ignored{Group: p.Kind.Group, Kind: p.Kind.Kind, Name: p.Name, Namespace: p.Namespace}
		for _, path := range p.left() {
			if slices.ContainsFunc(path, func(e fieldpath.Element) bool { return !e.IsField() }) {
				one.JQ = append(one.JQ, jq(path, p.Given)) // an item is found by its key, wherever it is in the list
			} else {
				one.Pointers = append(one.Pointers, pointer(path, nil))
			}
		}
		if len(one.Pointers)+len(one.JQ) > 0 {
			list = append(list, one)
		}
	}
	return map[string]any{"spec": map[string]any{
		"ignoreDifferences": list,
		"syncPolicy":        map[string]any{"syncOptions": []string{"RespectIgnoreDifferences=true", "ServerSideApply=true"}},
	}}
}

// Flux returns the part of a HelmRelease or a Kustomization that leaves to others what a policy leaves to them. A
// Kustomization takes the live value at a pointer into what it applies, at the same pointer: an item that has another
// index in the manifest than in the live object cannot be ignored, and is named on notes.
func Flux(notes io.Writer, all []Planned, isKustomization bool) any {
	type rule struct {
		Paths  []string          `json:"paths"`
		Target map[string]string `json:"target"`
	}
	list := []rule{}
	for _, p := range all {
		one := rule{Target: map[string]string{"kind": p.Kind.Kind, "name": regexp.QuoteMeta(p.Name)}}
		if p.Kind.Group != "" {
			one.Target["group"] = p.Kind.Group
		}
		if p.Namespace != "" {
			one.Target["namespace"] = p.Namespace
		}
		for _, path := range p.left() {
			at := pointer(path, p.Desired.Object)
			if isKustomization && at != pointer(path, p.Given) {
				fmt.Fprintf(notes, "note: %s: %s: no rule, its index in the manifest is not that in the live object\n",
					p.Title(), path.Short())
				continue
			}
			one.Paths = append(one.Paths, at)
		}
		if len(one.Paths) > 0 {
			list = append(list, one)
		}
	}
	if isKustomization {
		return map[string]any{"spec": map[string]any{"ignore": list}}
	}
	return map[string]any{"spec": map[string]any{
		"driftDetection": map[string]any{"mode": "enabled", "ignore": list},
	}}
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// pointer returns a path as a JSON pointer (RFC 6901). An item of a list has the index that it has in the object; the
// pointer is that of the list for one that the object does not have.
func pointer(path fieldpath.Path, value any) (text string) {
	for _, e := range path {
		if name, ok := e.Field(); ok {
			text += "/" + pointerEscapes.Replace(name)
			fields, _ := value.(map[string]any)
			value = fields[name]
			continue
		}
		items, _ := value.([]any)
		i := indexOf(e, items)
		if i < 0 || i >= len(items) {
			return text
		}
		text += "/" + strconv.Itoa(i)
		value = items[i]
	}
	return text
}

// indexOf returns the index of the item that an element selects, or -1. An item of a manifest may lack fields of its key
// that have defaults: the protocol of a port.
func indexOf(e fieldpath.Element, items []any) int {
	if at, ok := e.Index(); ok {
		return at
	}
	if value, ok := e.Value(); ok {
		return slices.IndexFunc(items, func(item any) bool { return typed.Equal(value, item) })
	}
	key, _ := e.Key()
	find := func(mayLack bool) int {
		return slices.IndexFunc(items, func(item any) bool {
			fields, isMap := item.(map[string]any)
			return isMap && !slices.ContainsFunc(key, func(f fieldpath.KeyField) bool {
				value, ok := fields[f.Name]
				return !typed.Equal(f.Value, value) && (ok || !mayLack)
			})
		})
	}
	if i := find(false); i >= 0 {
		return i
	}
	return find(true)
}

var jqName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// jq returns a path as an expression of jq: .spec.containers[] | select(.name == "a") | .image. It selects the item of the
// manifest as well as that of the live object, which has defaults in its key: select((.protocol // "TCP") == "TCP").
func jq(path fieldpath.Path, manifest any) (text string) {
	for i, e := range path {
		name, isField := e.Field()
		value, isValue := e.Value()
		at, isIndex := e.Index()
		key, _ := e.Key()
		fields, _ := manifest.(map[string]any)
		items, _ := manifest.([]any)
		manifest = fields[name]
		if i > 0 && !path[i-1].IsField() && isField {
			text += " | "
		}
		switch {
		case isField:
			text += jqField(name)
		case isIndex:
			text += fmt.Sprintf("[%d]", at)
		case isValue:
			text += "[] | select(. == " + jqValue(value) + ")"
		default:
			if at := indexOf(e, items); at >= 0 {
				manifest = items[at]
			}
			fields, hasItem := manifest.(map[string]any)
			var conditions []string
			for _, f := range key {
				field, want := jqField(f.Name), jqValue(f.Value)
				if _, ok := fields[f.Name]; hasItem && !ok {
					field = "(" + field + " // " + want + ")"
				}
				conditions = append(conditions, field+" == "+want)
			}
			text += "[] | select(" + strings.Join(conditions, " and ") + ")"
		}
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
