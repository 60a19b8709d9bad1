package applications

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/internal/planning/cluster"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/planning/place"
)

// Labels and annotations of the ApplySet specification (KEP-3659).
const (
	toolingAnnotation    = "applyset.kubernetes.io/tooling"
	namespacesAnnotation = "applyset.kubernetes.io/additional-namespaces"
	kindsAnnotation      = "applyset.kubernetes.io/contains-group-kinds"
	resourcesAnnotation  = "applyset.kubernetes.io/contains-group-resources" // kubectl replaces it by kindsAnnotation
	idLabel              = "applyset.kubernetes.io/id"
	memberLabel          = "applyset.kubernetes.io/part-of"
)

// ApplySet is a set of objects that are applied and pruned together. Its parent object names the kinds and the
// namespaces of the members. The members have a label with the ID of the parent.
type ApplySet struct {
	// Tooling is the name of the tool that manages the set.
	Tooling string
	// NotFound is the error that the parent does not exist yet; nil if it exists.
	NotFound   error
	id         string
	kinds      []schema.GroupVersionKind
	namespaces []string
}

func idOf(gk schema.GroupKind, namespace, name string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{name, namespace, gk.Kind, gk.Group}, ".")))
	return "applyset-" + base64.RawURLEncoding.EncodeToString(sum[:]) + "-v1"
}

// newApplySet returns an ApplySet whose parent does not exist yet. As parents, kubectl creates only Secrets and
// ConfigMaps.
func newApplySet(ref Ref) (*Application, error) {
	kinds := map[string]string{"secret": "Secret", "secrets": "Secret", "configmap": "ConfigMap",
		"configmaps": "ConfigMap", "cm": "ConfigMap"}
	in := ""
	if ref.Namespace != "" {
		in = " in namespace " + ref.Namespace
	}
	gk := schema.GroupKind{Kind: kinds[ref.Kind]}
	notFound := fmt.Errorf("%s %q %w%s", ref.Kind, ref.Name, cluster.ErrNotFound, in)
	if gk.Kind == "" || ref.Namespace == "" {
		return nil, notFound
	}
	return &Application{
		Source:   "the ApplySet " + document.Reference(gk, ref.Name),
		ApplySet: &ApplySet{id: idOf(gk, ref.Namespace, ref.Name), NotFound: notFound},
	}, nil
}

// readParent reads the description of the members of an ApplySet from its parent.
func readParent(gk schema.GroupKind, parent *unstructured.Unstructured) (*ApplySet, error) {
	annotations := parent.GetAnnotations()
	s := &ApplySet{id: idOf(gk, parent.GetNamespace(), parent.GetName()), Tooling: annotations[toolingAnnotation]}
	if i := strings.LastIndex(s.Tooling, "/"); i >= 0 {
		s.Tooling = s.Tooling[:i]
	}
	if id := parent.GetLabels()[idLabel]; id != s.id {
		return nil, fmt.Errorf("the label %s: expected %q, got %q", idLabel, s.id, id)
	}
	kinds, ok := annotations[kindsAnnotation]
	switch {
	case !ok && annotations[resourcesAnnotation] != "":
		return nil, fmt.Errorf("expected the annotation %s: kubectl writes it with the next apply", kindsAnnotation)
	case !ok:
		return nil, fmt.Errorf("expected the annotation %s, without which kubectl apply fails, too: set it with "+
			"kubectl annotate to the kinds of all members, as in ConfigMap,Deployment.apps", kindsAnnotation)
	}
	for kind := range strings.SplitSeq(kinds, ",") {
		if kind != "" {
			s.kinds = append(s.kinds, schema.ParseGroupKind(kind).WithVersion(""))
		}
	}
	for namespace := range strings.SplitSeq(annotations[namespacesAnnotation], ",") {
		if namespace != "" {
			s.namespaces = append(s.namespaces, namespace)
		}
	}
	if own := parent.GetNamespace(); own != "" && !slices.Contains(s.namespaces, own) {
		s.namespaces = append(s.namespaces, own)
	}
	return s, nil
}

// candidates returns a selection of the members.
func (s *ApplySet) candidates() place.Candidates {
	return place.Candidates{
		Kinds: s.kinds, Namespaces: s.namespaces, MustBeServed: true,
		Selector: labels.SelectorFromSet(labels.Set{memberLabel: s.id}),
	}
}

// Names reports whether the parent names the kind and the namespace of an object, so that the next prune finds it.
func (s *ApplySet) Names(t *place.Target) bool {
	isKind := func(k schema.GroupVersionKind) bool { return k.GroupKind() == t.Kind.GroupKind() }
	return slices.ContainsFunc(s.kinds, isKind) && (t.Namespace == "" || slices.Contains(s.namespaces, t.Namespace))
}

// mark returns the label of the members, which kubectl adds to an intent before it applies.
func (s *ApplySet) mark(tree map[string]any) (document.Marks, error) {
	if value, _, _ := unstructured.NestedFieldNoCopy(tree, "metadata", "labels", memberLabel); value != nil {
		return nil, errors.New(".metadata.labels: has " + memberLabel + " already")
	}
	return document.Marks{"labels": {memberLabel: s.id}}, nil
}
