// Package builtin serves the API resources that every Kubernetes API server has, with kube-apiserver's own REST
// storages.
//
// The list of resources is generated from the discovery documents of a kube-apiserver (resources.json, gen).
//
//	groups.go     the API groups and resources
//	storages.go   kube-apiserver's storages, which open with the first request to a group
//	core.go       the storages of the core group
//	endpoint.go   request scopes
//	options.go    how storages are opened: codecs, storage versions, defaults
//	allocator.go  cluster IPs and node ports
package builtin

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	restclient "k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/serviceaccount"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

//go:generate go run ./gen

//go:embed resources.json
var resourcesJSON []byte

// Options configure the built-in kinds.
type Options struct {
	// Open opens the storage of a resource.
	Open Opener
	// Default, if not nil, sets further defaults in objects at any version, in place.
	Default func(runtime.Object)
	// Tables have all served resources.
	Tables *resources.Current
	// Client is a client of this server.
	Client        *restclient.Config
	Authorizer    authorizer.Authorizer
	Authenticator authenticator.Request
	// Issuer issues tokens of ServiceAccounts. Audiences are the token audiences that the server accepts.
	Issuer    serviceaccount.TokenGenerator
	Audiences authenticator.Audiences
	Now       func() time.Time
	// ServiceClusterIPRange is the range of the cluster IPs of Services.
	ServiceClusterIPRange netip.Prefix
	// MaxBody limits the bodies of requests, in bytes.
	MaxBody int64
}

// DefaultServiceClusterIPRange is kubeadm's default range.
var DefaultServiceClusterIPRange = netip.MustParsePrefix("10.96.0.0/12")

// Groups returns the built-in API groups, the core group first. Each call returns new resources.
func Groups(options Options) []resources.Group {
	var groups []resources.Group
	for _, o := range openers(options) {
		groups = append(groups, o.served)
	}
	return groups
}

// openers returns the openers of the built-in groups, the core group first.
func openers(options Options) []*opener {
	var groups []resources.Group
	if err := json.Unmarshal(resourcesJSON, &groups); err != nil {
		panic(fmt.Sprintf("builtin: resources.json: %v", err))
	}
	var out []*opener
	for _, g := range groups {
		opener := &opener{served: g, options: options, names: map[schema.GroupVersionResource]bool{}}
		opener.info = sync.OnceValues(func() (genericapiserver.APIGroupInfo, error) { return opener.open(g.Name) })
		for _, v := range g.Versions {
			for _, r := range v.Resources {
				r.Group, r.Version = g.Name, v.Name
				complete(r)
				opener.names[r.GVR()] = true
				r.Open = func() (map[string]*resources.Endpoint, error) { return opener.endpoints(r) }
			}
		}
		out = append(out, opener)
	}
	return out
}

// storageVersions maps a served kind to the kind in the storage if they differ in version or group. For example, Events
// of events.k8s.io/v1 are stored as Events of v1.
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

// complete sets the fields of a resource that are not in resources.json.
func complete(r *resources.Resource) {
	r.Stored = r.GVK()
	if stored, ok := storageVersions[r.Stored]; ok {
		r.Stored = stored
	}
	if r.Allows("get", "") && r.Kind != "ComponentStatus" {
		r.Prefix = resources.PrefixOf(schema.GroupResource{Group: r.Stored.Group, Resource: r.Plural})
	}
	r.Deprecated = deprecationWarnings[r.GVK()]
	for i := range r.Subresources {
		if k := &r.Subresources[i].Kind; k.Version == "" {
			k.Group, k.Version = r.Group, r.Version
		}
	}
}

// An opener opens the storages of a group.
type opener struct {
	options Options
	served  resources.Group
	names   map[schema.GroupVersionResource]bool // the served resources
	info    func() (genericapiserver.APIGroupInfo, error)
}

// endpoints returns the endpoints of a resource.
func (o *opener) endpoints(r *resources.Resource) (map[string]*resources.Endpoint, error) {
	info, err := o.info()
	if err != nil {
		return nil, fmt.Errorf("storages of group %q: %w", r.Group, err)
	}
	out := map[string]*resources.Endpoint{}
	add := func(name, path string) error {
		storage := info.VersionedResourcesStorageMap[r.Version][path]
		if storage == nil {
			return nil
		}
		e, err := o.endpoint(info, r, name, storage)
		out[name] = e
		return err
	}
	if err := add("", r.Plural); err != nil {
		return nil, err
	}
	for _, s := range r.Subresources {
		if err := add(s.Name, r.Plural+"/"+s.Name); err != nil {
			return nil, err
		}
	}
	if e := out[""]; e != nil {
		if _, ok := e.Storage.(rest.Scoper); !ok {
			return nil, fmt.Errorf("%s: expected a storage with a scope, got a %T", r.GroupResource(), e.Storage)
		}
	}
	return out, nil
}

// ResourceEnabled reports whether a resource is served.
func (o *opener) ResourceEnabled(r schema.GroupVersionResource) bool { return o.names[r] }

// ResourceExplicitlyEnabled returns false: resources are served by default.
func (o *opener) ResourceExplicitlyEnabled(schema.GroupVersionResource) bool { return false }

// VersionExplicitlyEnabled returns false, because versions are served by default too.
func (o *opener) VersionExplicitlyEnabled(schema.GroupVersion) bool { return false }

// AnyResourceForGroupEnabled returns true, because a group is opened only if it has a served resource.
func (o *opener) AnyResourceForGroupEnabled(string) bool { return true }
