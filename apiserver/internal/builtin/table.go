// Package builtin serves the kinds that every server has, as Go structs of
// k8s.io/api.
package builtin

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

//go:generate go run ./gen

//go:embed resources.json
var table []byte

// Options are what the kinds have from the server.
type Options struct {
	Now func() time.Time
}

// Groups returns the built-in groups, the core group first, with resources of
// their own for each call.
func Groups(options Options) []resources.Group {
	var groups []resources.Group
	if err := json.Unmarshal(table, &groups); err != nil {
		panic(fmt.Sprintf("builtin: embedded table: %v", err))
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

// storedAs are the kinds that are stored at another version, or in another
// group, than they are served.
var storedAs = map[schema.GroupVersionKind]schema.GroupVersionKind{
	{Group: "autoscaling", Version: "v1", Kind: "HorizontalPodAutoscaler"}: {Group: "autoscaling", Version: "v2",
		Kind: "HorizontalPodAutoscaler"},
	{Group: "events.k8s.io", Version: "v1", Kind: "Event"}: {Version: "v1", Kind: "Event"},
}

// deprecated are what a server warns the clients of old kinds of.
var deprecated = map[schema.GroupVersionKind]string{
	{Version: "v1", Kind: "ComponentStatus"}: "v1 ComponentStatus is deprecated in v1.19+",
	{Version: "v1",
		Kind: "Endpoints"}: "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
}

// complete sets what the table leaves to be derived.
func complete(r *resources.Resource) {
	r.Stored = r.GVK()
	if stored, ok := storedAs[r.Stored]; ok {
		r.Stored = stored
	}
	if slices.Contains(r.Verbs, "get") {
		r.Prefix = resources.PrefixOf(r.Stored.Group, r.Plural)
	}
	r.Deprecated = deprecated[r.GVK()]
	for i := range r.Subresources {
		if k := &r.Subresources[i].Kind; k.Version == "" {
			k.Group, k.Version = r.Group, r.Version
		}
	}
}
