// Package applications reads which objects belong to an application, from the records of its tool: the inventory of a
// Flux object, the resources of an Argo CD Application, the manifest of a Helm release, or the parent of an ApplySet.
//
//	ref, err := applications.Parse("kustomization/flux-system/apps", "")
//	...
//	app, err := applications.Read(ctx, cluster, ref)
//	...
//	objects, missing, err := app.Objects(ctx, cluster, 16)
//
// From these records, the package returns only the names of objects. It never returns other content of a Helm release,
// which may be secret.
package applications

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/internal/planning/cluster"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/internal/planning/releases"
)

// Ref names an application: a Helm release, or an object with an inventory.
type Ref struct {
	// Kind is [Helm], or a resource as in the arguments of kubectl, such as kustomization or applications.argoproj.io.
	Kind string
	// An empty Namespace means the kubeconfig's namespace, unless the kind is cluster-scoped.
	Namespace, Name string
}

// Helm is the Kind of a Helm release, which is stored in Secrets.
const Helm = "helm"

// Parse parses KIND/NAME or KIND/NAMESPACE/NAME. The argument namespace is used if the text contains no namespace.
func Parse(text, namespace string) (Ref, error) {
	parts := strings.Split(text, "/")
	if len(parts) == 2 {
		parts = slices.Insert(parts, 1, namespace)
	}
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" && strings.Count(text, "/") > 1 || parts[2] == "" {
		return Ref{}, fmt.Errorf("expected KIND/NAME or KIND/NAMESPACE/NAME, as in kustomization/apps or helm/shop, got %q",
			text)
	}
	return Ref{strings.ToLower(parts[0]), parts[1], parts[2]}, nil
}

// String returns the reference in the format of Parse.
func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Kind + "/" + r.Name
	}
	return r.Kind + "/" + r.Namespace + "/" + r.Name
}

// Application is an application with the names of its objects.
type Application struct {
	// Source describes what was read, as in "the inventory of kustomization.kustomize.toolkit.fluxcd.io/apps".
	Source string
	// Elsewhere is empty if the application applies to its own cluster. Otherwise, it names the other cluster by the
	// destination of an Argo CD Application, or by the Secret or ConfigMap with the kubeconfig of a Flux object.
	Elsewhere string
	// ApplySet is nil if the application is not an ApplySet.
	ApplySet *ApplySet
	// keeps is the reason why the application never deletes its objects; empty if it may delete them.
	keeps string
	// owner has the keys and values of the labels with which Flux marks all objects of the application. Flux deletes
	// only objects that have all of these labels, unless the application is a HelmRelease.
	owner [][2]string
	// isRelease is true for a HelmRelease. Its inventory contains the definitions in crds/ of the chart, too.
	isRelease bool
	// title is the name of an Argo CD Application for messages. Its objects refer to the Application by one of the
	// names in instances.
	title     string
	instances []string
	// names are the names of the objects, without duplicates; empty for an ApplySet.
	names []place.Reference
	// hooks are the objects that Argo CD reports as hooks.
	hooks map[place.Key]bool
}

// Read reads the inventory of an application in a place.
func Read(ctx context.Context, p place.Place, ref Ref) (*Application, error) {
	if ref.Kind == Helm {
		return readRelease(ctx, p, ref)
	}
	found, err := place.Find(ctx, p, place.Selection{Args: []string{ref.Kind + "/" + ref.Name}, Namespace: ref.Namespace})
	isMissing := err == nil && len(found) == 0 || errors.Is(err, cluster.ErrNotFound) || apierrors.IsNotFound(err)
	switch {
	case isMissing:
		return newApplySet(ref)
	case err != nil:
		return nil, err
	}
	t := found[0]
	a, u := &Application{Source: t.Reference()}, &unstructured.Unstructured{Object: t.Object}
	inventory, isInventory, _ := unstructured.NestedMap(u.Object, "status", "inventory")
	gk := t.Kind.GroupKind()
	switch {
	case isInventory:
		a.Source = "the inventory of " + a.Source
		err = a.readInventory(inventory)
		if prune, found, _ := unstructured.NestedBool(u.Object, "spec", "prune"); found && !prune {
			a.keeps = ".spec.prune of " + t.Reference() + " is false"
		}
	case gk == helmReleaseKind && kubeConfigOf(u) != "": // the release is in the other cluster
	case gk == helmReleaseKind:
		if a, err = readHelmRelease(ctx, p, u); err != nil {
			return nil, err
		}
	case gk == argoKind:
		a.Source = "the resources of " + a.Source
		err = a.readResources(u)
	case u.GetAnnotations()[toolingAnnotation] != "":
		a.Source = "the ApplySet " + a.Source
		a.ApplySet, err = readParent(gk, &unstructured.Unstructured{Object: t.Stored().Object})
	case fluxGroups[gk.Group]:
		err = errors.New("it has no status.inventory yet")
	default:
		err = fmt.Errorf("expected status.inventory, as Flux has it, or the annotation %s of an ApplySet's parent",
			toolingAnnotation)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Title(), err)
	}
	if fluxGroups[gk.Group] {
		a.Elsewhere, a.isRelease = kubeConfigOf(u), gk == helmReleaseKind
	}
	if prefix := fluxOwners[gk]; prefix != "" {
		a.owner = [][2]string{{prefix + "/name", t.Name}, {prefix + "/namespace", t.Namespace}}
	}
	return a, nil
}

// IsNew reports whether the application is an ApplySet whose parent does not exist yet.
func (a *Application) IsNew() bool { return a.ApplySet != nil && a.ApplySet.NotFound != nil }

// add adds an object's name, unless the application already has this object at this or another version.
func (a *Application) add(r place.Reference) {
	if !slices.ContainsFunc(a.names, func(known place.Reference) bool { return known.Key() == r.Key() }) {
		a.names = append(a.names, r)
	}
}

// Members returns the names of the objects. For an ApplySet, these are the existing members. For other applications,
// these are all names in the inventory, even of objects that do not exist.
func (a *Application) Members(ctx context.Context, p place.Place, concurrency int) ([]place.Reference, error) {
	if a.ApplySet == nil {
		return slices.Clone(a.names), nil
	}
	objects, _, err := a.Objects(ctx, p, concurrency)
	var out []place.Reference
	for _, t := range objects {
		out = append(out, place.Reference{GroupVersionKind: t.Kind.GroupVersionKind, Namespace: t.Namespace, Name: t.Name})
	}
	return out, err
}

// Objects returns the existing objects, the names of objects in the inventory that do not exist, and an error for
// objects that could not be read.
func (a *Application) Objects(
	ctx context.Context, p place.Place, concurrency int,
) (objects []*place.Target, missing []string, err error) {
	if a.ApplySet != nil {
		c := a.ApplySet.candidates()
		c.Concurrency = concurrency
		objects, err = p.Candidates(ctx, c)
		return objects, nil, err
	}
	all, err := p.Objects(ctx, a.names, concurrency)
	for _, t := range all {
		if t.Object == nil {
			missing = append(missing, t.Title())
		} else {
			objects = append(objects, t)
		}
	}
	return objects, missing, err
}

// Kept returns the reason why the tool of the application does not delete an object that is no longer in the manifests;
// "" if the tool deletes the object. In an ApplySet, kubectl deletes all such objects.
func (a *Application) Kept(t *place.Target) string {
	if a.ApplySet != nil || a.keeps != "" {
		return a.keeps
	}
	u := &unstructured.Unstructured{Object: t.Stored().Object} // with the annotations of a Secret
	for _, values := range []map[string]string{u.GetAnnotations(), u.GetLabels()} {
		for _, key := range fluxKeeps {
			if strings.EqualFold(values[key], "disabled") {
				return key + ": disabled"
			}
		}
	}
	if option := keepOption(strings.Split(u.GetAnnotations()[argoOptions], ",")); option != "" {
		return argoOptions + ": " + option
	}
	switch hook := u.GetAnnotations()[argoHook]; {
	case hook != "" && hook != "Skip": // an object with the value Skip is not a hook
		return "it has the annotation " + argoHook
	case a.hooks[place.KeyOf(t)]:
		return "hook: true in " + a.Source
	}
	if releases.IsKept(t) {
		return "helm.sh/resource-policy: keep"
	}
	if a.isRelease && t.Kind.GroupKind() == place.DefinitionKind && u.GetAnnotations()[helmRelease] == "" {
		return "Helm never deletes the definitions in crds/ of a chart"
	}
	if a.instances != nil {
		return a.notTracked(u)
	}
	for _, label := range a.owner {
		if value := u.GetLabels()[label[0]]; value != label[1] && !a.isRelease {
			return fmt.Sprintf("the label %s: expected %q, got %q", label[0], label[1], value)
		}
	}
	return ""
}

// keepOption returns the sync option in options that keeps Argo CD from deleting an object, or from deleting it before
// a user has confirmed; "" if there is none.
func keepOption(options []string) string {
	for _, option := range options {
		if option = strings.TrimSpace(option); option == "Prune=false" || option == "Prune=confirm" {
			return option
		}
	}
	return ""
}

// Annotations of Argo CD: options for an object, and the phases of a sync in which a hook is applied. Argo CD does not
// prune hooks.
const (
	argoOptions = "argocd.argoproj.io/sync-options"
	argoHook    = "argocd.argoproj.io/hook"
)

// fluxKeeps are annotations and labels that, with the value disabled, keep Flux from deleting an object.
var fluxKeeps = []string{
	"kustomize.toolkit.fluxcd.io/prune", "kustomize.toolkit.fluxcd.io/reconcile",
	"fluxcd.controlplane.io/prune", "fluxcd.controlplane.io/reconcile",
}

// helmOwner is the value of the label "owner" on Secrets of Helm releases.
const helmOwner = "helm"

var (
	secretKind      = schema.GroupKind{Kind: "Secret"}
	helmReleaseKind = schema.GroupKind{Group: "helm.toolkit.fluxcd.io", Kind: "HelmRelease"}
	argoKind        = schema.GroupKind{Group: "argoproj.io", Kind: "Application"}
	fluxGroups      = map[string]bool{
		"kustomize.toolkit.fluxcd.io": true, helmReleaseKind.Group: true, "fluxcd.controlplane.io": true,
	}
	// fluxOwners are the prefixes of the labels with which Flux marks the objects of an application. If another object of
	// these kinds takes over a marked object, the labels change. Then only the new owner may delete the marked object.
	fluxOwners = map[schema.GroupKind]string{
		helmReleaseKind: helmReleaseKind.Group,
		{Group: "kustomize.toolkit.fluxcd.io", Kind: "Kustomization"}: "kustomize.toolkit.fluxcd.io",
		{Group: "fluxcd.controlplane.io", Kind: "ResourceSet"}:        "resourceset.fluxcd.controlplane.io",
		{Group: "fluxcd.controlplane.io", Kind: "FluxInstance"}:       "fluxcd.controlplane.io",
	}
	// listed are the kinds that List looks for.
	listed = []schema.GroupKind{
		{Group: "kustomize.toolkit.fluxcd.io", Kind: "Kustomization"}, helmReleaseKind, argoKind,
		{Group: "fluxcd.controlplane.io", Kind: "ResourceSet"}, {Group: "fluxcd.controlplane.io", Kind: "FluxInstance"},
	}
)

// IsRecord reports whether an object records the objects of an application.
func IsRecord(tree map[string]any) bool {
	u := &unstructured.Unstructured{Object: tree}
	gk := u.GroupVersionKind().GroupKind()
	return slices.Contains(listed, gk) || gk == secretKind && u.GetLabels()["owner"] == helmOwner
}

// List returns the applications in a namespace, or in all namespaces if namespace is empty, sorted. If some
// applications can't be read, it returns the other applications and an error.
func List(ctx context.Context, p place.Place, namespace string) (out []Ref, err error) {
	find := func(selector string, kinds ...schema.GroupKind) (found []*place.Target) {
		for _, gk := range kinds {
			if c := place.ClusterOf(p); c != nil && len(c.Client.Versions(gk)) == 0 {
				continue
			}
			s := place.Selection{Args: []string{document.Resource(gk)}, Selector: selector, Namespace: namespace,
				All: namespace == ""}
			targets, failed := place.Find(ctx, p, s)
			found, err = append(found, targets...), errors.Join(err, failed)
		}
		return found
	}
	for _, t := range find("", listed...) {
		out = append(out, Ref{strings.ToLower(t.Kind.Kind), t.Namespace, t.Name})
	}
	for _, t := range find(idLabel, schema.GroupKind{Kind: "Secret"}, schema.GroupKind{Kind: "ConfigMap"}) {
		out = append(out, Ref{strings.ToLower(t.Kind.Kind), t.Namespace, t.Name})
	}
	for _, t := range find("owner="+helmOwner, secretKind) {
		name := (&unstructured.Unstructured{Object: t.Object}).GetLabels()["name"]
		out = append(out, Ref{Helm, t.Namespace, name})
	}
	slices.SortFunc(out, func(a, b Ref) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return slices.Compact(out), err
}
