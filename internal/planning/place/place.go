// Package place reads and writes objects in files, in a store, or in a cluster. A store is like a cluster whose API
// server runs in this process.
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

// Place holds live objects: files, a store, or a cluster. Concurrent calls of Move, Apply and Reload are safe if they
// are for different targets. Other methods must not be called concurrently.
type Place interface {
	// String returns the name of the place for messages.
	String() string
	// Live returns the target of an intent, and the intent with its namespace. The target's object is nil if it does
	// not exist.
	Live(ctx context.Context, intent map[string]any) (*Target, map[string]any, error)
	// Prefetch reads the live objects of many intents at once, for the following calls of Live.
	Prefetch(ctx context.Context, intents []map[string]any, concurrency int)
	// Visit calls see with each selected object as soon as it is read. The error joins the errors of objects that
	// could not be read.
	Visit(ctx context.Context, s Selection, see func(*Target)) error
	// Objects returns the objects of references, in order. A target's object is nil if it does not exist. Objects
	// that could not be read are omitted; the error joins their errors.
	Objects(ctx context.Context, refs []Reference, concurrency int) ([]*Target, error)
	// Kinds returns the kinds with the given names, as users write them; without names, all kinds that can be listed.
	// For files, it returns none. If some API groups can't be discovered, Kinds returns the other kinds and an error.
	Kinds(ctx context.Context, names ...string) ([]cluster.Kind, error)
	// IsServed reports whether a version of a kind is served or known.
	IsServed(gvk schema.GroupVersionKind) bool
	// Candidates returns the objects that could be pruned. It may return objects and an error.
	Candidates(ctx context.Context, c Candidates) ([]*Target, error)
	// Reload reads the object of a target again.
	Reload(ctx context.Context, t *Target) error
	// Move stores the result of a move. It returns [ErrStale] if the object has changed since it was read.
	Move(ctx context.Context, t *Target, m Moved) error
	// Apply applies an intent to a target.
	Apply(ctx context.Context, t *Target, intent map[string]any, o cluster.WriteOptions) (map[string]any, error)
	// Update replaces the object of a target, or creates it.
	Update(ctx context.Context, t *Target, tree map[string]any, o cluster.WriteOptions) (map[string]any, error)
	// Delete deletes the object of a target. It calls done for the object, and for each object that is deleted with
	// it. It returns [ErrStale] if the object has changed since it was read.
	Delete(ctx context.Context, t *Target, done func(*Target)) error
	// Defined must be called after a CustomResourceDefinition was written, so that later documents can use its kind.
	// In a dry run, the definition was not stored.
	Defined(tree map[string]any, isDryRun bool) error
	// Define adds a kind that the input defines, or replaces it.
	Define(d *Definition)
	// InOrder reports whether only documents after a definition can use its kind.
	InOrder() bool
	Close() error
}

// ErrStale reports that an object has changed since it was read.
var ErrStale = errors.New("the object has changed since it was read")

// Selection selects objects.
type Selection = cluster.Selection

// Find returns the selected objects. It may return objects and an error.
func Find(ctx context.Context, p Place, s Selection) (out []*Target, err error) {
	err = p.Visit(ctx, s, func(t *Target) { out = append(out, t) })
	return out, err
}

// namesObjects reports whether arguments contain names of objects, not only of kinds.
func namesObjects(args []string) bool {
	return len(args) > 1 || len(args) == 1 && strings.Contains(args[0], "/")
}

// identify returns the name and namespace of a document's object, and the document with that namespace. If the document
// has no namespace, identify uses the argument asked. If asked is empty, too, identify uses the result of otherwise().
// Errors name the invalid field; if the error is about the namespace, the name is returned too.
func identify(k *Kind, tree map[string]any, asked string, otherwise func() (string, error)) (
	name, namespace string, _ map[string]any, err error,
) {
	metadata, ok := tree["metadata"].(map[string]any)
	if !ok && tree["metadata"] != nil {
		return "", "", nil, fmt.Errorf(".metadata: expected an object, got %s", document.Describe(tree["metadata"]))
	}
	if name, err = document.Text(metadata, ".metadata", "name"); err == nil {
		err = checkNames(k.GroupVersionKind.Kind, name, "")
	}
	if err != nil {
		return "", "", nil, err
	}
	if namespace, err = document.OptionalText(metadata, ".metadata", "namespace"); err != nil {
		return name, "", nil, err
	}
	switch {
	case !k.namespaced && namespace != "":
		return name, "", nil, fmt.Errorf(".metadata.namespace: %s is cluster-scoped, got namespace %q", k.GroupKind(),
			namespace)
	case !k.namespaced:
		return name, "", tree, nil
	case namespace != "" && asked != "" && namespace != asked:
		return name, "", nil, fmt.Errorf(".metadata.namespace: got %q, expected the namespace of the command line, %q",
			namespace, asked)
	}
	if namespace = cmp.Or(namespace, asked); namespace == "" {
		if namespace, err = otherwise(); err != nil {
			return name, "", nil, err
		}
	}
	if err = checkNames(k.GroupVersionKind.Kind, name, namespace); err != nil {
		return name, "", nil, err
	}
	metadata, tree = maps.Clone(metadata), maps.Clone(tree)
	metadata["namespace"], tree["metadata"] = namespace, metadata
	return name, namespace, tree, nil
}

// checkNames returns an error for names that no object can have. It is called for all objects, from inputs, files,
// stores and clusters, so that their names can safely be parts of URLs, paths and commands.
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
