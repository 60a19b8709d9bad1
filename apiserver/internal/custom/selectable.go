package custom

import (
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/util/jsonpath"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// selectable is a selectable field.
type selectable struct {
	name string
	path *jsonpath.JSONPath
}

func selectables(v *apiextensionsv1.CustomResourceDefinitionVersion) ([]selectable, error) {
	var out []selectable
	for _, f := range v.SelectableFields {
		path := jsonpath.New("selectableField").AllowMissingKeys(true)
		if err := path.Parse("{" + f.JSONPath + "}"); err != nil {
			return nil, fmt.Errorf("selectable field %s: %w", f.JSONPath, err)
		}
		out = append(out, selectable{strings.TrimPrefix(f.JSONPath, "."), path})
	}
	return out, nil
}

// SelectableFields returns the name, the namespace and the selectable fields. A field that
// does not exist, or has several values, is "".
func (k *kind) SelectableFields(obj resources.Object) fields.Set {
	set := fields.Set{"metadata.name": obj.GetName()}
	if k.resource.Namespaced {
		set["metadata.namespace"] = obj.GetNamespace()
	}
	for _, s := range k.selectable {
		set[s.name] = ""
		found, err := s.path.FindResults(obj.(*unstructured.Unstructured).Object)
		if err != nil || len(found) != 1 || len(found[0]) != 1 {
			continue
		}
		if v := found[0][0].Interface(); v != nil {
			set[s.name] = fmt.Sprint(v)
		}
	}
	return set
}

// ConvertFieldLabel accepts the fields that SelectableFields returns.
func (k *kind) ConvertFieldLabel(name, value string) (string, string, error) {
	if name == "metadata.name" || name == "metadata.namespace" {
		return name, value, nil
	}
	for _, s := range k.selectable {
		if s.name == name {
			return name, value, nil
		}
	}
	return "", "", fmt.Errorf("field label not supported: %s", name)
}
