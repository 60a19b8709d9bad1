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
	if namespace, err = manifest.OptionalText(metadata, ".metadata", "namespace"); err != nil {
		return "", "", nil, err
	}
	switch {
	case !k.namespaced && namespace != "":
		return "", "", nil, fmt.Errorf(".metadata.namespace: %s is cluster-scoped, got namespace %q", k.GroupKind(),
			namespace)
	case !k.namespaced:
		return name, "", tree, checkNames(k.GroupVersionKind.Kind, name, "")
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
	if err = checkNames(k.GroupVersionKind.Kind, name, namespace); err != nil {
		return "", "", nil, err
	}
	metadata, tree = maps.Clone(metadata), maps.Clone(tree)
	metadata["namespace"], tree["metadata"] = namespace, metadata
	return name, namespace, tree, nil
}

// checkNames returns an error for names that no object can have. Every object that enters passes it, of the input, of
// files, of stores and of clusters, so that names can be parts of URLs, paths and commands.
func checkNames(kind, name, namespace string) error {
	for _, part := range [][2]string{{".kind", kind}, {".metadata.name", name}} {
		if problems := content.IsPathSegmentName(part[1]); len(problems) > 0 {
			return fmt.Errorf("%s: %q %s", part[0], part[1], strings.Join(problems, ", "))
		}
	}
	if problems := validation.IsDNS1123Label(namespace); namespace != "" && len(problems) > 0 {
		return fmt.Errorf(".metadata.namespace: %q: %s", namespace, problems[0])
	}
	return nil
}
