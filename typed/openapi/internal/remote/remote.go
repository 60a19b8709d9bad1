// Package remote reads the OpenAPI documents that an API server publishes.
package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tenure-ssa/tenure/typed/openapi/internal/bundle"
)

const (
	// MaxDocument bounds what is read of one answer, in bytes; the largest
	// document of a real server has about 3 MB.
	MaxDocument = 64 << 20
	// MaxDocuments bounds how many documents a server may list; one with many
	// hundreds of CustomResourceDefinitions stays far below.
	MaxDocuments = 10_000
)

// ErrNotFound says that a server does not have what was asked for.
var ErrNotFound = errors.New("not found")

// Server is an API server that publishes OpenAPI documents.
type Server struct {
	// Base is where the server's paths start.
	Base *url.URL
	// Client sends the requests.
	Client *http.Client
	// Token is a bearer token; empty for none, or if Client has its own credentials. It is sent to this server only.
	Token string
}

// Document is the name and path of a document.
type Document struct {
	// Name is as in discovery: api/v1, apis/apps/v1.
	Name string
	// Path is below the server's base, with a query.
	Path string
}

// List returns the documents of group versions that the server lists at openapi/v3, sorted by name. It skips the
// others, those of groups and of endpoints without kinds.
func (s *Server) List(ctx context.Context) ([]Document, error) {
	data, err := s.Get(ctx, "openapi/v3")
	if err != nil {
		return nil, err
	}
	var discovery struct {
		Paths map[string]struct {
			ServerRelativeURL string `json:"serverRelativeURL"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(data, &discovery); err != nil {
		return nil, fmt.Errorf("discovery at openapi/v3: %w", err)
	}
	var out []Document
	for _, name := range slices.Sorted(maps.Keys(discovery.Paths)) {
		if _, err := bundle.GroupVersion(name); err == nil {
			out = append(out, Document{name, strings.TrimPrefix(discovery.Paths[name].ServerRelativeURL, "/")})
		}
	}
	switch {
	case len(out) == 0:
		return nil, fmt.Errorf("discovery at openapi/v3 lists no group version")
	case len(out) > MaxDocuments:
		return nil, fmt.Errorf("discovery at openapi/v3 lists %d documents, want at most %d", len(out), MaxDocuments)
	}
	return out, nil
}

// Get reads what is at a path below the server's base. The error is [ErrNotFound] if there is nothing.
func (s *Server) Get(ctx context.Context, path string) ([]byte, error) {
	target, err := s.Base.Parse(strings.TrimSuffix(s.Base.Path, "/") + "/" + path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	// The token is for this server only.
	if target.Host != s.Base.Host || target.Scheme != s.Base.Scheme {
		return nil, fmt.Errorf("%s: leads to another server, %s", path, target.Host)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	request.Header.Set("Accept", "application/json")
	if s.Token != "" {
		request.Header.Set("Authorization", "Bearer "+s.Token)
	}
	response, err := s.Client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return nil, fmt.Errorf("%s: the server answered %s: %w", path, response.Status, ErrNotFound)
	default:
		return nil, fmt.Errorf("%s: the server answered %s", path, response.Status)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, MaxDocument+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	case len(data) > MaxDocument:
		return nil, fmt.Errorf("%s: more than %d bytes", path, MaxDocument)
	}
	return data, nil
}
