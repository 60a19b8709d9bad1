package openapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/openapi/internal/bundle"
	"github.com/tenure-ssa/tenure/typed/openapi/internal/remote"
)

// Fetch returns the types of all kinds that a server publishes: the OpenAPI v3 documents of all group versions that
// /openapi/v3 lists, or the one document at /openapi/v2 if the server does not have v3. server is the base URL.
// client has the credentials, and the timeout of a request; nil is http.DefaultClient.
//
// Everything is fetched and compiled at once, since TypeFor can report neither an error nor a timeout. The documents
// are not kept. It takes one request for each group version, in sequence, and ends with ctx.
//
// If some documents are not available, for example because an aggregated API server is down, the registry has all
// other kinds, and the error joins one error for each of them. The registry is nil if there are no kinds at all. A
// document may have 64 MiB. A kind that several documents describe, such as Status, is taken from the document of its
// own group version, or else from the first.
func Fetch(ctx context.Context, client *http.Client, server string) (*Registry, error) {
	base, err := url.Parse(server)
	if err != nil {
		return nil, fmt.Errorf("the server's URL: %w", err)
	}
	if base.Host == "" {
		return nil, fmt.Errorf("the server's URL: got %q, want one with a host", server)
	}
	if client == nil {
		client = http.DefaultClient
	}
	s := &remote.Server{Base: base, Client: client}
	list, err := s.List(ctx)
	if errors.Is(err, remote.ErrNotFound) {
		return fetchV2(ctx, s, err)
	}
	if err != nil {
		return nil, err
	}
	types := map[schema.GroupVersionKind]*typed.Type{}
	var errs []error
	for _, d := range list {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("%s: %w", d.Name, err)
		}
		r, err := fetchDocument(ctx, s, d)
		if err != nil {
			errs = append(errs, fmt.Errorf("document %s: %w", d.Name, err))
			continue
		}
		own, err := bundle.GroupVersion(d.Name)
		if err != nil {
			return nil, err // List returns no other names
		}
		for gvk, kind := range r.kinds {
			if types[gvk] == nil || gvk.GroupVersion() == own {
				types[gvk] = kind.typ
			}
		}
	}
	if len(errs) == len(list) {
		return nil, errors.Join(errs...)
	}
	return compiled(types), errors.Join(errs...)
}

func fetchDocument(ctx context.Context, s *remote.Server, d remote.Document) (*Registry, error) {
	data, err := s.Get(ctx, d.Path)
	if err != nil {
		return nil, err
	}
	return CompileV3(data)
}

func fetchV2(ctx context.Context, s *remote.Server, noV3 error) (*Registry, error) {
	data, err := s.Get(ctx, "openapi/v2")
	if err != nil {
		return nil, errors.Join(noV3, err)
	}
	r, err := CompileV2(data)
	if err != nil {
		return nil, fmt.Errorf("openapi/v2: %w", err)
	}
	return r, nil
}
