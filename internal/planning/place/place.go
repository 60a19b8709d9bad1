// Package place reads and writes objects where they are: in files, in a store, or in a cluster. A store is a
// cluster whose API server runs in this process.
package place

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/tenure-ssa/tenure/internal/planning/cluster"
	"github.com/tenure-ssa/tenure/internal/planning/document"
)

// Place is where live objects are: files, a store, or a cluster. Move, Apply and Reload of different
// targets may run at the same time; the others may not.
type Place interface {
	// String returns the name of the place for messages.
	String() string
	// Live returns the target of an intent, and the intent with its namespace. The object
	// of the target is nil if it does not exist.
	Live(ctx context.Context, intent map[string]any) (*Target, map[string]any, error)
	// Prefetch reads the live objects of intents, many at once, for the calls of Live that follow.
	Prefetch(ctx context.Context, intents []map[string]any, concurrency int)
	// Visit calls see with the objects of a selection as they are read. The error is about others.
	Visit(ctx context.Context, s Selection, see func(*Target)) error
	// Objects returns the objects of references, in order. The object of a target is nil if it does not exist. References
	// that could not be read are left out, and in the error.
	Objects(ctx context.Context, refs []Reference, concurrency int) ([]*Target, error)
	// Kinds returns the kinds that people call by some names, or without names those that can be listed; none for
	// files. It returns kinds along with an error for API groups that can't be discovered.
	Kinds(ctx context.Context, names ...string) ([]cluster.Kind, error)
	// IsServed reports whether a kind is known at a version.
	IsServed(gvk schema.GroupVersionKind) bool
	// Candidates returns the objects that could be pruned. It may return some along with an error.
	Candidates(ctx context.Context, c Candidates) ([]*Target, error)
	// Reload reads a target again.
	Reload(ctx context.Context, t *Target) error
	// Move stores the result of a move. The error is [ErrStale] if the object has changed
	// since it was read.
	Move(ctx context.Context, t *Target, m Moved) error
	// Apply applies an intent to a target.
	Apply(ctx context.Context, t *Target, intent map[string]any, o cluster.WriteOptions) (map[string]any, error)
	// Update replaces the object of a target, or creates it.
	Update(ctx context.Context, t *Target, tree map[string]any, o cluster.WriteOptions) (map[string]any, error)
	// Delete deletes the object of a target as it was read. It calls done for it, and for what is deleted with it. The
	// error is [ErrStale] if it has changed since.
	Delete(ctx context.Context, t *Target, done func(*Target)) error
	// Defined is called after a CustomResourceDefinition was written: the documents after it can use its kind. In a dry
	// run, it was not stored.
	Defined(tree map[string]any, isDryRun bool) error
	// Define adds or replaces a kind that the input defines.
	Define(d *Definition)
	// InOrder reports whether only the documents after a definition can use its kind.
	InOrder() bool
	Close() error
}

// ErrStale reports that an object has changed since a move was computed.
var ErrStale = errors.New("the object has changed since it was read")

// Selection selects objects.
type Selection = cluster.Selection

// Find returns the objects of a selection. It may return some along with an error.
func Find(ctx context.Context, p Place, s Selection) (out []*Target, err error) {
	err = p.Visit(ctx, s, func(t *Target) { out = append(out, t) })
	return out, err
}

// namesObjects reports whether the arguments name objects, and not only kinds.
func namesObjects(args []string) bool {
	return len(args) > 1 || len(args) == 1 && strings.Contains(args[0], "/")
}

// identify returns the name and namespace of a document's object, and the document with its namespace.
// The namespace of a document without one is asked, or else the result of otherwise. An error names the
// invalid field.
func identify(k *Kind, tree map[string]any, asked string, otherwise func() (string, error)) (
	name, namespace string, _ map[string]any, err error,
) {
	metadata, ok := tree["metadata"].(map[string]any)
	if !ok && tree["metadata"] != nil {
		return "", "", nil, fmt.Errorf(".metadata: expected an object, got %s", document.Describe(tree["metadata"]))
	}
	if name, err = document.Text(metadata, ".metadata", "name"); err != nil {
		return "", "", nil, err
	}
	if namespace, err = document.OptionalText(metadata, ".metadata", "namespace"); err != nil {
		return "", "", nil, err
	}
	switch {
	case !k.namespaced && namespace != "":
		return "", "", nil, fmt.Errorf(".metadata.namespace: %s is cluster-scoped, got namespace %q", k.GroupKind(),
			namespace)
	case !k.namespaced:
		return name, "", tree, checkNames(k.GroupVersionKind.Kind, name, "")
	case namespace != "" && asked != "" && namespace != asked:
		return "", "", nil, fmt.Errorf(".metadata.namespace: got %q, expected the namespace of the command line, %q",
			namespace, asked)
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
		if problems := rest.IsValidPathSegmentName(part[1]); len(problems) > 0 {
			return fmt.Errorf("%s: %q %s", part[0], part[1], strings.Join(problems, ", "))
		}
	}
	if problems := validation.IsDNS1123Label(namespace); namespace != "" && len(problems) > 0 {
		return fmt.Errorf(".metadata.namespace: %q: %s", namespace, problems[0])
	}
	return nil
}
