package applications

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// helmRelease is the annotation with the name of the Helm release whose templates contain an object.
const helmRelease = "meta.helm.sh/release-name"

// argoTracking is the annotation with the name of the Argo CD Application that an object belongs to, and with the
// kind and name of the object.
const argoTracking = "argocd.argoproj.io/tracking-id"

// argoLabels are the labels that may contain the name of the Application: the default label, and the label that Argo CD
// recommends because no chart sets it. Argo CD is configured to set the annotation, a label, or both.
var argoLabels = []string{"app.kubernetes.io/instance", "argocd.argoproj.io/instance"}

// marked says, by field manager, which labels and annotations a tool adds to each object before it applies. The
// documents lack these labels and annotations. A plan that does not add them would report that the next apply removes
// them.
var marked = map[string]map[string][]string{
	"kustomize-controller": {"labels": ownerLabels("kustomize.toolkit.fluxcd.io")},
	"flux-operator": {
		"labels": slices.Concat(ownerLabels("resourceset.fluxcd.controlplane.io"), ownerLabels("fluxcd.controlplane.io")),
	},
	"helm-controller": {
		"labels":      append(ownerLabels(helmReleaseKind.Group), "app.kubernetes.io/managed-by"),
		"annotations": {helmRelease, "meta.helm.sh/release-namespace"},
	},
	"helm": {
		"labels":      {"app.kubernetes.io/managed-by"},
		"annotations": {helmRelease, "meta.helm.sh/release-namespace"},
	},
	"argocd-controller": {
		"labels": argoLabels, "annotations": {argoTracking, "argocd.argoproj.io/installation-id"},
	},
}

// ownerLabels returns the labels with the name and the namespace of a Flux object.
func ownerLabels(prefix string) []string { return []string{prefix + "/name", prefix + "/namespace"} }

// Mark adds to an intent the labels and annotations that the tool of its manager adds before it applies. The labels of
// an ApplySet and of a Flux object get their values from app, the application of the intent; app may be nil. All other
// labels and annotations get their values from the live object, but only if the manager owns them there and the
// document lacks them.
func Mark(w *place.Desired, app *Application) (err error) {
	marks := document.Marks{}
	if app != nil && app.ApplySet != nil {
		if marks, err = app.ApplySet.mark(w.Tree); err != nil {
			return err
		}
	}
	keys := marked[w.Manager]
	live, owned := &unstructured.Unstructured{Object: w.Stored().Object}, ownedBy(w)
	for field, found := range map[string]labels.Set{"labels": live.GetLabels(), "annotations": live.GetAnnotations()} {
		for _, key := range keys[field] {
			given, _, _ := unstructured.NestedFieldNoCopy(w.Tree, "metadata", field, key)
			value, ok := found[key]
			path := fieldpath.Path{
				fieldpath.FieldElement("metadata"), fieldpath.FieldElement(field), fieldpath.FieldElement(key),
			}
			switch name := app.ownerOf(key); {
			case field == "labels" && name != "":
				value = name
			case !ok || given != nil || !owned.Has(path) || isOfManifest(field, key, value, live):
				continue
			}
			if marks[field] == nil {
				marks[field] = labels.Set{}
			}
			marks[field][key] = value
		}
	}
	if len(marks) > 0 {
		w.Mark(marks)
	}
	return nil
}

// isOfManifest reports whether the value of one of Argo CD's labels comes from a manifest. Argo CD itself writes the
// same name into the label and into its annotation, cut off in the label. So a label with another name comes from a
// manifest.
func isOfManifest(field, key, value string, live *unstructured.Unstructured) bool {
	id := live.GetAnnotations()[argoTracking]
	name, _, _ := strings.Cut(id, ":")
	return field == "labels" && slices.Contains(argoLabels, key) && id != "" && value != labelOf(name)
}

// labelOf returns the value of Argo CD's label for a name: a label has at most 63 characters, and ends in a letter or
// digit.
func labelOf(name string) string {
	if len(name) > validation.LabelValueMaxLength {
		return strings.TrimRight(name[:validation.LabelValueMaxLength], "-_.")
	}
	return name
}

// ownedBy returns the fields that the manager of an intent owns in the live object.
func ownedBy(w *place.Desired) (owned *fieldpath.Set) {
	if w.Object == nil || marked[w.Manager] == nil {
		return nil
	}
	entries, _ := managedfields.Read(place.Wrap(w.Object)) // the plan reports an error
	for i := range entries {
		if e := &entries[i]; e.Manager == w.Manager && e.Subresource == "" {
			owned = owned.Union(e.Owned())
		}
	}
	return owned
}

// ownerOf returns the value that a label of Flux has on the objects of the application; "" if it has no such label.
func (a *Application) ownerOf(label string) string {
	if a != nil {
		for _, owner := range a.owner {
			if owner[0] == label {
				return owner[1]
			}
		}
	}
	return ""
}

// notTracked returns the reason why Argo CD does not delete an object of an Application: the object names another
// Application. It returns "" if the object names this Application. It also returns "" if the object names no
// Application, because Argo CD may be configured to use another label.
func (a *Application) notTracked(u *unstructured.Unstructured) string {
	if id, ok := u.GetAnnotations()[argoTracking]; ok {
		if name, _, _ := strings.Cut(id, ":"); slices.Contains(a.instances, name) {
			return ""
		}
		return "the annotation " + argoTracking + " does not name " + a.title
	}
	var others []string
	for _, key := range argoLabels {
		value, ok := u.GetLabels()[key]
		isNamed := func(name string) bool { return labelOf(name) == value }
		if slices.ContainsFunc(a.instances, isNamed) {
			return ""
		}
		if ok {
			others = append(others, key)
		}
	}
	if others == nil {
		return ""
	}
	return "the label " + strings.Join(others, " or ") + " does not name " + a.title
}
