package controllerruntime

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	openapiclient "k8s.io/client-go/openapi"
	"k8s.io/client-go/rest"

	"github.com/tenure-ssa/tenure/typed/openapi"
)

// published are the schemas that a server publishes in OpenAPI v3.
type published struct {
	client  openapiclient.Client
	refresh time.Duration
	now     func() time.Time

	mu     sync.Mutex
	looked time.Time                             // when paths was last read
	paths  map[string]openapiclient.GroupVersion // keys such as "apis/apps/v1"
	groups map[string]publishedGroup
}

// publishedGroup is a compiled group, and the documents that it was compiled from; their URLs contain hashes.
type publishedGroup struct {
	types *openapi.Registry
	urls  map[string]string
}

func newPublished(config *rest.Config, refresh time.Duration) (*published, error) {
	c, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return &published{client: c.OpenAPIV3(), refresh: refresh, now: time.Now, groups: map[string]publishedGroup{}}, nil
}

// Types reads the list of documents if the list is older than refresh or lacks the group, and reads the documents of
// the group if they have changed.
func (p *published) Types(_ context.Context, group string) (*openapi.Registry, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := p.now(); now.Sub(p.looked) >= p.refresh || len(p.documents(group)) == 0 {
		paths, err := p.client.Paths()
		if err != nil {
			return nil, err
		}
		p.paths, p.looked = paths, now
	}
	documents := p.documents(group)
	urls := map[string]string{}
	for path, document := range documents {
		urls[path] = document.ServerRelativeURL()
	}
	if known, ok := p.groups[group]; ok && maps.Equal(known.urls, urls) {
		return known.types, nil
	}
	read := publishedGroup{urls: urls}
	var registries []*openapi.Registry
	for path, document := range documents {
		registry, err := compileDocument(document)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		registries = append(registries, registry)
	}
	if len(registries) > 0 {
		read.types = openapi.Union(registries...)
	}
	p.groups[group] = read
	return read.types, nil
}

// documents returns the documents of a group, by path.
func (p *published) documents(group string) map[string]openapiclient.GroupVersion {
	prefix := "apis/" + group + "/"
	if group == "" {
		prefix = "api/"
	}
	out := map[string]openapiclient.GroupVersion{}
	for path, document := range p.paths {
		if version, ok := strings.CutPrefix(path, prefix); ok && version != "" && !strings.Contains(version, "/") {
			out[path] = document
		}
	}
	return out
}

// compileDocument reads and compiles a document.
func compileDocument(document openapiclient.GroupVersion) (*openapi.Registry, error) {
	data, err := document.Schema(runtime.ContentTypeJSON)
	if err != nil {
		return nil, err
	}
	return openapi.CompileV3(data)
}
