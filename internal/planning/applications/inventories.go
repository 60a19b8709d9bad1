package applications

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/internal/planning/place"
)

// readInventory reads status.inventory of a Flux object. An entry has a version v, and an id of the form
// NAMESPACE_NAME_GROUP_KIND, in which __ replaces a colon in the name.
func (a *Application) readInventory(inventory map[string]any) error {
	entries, _ := inventory["entries"].([]any)
	for i, entry := range entries {
		entry, _ := entry.(map[string]any)
		id, _ := entry["id"].(string)
		version, _ := entry["v"].(string)
		namespace, rest, _ := strings.Cut(id, "_")
		kindAt := strings.LastIndex(rest, "_")
		groupAt := strings.LastIndex(rest[:max(kindAt, 0)], "_")
		if groupAt < 1 || kindAt == len(rest)-1 || version == "" {
			return fmt.Errorf(".status.inventory.entries[%d]: expected the id NAMESPACE_NAME_GROUP_KIND and a version, got %q",
				i, id)
		}
		gvk := schema.GroupVersionKind{Group: rest[groupAt+1 : kindAt], Version: version, Kind: rest[kindAt+1:]}
		name := strings.ReplaceAll(rest[:groupAt], "__", ":")
		a.add(place.Reference{GroupVersionKind: gvk, Namespace: namespace, Name: name})
	}
	return nil
}

// readHelmRelease reads the Helm release of a HelmRelease that has no inventory.
func readHelmRelease(ctx context.Context, p place.Place, u *unstructured.Unstructured) (*Application, error) {
	history, _, _ := unstructured.NestedSlice(u.Object, "status", "history")
	if len(history) == 0 {
		return nil, fmt.Errorf("%s/%s: it has neither status.inventory nor status.history yet", u.GetKind(), u.GetName())
	}
	newest, _ := history[0].(map[string]any)
	name, _ := newest["name"].(string)
	storage, _, _ := unstructured.NestedString(u.Object, "status", "storageNamespace")
	if storage == "" {
		storage = u.GetNamespace()
	}
	return readRelease(ctx, p, Ref{Helm, storage, name})
}

// kubeConfigOf returns the name of the Secret or ConfigMap that selects the cluster to which a Flux object applies; ""
// if it applies to its own cluster.
func kubeConfigOf(u *unstructured.Unstructured) string {
	for _, field := range []string{"secretRef", "configMapRef"} {
		if name, _, _ := unstructured.NestedString(u.Object, "spec", "kubeConfig", field, "name"); name != "" {
			return name
		}
	}
	return ""
}

// readResources reads status.resources of an Argo CD Application.
func (a *Application) readResources(u *unstructured.Unstructured) error {
	resources, found, err := unstructured.NestedSlice(u.Object, "status", "resources")
	if err != nil {
		return errors.New(".status.resources: expected a list")
	}
	// If Argo CD has compared the Application but found no objects, it sets reconciledAt and omits the empty list.
	reconciledAt, _, _ := unstructured.NestedString(u.Object, "status", "reconciledAt")
	if !found && reconciledAt == "" {
		return errors.New("it has no status.resources yet")
	}
	a.title = "application.argoproj.io/" + u.GetName()
	a.instances = []string{u.GetName(), u.GetNamespace() + "_" + u.GetName()}
	a.hooks = map[place.Key]bool{}
	for i, r := range resources {
		r, _ := r.(map[string]any)
		text := func(name string) string { s, _ := r[name].(string); return s }
		if text("kind") == "" || text("name") == "" {
			return fmt.Errorf(".status.resources[%d]: expected a kind and a name", i)
		}
		gvk := schema.GroupVersionKind{Group: text("group"), Version: text("version"), Kind: text("kind")}
		name := place.Reference{GroupVersionKind: gvk, Namespace: text("namespace"), Name: text("name")}
		a.add(name)
		if r["hook"] == true {
			a.hooks[name.Key()] = true
		}
	}
	options, _, _ := unstructured.NestedStringSlice(u.Object, "spec", "syncPolicy", "syncOptions")
	if option := keepOption(options); option != "" {
		a.keeps = ".spec.syncPolicy.syncOptions has " + option
	}
	automated, isAutomated, _ := unstructured.NestedMap(u.Object, "spec", "syncPolicy", "automated")
	if isAutomated && automated["enabled"] != false && automated["prune"] != true && a.keeps == "" {
		a.keeps = ".spec.syncPolicy.automated of " + a.title + " lacks prune: true"
	}
	own := []string{"", "https://kubernetes.default.svc", "in-cluster"}
	for _, field := range []string{"server", "name"} {
		value, _, _ := unstructured.NestedString(u.Object, "spec", "destination", field)
		if !slices.Contains(own, value) {
			a.Elsewhere = value
		}
	}
	return nil
}
