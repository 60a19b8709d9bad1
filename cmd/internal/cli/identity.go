package cli

import (
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tenure-ssa/tenure/cmd/internal/store"
)

// maxName is the length of the longest name that a server takes, in bytes.
const maxName = 253

// identify returns the kind of the object that a document is about, where the
// object is, and the document with its namespace filled in. The error names the
// field that is wrong.
func (c *catalog) identify(tree map[string]any, namespace string) (*kind, store.Key, map[string]any, error) {
	fail := func(err error) (*kind, store.Key, map[string]any, error) { return nil, store.Key{}, nil, err }
	gvk, err := gvkOf(tree)
	if err != nil {
		return fail(err)
	}
	k, err := c.kind(gvk)
	if err != nil {
		return fail(err)
	}
	metadata, ok := tree["metadata"].(map[string]any)
	if !ok && tree["metadata"] != nil {
		return fail(fmt.Errorf(".metadata: expected an object, got %s", describe(tree["metadata"])))
	}
	name, err := text(metadata, ".metadata", "name")
	if err != nil {
		return fail(err)
	}
	if problems := validName(name); len(problems) > 0 {
		return fail(fmt.Errorf(".metadata.name: %q %s", name, strings.Join(problems, ", ")))
	}
	given, err := optionalText(metadata, ".metadata", "namespace")
	if err != nil {
		return fail(err)
	}
	key := store.Key{Group: k.Group, Kind: k.Kind, Name: name}
	if !k.namespaced {
		if given != "" {
			return fail(fmt.Errorf(".metadata.namespace: %s objects are in no namespace, got %q", k.GroupKind(), given))
		}
		return k, key, tree, nil
	}
	switch {
	case given == "" && namespace == "":
		key.Namespace = "default"
	case given == "":
		key.Namespace = namespace
	case namespace == "" || given == namespace:
		key.Namespace = given
	default:
		return fail(fmt.Errorf(".metadata.namespace: %q is not the namespace that was asked for, %q", given, namespace))
	}
	if problems := validation.IsDNS1123Label(key.Namespace); len(problems) > 0 {
		return fail(fmt.Errorf(".metadata.namespace: %q: %s", key.Namespace, problems[0]))
	}
	metadata = maps.Clone(metadata)
	metadata["namespace"] = key.Namespace
	tree = maps.Clone(tree)
	tree["metadata"] = metadata
	return k, key, tree, nil
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
