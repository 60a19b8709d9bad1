// Command gen generates resources.json, the built-in resources, from the aggregated discovery documents of a
// kube-apiserver: the responses of /api and /apis in a file of recorded HTTP exchanges. It omits groups without an
// embedded OpenAPI document, such as the groups of CustomResourceDefinitions.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"log"
	"os"

	discovery "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/typed/openapi"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

func main() {
	from := flag.String("from", "../../testdata/rest/discovery-health.json", "recorded exchanges")
	to := flag.String("to", "resources.json", "the generated file")
	flag.Parse()
	groups, err := read(*from)
	if err != nil {
		log.Fatal(err)
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(groups); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(*to, out.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
}

// read returns the groups in a file of recorded exchanges, the core group first.
func read(path string) ([]resources.Group, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file struct {
		Exchanges []struct {
			Path string          `json:"path"`
			JSON json.RawMessage `json:"json"`
		} `json:"exchanges"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, err
	}
	var out []resources.Group
	for _, path := range []string{"/api", "/apis"} {
		for _, e := range file.Exchanges {
			var list discovery.APIGroupDiscoveryList
			if e.Path != path {
				continue
			}
			if err := json.Unmarshal(e.JSON, &list); err != nil {
				return nil, err
			}
			if list.Kind != "APIGroupDiscoveryList" {
				continue
			}
			for _, item := range list.Items {
				if g := groupOf(item); len(g.Versions) > 0 {
					out = append(out, g)
				}
			}
		}
	}
	return out, nil
}

func groupOf(item discovery.APIGroupDiscovery) resources.Group {
	g := resources.Group{Name: item.Name}
	for _, v := range item.Versions {
		if _, ok := openapi.BuiltinDocument(schema.GroupVersion{Group: item.Name, Version: v.Version}); !ok {
			continue
		}
		list := resources.Version{Name: v.Version}
		for _, r := range v.Resources {
			list.Resources = append(list.Resources, resourceOf(r))
		}
		g.Versions = append(g.Versions, list)
	}
	return g
}

func resourceOf(r discovery.APIResourceDiscovery) *resources.Resource {
	out := &resources.Resource{
		Plural: r.Resource, Singular: r.SingularResource, Kind: r.ResponseKind.Kind,
		ShortNames: r.ShortNames, Categories: r.Categories, Namespaced: r.Scope == discovery.ScopeNamespace, Verbs: r.Verbs,
	}
	for _, s := range r.Subresources {
		out.Subresources = append(out.Subresources, resources.Subresource{
			Name: s.Subresource, Verbs: s.Verbs,
			Kind: schema.GroupVersionKind{Group: s.ResponseKind.Group, Version: s.ResponseKind.Version,
				Kind: s.ResponseKind.Kind},
		})
	}
	return out
}
