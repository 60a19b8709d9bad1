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

// Fetch returns the types of all kinds that a server publishes, from OpenAPI v3:
// its discovery at /openapi/v3, and the document of each group version; or from
// the one document at /openapi/v2, of a server that does not have v3. server is
// the URL below which those are; client has the credentials and the timeout of one
// request, http.DefaultClient if it is nil.
//
// Everything is fetched and compiled at once, so that the registry afterwards
// depends on no network: TypeFor can report neither an error nor a timeout. The
// documents themselves are not kept. It takes a request for each group version,
// one after the other, and ends when ctx does.
//
// When some documents can't be had, because the server behind an aggregated API
// is down for example, the registry holds all other kinds, and the error joins one
// for each such document. It is nil, along with an error, when there is nothing at
// all. A document may have 64 MiB. A kind that several documents describe, such as
// Status, is taken from the document of its own group version, or else from the
// first.
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
			return nil, err // List gives no other names
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
