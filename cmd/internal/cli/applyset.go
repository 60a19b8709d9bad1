package cli

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
	"github.com/tenure-ssa/tenure/cmd/internal/place"
)

// Labels and annotations of the ApplySet specification (KEP-3659).
const (
	applySetTooling    = "applyset.kubernetes.io/tooling"
	applySetNamespaces = "applyset.kubernetes.io/additional-namespaces"
	applySetKinds      = "applyset.kubernetes.io/contains-group-kinds"
	applySetID         = "applyset.kubernetes.io/id"
	applySetMember     = "applyset.kubernetes.io/part-of"
)

// applySet is a set of objects that are applied and pruned together. A parent object names the kinds and the
// namespaces of its members, which have a label with the ID of the parent.
type applySet struct {
	parent     string // as kubectl prints it
	id         string
	kinds      []schema.GroupVersionKind
	namespaces []string
}

// readApplySet reads the parent of a set, as kubectl apply --applyset does: it has to be kubectl's, by its label and
// its annotations. A Secret or ConfigMap that does not exist is the parent of a set without members.
func readApplySet(ctx context.Context, p place.Place, ref, namespace string) (*applySet, error) {
	resource, name, hasResource := strings.Cut(ref, "/")
	if !hasResource {
		resource, name = "secrets", ref
	}
	if resource == "" || name == "" {
		return nil, fmt.Errorf("expected [RESOURCE[.GROUP]/]NAME, got %q", ref)
	}
	t, err := findParent(ctx, p, resource, name, namespace)
	if err != nil {
		return nil, err
	}
	var gk schema.GroupKind
	switch {
	case t != nil:
		gk = t.Kind.GroupKind()
	case slices.Contains([]string{"secret", "secrets"}, resource):
		gk.Kind = "Secret"
	case slices.Contains([]string{"configmap", "configmaps", "cm"}, resource):
		gk.Kind = "ConfigMap"
	default:
		return nil, fmt.Errorf("%s not found: kubectl creates only Secrets and ConfigMaps as parents", ref)
	}
	isNamespaced := t == nil || t.Namespace != ""
	if isNamespaced && namespace == "" {
		return nil, fmt.Errorf("%s: the parent has a namespace: expected it with -n", ref)
	}
	if !isNamespaced {
		namespace = ""
	}
	s := &applySet{parent: place.Reference(gk, name)}
	sum := sha256.Sum256([]byte(strings.Join([]string{name, namespace, gk.Kind, gk.Group}, ".")))
	s.id = "applyset-" + base64.RawURLEncoding.EncodeToString(sum[:]) + "-v1"
	if t == nil {
		return s, nil
	}
	if err := s.readParent(&unstructured.Unstructured{Object: t.Stored().Object}); err != nil {
		return nil, fmt.Errorf("%s: %w", s.parent, err)
	}
	return s, nil
}

// findParent returns an object by its resource and name; nil if it does not exist.
func findParent(ctx context.Context, p place.Place, resource, name, namespace string) (*place.Target, error) {
	found, err := p.Find(ctx, place.Selection{Args: []string{resource + "/" + name}, Namespace: namespace})
	// Files find all of their objects.
	if _, ok := p.(*place.Files); ok {
		found = slices.DeleteFunc(slices.Clone(found), func(t *place.Target) bool {
			return t.Name != name || !isCalled(t.Kind.GroupKind(), resource) || t.Namespace != "" && t.Namespace != namespace
		})
	}
	switch {
	case err == nil && len(found) == 0 || errors.Is(err, cluster.ErrNotFound) || apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return found[0], nil
}

// isCalled reports whether a kind is called so, without a server that knows its names: by kind or regular plural.
func isCalled(gk schema.GroupKind, name string) bool {
	given := schema.ParseGroupResource(name)
	kind := strings.ToLower(gk.Kind)
	return (given.Resource == kind || given.Resource == kind+"s") && (given.Group == "" || given.Group == gk.Group)
}

// readParent reads what the parent says about its members.
func (s *applySet) readParent(parent *unstructured.Unstructured) error {
	annotations := parent.GetAnnotations()
	tooling, ok := annotations[applySetTooling]
	if !ok {
		return fmt.Errorf("expected the annotation %s: the object is not the parent of an ApplySet", applySetTooling)
	}
	if i := strings.LastIndex(tooling, "/"); i >= 0 {
		tooling = tooling[:i]
	}
	if tooling != kubectlManager {
		return fmt.Errorf("expected an ApplySet of kubectl, by the annotation %s", applySetTooling)
	}
	if id := parent.GetLabels()[applySetID]; id != s.id {
		return fmt.Errorf("the label %s: expected %q, got %q", applySetID, s.id, id)
	}
	kinds, ok := annotations[applySetKinds]
	if !ok {
		return fmt.Errorf("expected the annotation %s: kubectl writes it with the next apply", applySetKinds)
	}
	for kind := range strings.SplitSeq(kinds, ",") {
		if kind != "" {
			s.kinds = append(s.kinds, schema.ParseGroupKind(kind).WithVersion(""))
		}
	}
	for namespace := range strings.SplitSeq(annotations[applySetNamespaces], ",") {
		if namespace != "" {
			s.namespaces = append(s.namespaces, namespace)
		}
	}
	if own := parent.GetNamespace(); own != "" && !slices.Contains(s.namespaces, own) {
		s.namespaces = append(s.namespaces, own)
	}
	return nil
}

// addMembers gives intents the label of the members, as kubectl does before it applies them.
func (s *applySet) addMembers(docs []manifest.Document) error {
	for i := range docs {
		if docs[i].Err != nil {
			continue
		}
		metadata, ok := docs[i].Tree["metadata"].(map[string]any)
		of, isMap := metadata["labels"].(map[string]any)
		if !ok || !isMap && metadata["labels"] != nil {
			continue // its plan says what is wrong
		}
		if _, ok := of[applySetMember]; ok {
			return docs[i].Wrap(fmt.Errorf(".metadata.labels: has %s already", applySetMember))
		}
		tree, metadata, of := maps.Clone(docs[i].Tree), maps.Clone(metadata), maps.Clone(of)
		if of == nil {
			of = map[string]any{}
		}
		of[applySetMember], metadata["labels"], tree["metadata"] = s.id, of, metadata
		docs[i].Tree = tree
	}
	return nil
}

// limit limits what can be pruned to the members of the set.
func (s *applySet) limit(c *place.Candidates) {
	c.Kinds, c.Namespaces, c.MustBeServed = s.kinds, s.namespaces, true
	c.Selector = labels.SelectorFromSet(labels.Set{applySetMember: s.id})
}
