// Package builtin implements the API resources that every Kubernetes API server has, with
// the Go types of k8s.io/api.
//
// Which resources there are is generated from the discovery documents of a kube-apiserver
// (resources.json, gen). How their objects behave is written down in tables and type
// switches, one file for each subject:
//
//	groups.go       the API groups and resources; storage versions
//	scheme.go       Go types and serializers, by group version
//	kind.go         kind: decoding, encoding and field managers
//	strategy.go     kind: the create, update and delete strategy; traits of kinds
//	prepare*.go     what PrepareForCreate and PrepareForUpdate do for single kinds
//	crd.go          validation of CustomResourceDefinitions
//	defaults*.go    defaulting
//	convert*.go     conversion between versions
//	columns*.go     columns of Tables, as kubectl get shows them
//	warnings*.go    warnings for clients
//	selectable.go   fields of field selectors
//	scale.go        the scale subresource
package builtin

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

//go:generate go run ./gen

//go:embed resources.json
var resourcesJSON []byte

// Options configure the built-in kinds.
type Options struct {
	Now func() time.Time
	// ServiceClusterIPRange is the range of the cluster IPs that Services get; the default is
	// [DefaultServiceClusterIPRange].
	ServiceClusterIPRange netip.Prefix
}

// DefaultServiceClusterIPRange is the range that kubeadm sets.
var DefaultServiceClusterIPRange = netip.MustParsePrefix("10.96.0.0/12")

// Groups returns the built-in API groups, the core group first. Each call returns new
// resources.
func Groups(options Options) []resources.Group {
	var groups []resources.Group
	if err := json.Unmarshal(resourcesJSON, &groups); err != nil {
		panic(fmt.Sprintf("builtin: resources.json: %v", err))
	}
	for _, g := range groups {
		for _, v := range g.Versions {
			for _, r := range v.Resources {
				r.Group, r.Version = g.Name, v.Name
				complete(r)
				r.Open = func() (resources.Strategy, error) { return open(r, options) }
			}
		}
	}
	return groups
}

// storageVersions are the storage versions of resources that are stored in another version,
// or in another group, than they are served.
var storageVersions = map[schema.GroupVersionKind]schema.GroupVersionKind{
	{Group: "autoscaling", Version: "v1", Kind: "HorizontalPodAutoscaler"}: {Group: "autoscaling", Version: "v2",
		Kind: "HorizontalPodAutoscaler"},
	{Group: "events.k8s.io", Version: "v1", Kind: "Event"}: {Version: "v1", Kind: "Event"},
}

// deprecationWarnings are the warnings for clients of deprecated kinds.
var deprecationWarnings = map[schema.GroupVersionKind]string{
	{Version: "v1", Kind: "ComponentStatus"}: "v1 ComponentStatus is deprecated in v1.19+",
	{Version: "v1",
		Kind: "Endpoints"}: "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
}

// complete sets the fields of a resource that resources.json does not have.
func complete(r *resources.Resource) {
	r.Stored = r.GVK()
	if stored, ok := storageVersions[r.Stored]; ok {
		r.Stored = stored
	}
	if slices.Contains(r.Verbs, "get") {
		r.Prefix = resources.PrefixOf(r.Stored.Group, r.Plural)
	}
	r.ReturnDeletedObject = kindTraits[r.Group][r.Kind].returnDeletedObject
	r.Deprecated = deprecationWarnings[r.GVK()]
	for i := range r.Subresources {
		if k := &r.Subresources[i].Kind; k.Version == "" {
			k.Group, k.Version = r.Group, r.Version
		}
	}
}
