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

// maxName is the length of the longest name that a server takes, in bytes.
const maxName = 253

// identify returns the name and the namespace of the object of a kind that a document is
// about, and the document with its namespace filled in. The namespace of a document that
// names none is the one that was asked for, or else what otherwise returns. The error names
// the field that is wrong.
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
	if problems := validName(name); len(problems) > 0 {
		return "", "", nil, fmt.Errorf(".metadata.name: %q %s", name, strings.Join(problems, ", "))
	}
	if namespace, err = manifest.OptionalText(metadata, ".metadata", "namespace"); err != nil {
		return "", "", nil, err
	}
	switch {
	case !k.namespaced && namespace != "":
		return "", "", nil, fmt.Errorf(".metadata.namespace: %s objects are in no namespace, got %q", k.GroupKind(),
			namespace)
	case !k.namespaced:
		return name, "", tree, nil
	case namespace != "" && asked != "" && namespace != asked:
		return "", "", nil, fmt.Errorf(".metadata.namespace: %q is not the namespace that was asked for, %q", namespace,
			asked)
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

// validName returns what is wrong with the name of an object of any kind; some
// kinds allow less.
func validName(name string) (problems []string) {
	problems = content.IsPathSegmentName(name)
	if len(name) > maxName {
		problems = append(problems, fmt.Sprintf("may not be longer than %d bytes", maxName))
	}
	for _, r := range name {
		if r < ' ' || r == 0x7f {
			return append(problems, "may not contain control characters")
		}
	}
	return problems
}
