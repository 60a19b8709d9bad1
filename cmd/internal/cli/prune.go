package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/cmd/internal/view"
	"github.com/tenure-ssa/tenure/internal/planning/cluster"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/managedfields"
)

// pruneFlags are the flags of what an apply with --prune would delete, as kubectl has them.
type pruneFlags struct {
	prune    bool
	all      bool
	kinds    []string
	applySet string // the parent's name
}

func (f *pruneFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.prune, "prune", false,
		"also list the objects that are not in the input any more; needs -l, --all or --applyset")
	flags.BoolVar(&f.all, "all", false, "prune objects with any labels")
	flags.StringArrayVar(&f.kinds, "prune-allowlist", nil,
		"prune only objects of the kind `GROUP/VERSION/KIND`, such as core/v1/ConfigMap; may be given several times")
	flags.StringVar(&f.applySet, "applyset", "",
		"prune the members of an ApplySet, whose `PARENT` is named as [RESOURCE[.GROUP]/]NAME; a Secret without a resource")
}

// check returns what can be pruned, without the namespaces; ok is false without --prune.
func (f *pruneFlags) check(selector string) (c place.Candidates, ok bool, err error) {
	switch {
	case !f.prune && (f.all || len(f.kinds) > 0 || f.applySet != ""):
		return c, false, errors.New("--all, --prune-allowlist and --applyset need --prune")
	case !f.prune:
		return c, false, nil
	case f.applySet != "" && (selector != "" || f.all || len(f.kinds) > 0):
		return c, false, errors.New("--applyset cannot be used with -l, --all or --prune-allowlist")
	case f.applySet != "":
		return c, true, nil
	case f.all == (selector != ""):
		return c, false, errors.New("--prune: expected -l, --all or --applyset")
	}
	if c.Selector, err = labels.Parse(selector); err != nil {
		return c, false, fmt.Errorf("-l: %w", err)
	}
	c.Kinds = place.PrunedKinds
	if len(f.kinds) > 0 {
		c.Kinds = nil
	}
	for _, text := range f.kinds {
		parts := strings.Split(text, "/")
		if len(parts) != 3 || parts[1] == "" || parts[2] == "" {
			return c, false, fmt.Errorf("--prune-allowlist: expected GROUP/VERSION/KIND, got %q", text)
		}
		if parts[0] == "core" {
			parts[0] = ""
		}
		c.Kinds = append(c.Kinds, schema.GroupVersionKind{Group: parts[0], Version: parts[1], Kind: parts[2]})
	}
	return c, true, nil
}

// pruned returns the objects that were applied and are not in the input: the members of the ApplySet; without one,
// those with the annotation of kubectl apply, and those with an Apply entry of the manager.
func pruned(
	ctx context.Context, p place.Place, c place.Candidates, set *applySet, manager string,
) ([]view.Pruned, error) {
	if set != nil {
		set.limit(&c)
	} else {
		c.Namespaces = place.Namespaces(c.Except)
	}
	targets, err := p.Candidates(ctx, c)
	var out []view.Pruned
	for _, t := range targets {
		if set != nil {
			out = append(out, view.Pruned{Target: t, ApplySet: set.parent})
		} else if by := appliedBy(t, manager); by != "" {
			out = append(out, view.Pruned{Target: t, By: by})
		}
	}
	slices.SortFunc(out, func(a, b view.Pruned) int { // what takes others with it is seen first
		return cmp.Or(cmp.Compare(severity(a), severity(b)), cmp.Compare(a.Reference(), b.Reference()),
			cmp.Compare(a.Namespace, b.Namespace))
	})
	return out, err
}

// severity orders deletions, the worst first.
func severity(p view.Pruned) int {
	switch {
	case p.Kind.GroupKind() == place.NamespaceKind || p.Kind.GroupKind() == place.DefinitionKind:
		return 0
	case p.Takes() != "":
		return 1
	}
	return 2
}

// appliedBy returns who applied an object: kubectl apply, by the annotation, or the manager; empty for neither.
func appliedBy(t *place.Target, manager string) string {
	object := &unstructured.Unstructured{Object: t.Object}
	if _, ok := object.GetAnnotations()[corev1.LastAppliedConfigAnnotation]; ok {
		return "kubectl apply"
	}
	list, err := managedfields.Read(object)
	if err == nil && list.Get(managedfields.KeyOf(manager, metav1.ManagedFieldsOperationApply, "", "")) != nil {
		return manager
	}
	return ""
}

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
	s := &applySet{parent: document.Reference(gk, name)}
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
	found, err := place.Find(ctx, p, place.Selection{Args: []string{resource + "/" + name}, Namespace: namespace})
	switch {
	case err == nil && len(found) == 0 || errors.Is(err, cluster.ErrNotFound) || apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return found[0], nil
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
func (s *applySet) addMembers(docs []document.Document) error {
	for i := range docs {
		if docs[i].Err != nil {
			continue
		}
		docs[i] = docs[i].Unpacked()
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
		docs[i] = docs[i].Packed()
	}
	return nil
}

// limit limits what can be pruned to the members of the set.
func (s *applySet) limit(c *place.Candidates) {
	c.Kinds, c.Namespaces, c.MustBeServed = s.kinds, s.namespaces, true
	c.Selector = labels.SelectorFromSet(labels.Set{applySetMember: s.id})
}
