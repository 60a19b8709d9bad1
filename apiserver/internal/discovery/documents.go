package discovery

import (
	"net"
	"net/http"
	"slices"

	discovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// named returns all groups but the core group.
func named(table *resources.Table) []resources.Group {
	var out []resources.Group
	for _, g := range table.Groups() {
		if g.Name != "" {
			out = append(out, g)
		}
	}
	return out
}

// paths returns all paths, sorted.
func paths(table *resources.Table, others []string) []string {
	out := slices.Clone(others)
	out = append(out, "/apis", "/apis/")
	for _, g := range table.Groups() {
		root := "/apis/" + g.Name
		if g.Name == "" {
			root = "/api"
		}
		out = append(out, root)
		for _, v := range g.Versions {
			out = append(out, root+"/"+v.Name)
		}
	}
	slices.Sort(out)
	return out
}

// versions returns the APIVersions of the core group, with the server's address.
func versions(g resources.Group, r *http.Request) runtime.Object {
	out := &metav1.APIVersions{
		TypeMeta:                   metav1.TypeMeta{Kind: "APIVersions"},
		ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: address(r)}},
	}
	for _, v := range g.Versions {
		out.Versions = append(out.Versions, v.Name)
	}
	return out
}

// address returns the address at which a request arrived.
func address(r *http.Request) string {
	if a, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		return a.String()
	}
	return r.Host
}

func groupList(groups []resources.Group) runtime.Object {
	out := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"},
		Groups: []metav1.APIGroup{}}
	for _, g := range groups {
		out.Groups = append(out.Groups, group(g))
	}
	return out
}

func oneGroup(g resources.Group) runtime.Object {
	out := group(g)
	out.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
	return &out
}

func group(g resources.Group) metav1.APIGroup {
	out := metav1.APIGroup{Name: g.Name}
	for _, v := range g.Versions {
		gv := schema.GroupVersion{Group: g.Name, Version: v.Name}
		out.Versions = append(out.Versions, metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: v.Name})
	}
	if len(out.Versions) > 0 {
		out.PreferredVersion = out.Versions[0]
	}
	return out
}

// resourceList returns the APIResourceList of a version; ok is false if it does not exist.
// Subresources follow their resource.
func resourceList(table *resources.Table, gv schema.GroupVersion) (_ runtime.Object, ok bool) {
	version, ok := table.Version(gv)
	if !ok {
		return nil, false
	}
	out := &metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList"},
		GroupVersion: gv.String(), APIResources: []metav1.APIResource{},
	}
	if gv.Group != "" {
		out.APIVersion = "v1" // kube-apiserver omits it for the core group
	}
	for _, r := range version.Resources {
		one := metav1.APIResource{
			Name: r.Plural, SingularName: r.Singular, Namespaced: r.Namespaced, Kind: r.Kind,
			Verbs: r.Verbs, ShortNames: r.ShortNames, Categories: r.Categories,
		}
		if isStored(r) {
			one.StorageVersionHash = r.StorageVersionHash()
		}
		out.APIResources = append(out.APIResources, one)
		for _, s := range r.Subresources {
			one := metav1.APIResource{Name: r.Plural + "/" + s.Name, Namespaced: r.Namespaced, Kind: s.Kind.Kind, Verbs: s.Verbs}
			if s.Kind.GroupVersion() != gv {
				one.Group, one.Version = s.Kind.Group, s.Kind.Version
			}
			out.APIResources = append(out.APIResources, one)
		}
	}
	return out, true
}

// isStored reports whether objects of the resource are stored. Reviews, Bindings and
// ComponentStatuses are not.
func isStored(r *resources.Resource) bool { return r.Allows("get", "") && r.Allows("create", "") }

func groupsOf(groups []resources.Group) runtime.Object {
	out := &discovery.APIGroupDiscoveryList{Items: []discovery.APIGroupDiscovery{}}
	for _, g := range groups {
		item := discovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: g.Name}}
		for _, v := range g.Versions {
			version := discovery.APIVersionDiscovery{Version: v.Name, Freshness: discovery.DiscoveryFreshnessCurrent}
			for _, r := range v.Resources {
				version.Resources = append(version.Resources, resource(r))
			}
			item.Versions = append(item.Versions, version)
		}
		out.Items = append(out.Items, item)
	}
	return out
}

func resource(r *resources.Resource) discovery.APIResourceDiscovery {
	out := discovery.APIResourceDiscovery{
		Resource: r.Plural, ResponseKind: responseKind(r, r.GVK()), Scope: discovery.ScopeCluster,
		SingularResource: r.Singular, Verbs: r.Verbs, ShortNames: r.ShortNames, Categories: r.Categories,
	}
	if r.Namespaced {
		out.Scope = discovery.ScopeNamespace
	}
	for _, s := range r.Subresources {
		out.Subresources = append(out.Subresources, discovery.APISubresourceDiscovery{
			Subresource: s.Name, ResponseKind: responseKind(r, s.Kind), Verbs: s.Verbs,
		})
	}
	return out
}

// responseKind returns the kind of a resource. Built-in resources omit a group and version
// that equal the resource's; custom resources never do.
func responseKind(r *resources.Resource, kind schema.GroupVersionKind) *metav1.GroupVersionKind {
	if !r.Custom && kind.GroupVersion() == r.GroupVersion() {
		return &metav1.GroupVersionKind{Kind: kind.Kind}
	}
	return &metav1.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind}
}
