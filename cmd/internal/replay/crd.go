package replay

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// crd is the CustomResourceDefinition that is in force.
type crd struct{ tree map[string]any }

// crdVersion is one of its versions.
type crdVersion struct{ tree map[string]any }

func (c *crd) versions() (out []crdVersion) {
	spec, _ := c.tree["spec"].(map[string]any)
	list, _ := spec["versions"].([]any)
	for _, v := range list {
		tree, _ := v.(map[string]any)
		out = append(out, crdVersion{tree})
	}
	return out
}

// defines reports whether the definition is that of a resource.
func (c *crd) defines(group, plural string) bool {
	spec, _ := c.tree["spec"].(map[string]any)
	names, _ := spec["names"].(map[string]any)
	return spec["group"] == group && names["plural"] == plural
}

func (c *crd) version(name string) (crdVersion, error) {
	for _, v := range c.versions() {
		if v.name() == name {
			return v, nil
		}
	}
	return crdVersion{}, fmt.Errorf("the CustomResourceDefinition has no version %q", name)
}

func (v crdVersion) name() string {
	name, _ := v.tree["name"].(string)
	return name
}

func (v crdVersion) subresource(name string) (map[string]any, bool) {
	subresources, _ := v.tree["subresources"].(map[string]any)
	tree, ok := subresources[name].(map[string]any)
	return tree, ok
}

func (v crdVersion) hasStatus() bool {
	_, ok := v.subresource("status")
	return ok
}

// scalePath returns the path of replicas; nil if the version has no scale subresource.
func (v crdVersion) scalePath() fieldpath.Path {
	scale, ok := v.subresource("scale")
	if !ok {
		return nil
	}
	path, _ := scale["specReplicasPath"].(string)
	return fieldpath.Fields(strings.Split(strings.TrimPrefix(path, "."), ".")...)
}

// complete prunes fields that the schema does not declare, and sets defaults, as a server does.
func (v crdVersion) complete(obj map[string]any) {
	schema, _ := v.tree["schema"].(map[string]any)
	root, _ := schema["openAPIV3Schema"].(map[string]any)
	properties, _ := root["properties"].(map[string]any)
	for name, sub := range properties {
		if value, ok := obj[name]; ok && name != "metadata" {
			obj[name] = completeValue(value, sub)
		}
	}
}

func completeValue(v, schema any) any {
	s, _ := schema.(map[string]any)
	switch t := v.(type) {
	case map[string]any:
		properties, _ := s["properties"].(map[string]any)
		for name, sub := range properties {
			p, _ := sub.(map[string]any)
			value, ok := t[name]
			if d, has := p["default"]; has && (!ok || value == nil && p["nullable"] != true) {
				t[name] = runtime.DeepCopyJSONValue(d)
				ok = true
			}
			if ok {
				t[name] = completeValue(t[name], sub)
			}
		}
		free, hasFree := s["additionalProperties"]
		keep := s["x-kubernetes-preserve-unknown-fields"] == true || s["type"] == nil
		for name, value := range t {
			if _, declared := properties[name]; declared {
				continue
			}
			switch {
			case hasFree:
				t[name] = completeValue(value, free)
			case !keep:
				delete(t, name)
			}
		}
	case []any:
		for i := range t {
			t[i] = completeValue(t[i], s["items"])
		}
	}
	return v
}
