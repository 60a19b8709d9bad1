package place

import (
	"cmp"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
)

// identify returns the name and namespace of a document's object, and the document with its namespace.
// The namespace of a document without one is asked, or else the result of otherwise. An error names the
// invalid field.
func identify(k *Kind, tree map[string]any, asked string, otherwise func() (string, error)) (
	name, namespace string, _ map[string]any, err error,
) {
	metadata, ok := tree["metadata"].(map[string]any)
	if !ok && tree["metadata"] != nil {
		return "", "", nil, fmt.Errorf(".metadata: expected an object, got %s", manifest.Describe(tree["metadata"]))
	}
	if name, err = manifest.Text(metadata, ".metadata", "name"); err != nil {
		return "", "", nil, err
	}
	if problems := content.IsPathSegmentName(name); len(problems) > 0 {
		return "", "", nil, fmt.Errorf(".metadata.name: %q %s", name, strings.Join(problems, ", "))
	}
	if namespace, err = manifest.OptionalText(metadata, ".metadata", "namespace"); err != nil {
		return "", "", nil, err
	}
	switch {
	case !k.namespaced && namespace != "":
		return "", "", nil, fmt.Errorf(".metadata.namespace: %s is cluster-scoped, got namespace %q", k.GroupKind(),
			namespace)
	case !k.namespaced:
		return name, "", tree, nil
	case namespace != "" && asked != "" && namespace != asked:
		return "", "", nil, fmt.Errorf(
			".metadata.namespace: got %q, expected the namespace of the command line, %q",
			namespace,
			asked,
		)
	}
	if namespace = cmp.Or(namespace, asked); namespace == "" {
		if namespace, err = otherwise(); err != nil {
			return "", "", nil, err
		}
	}
	if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
		return "", "", nil, fmt.Errorf(".metadata.namespace: %q: %s", namespace, problems[0])
	}
	metadata, tree = maps.Clone(metadata), maps.Clone(tree)
	metadata["namespace"], tree["metadata"] = namespace, metadata
	return name, namespace, tree, nil
}
