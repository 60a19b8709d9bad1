package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tenure-ssa/tenure/typed/openapi/internal/bundle"
)

// maxDocument bounds what is read of one answer; the largest document of a real
// server has about 3 MB.
const maxDocument = 64 << 20

// readDir returns the documents in a directory. A file is called as its document
// is, with __ for each slash.
func readDir(dir string) (map[string][]byte, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s: no *.json files", dir)
	}
	documents := map[string][]byte{}
	for _, path := range paths {
		name := strings.ReplaceAll(strings.TrimSuffix(filepath.Base(path), ".json"), "__", "/")
		if documents[name], err = os.ReadFile(path); err != nil {
			return nil, err
		}
	}
	return documents, nil
}

// server is an API server that publishes OpenAPI v3.
type server struct {
	base   *url.URL
	token  string
	client *http.Client
}

func newServer(address, token, ca string) (*server, error) {
	base, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("the server's URL: %w", err)
	}
	s := &server{base: base, token: token, client: &http.Client{Timeout: time.Minute}}
	if ca == "" {
		return s, nil
	}
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: no certificate in PEM", ca)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	s.client.Transport = transport
	return s, nil
}

// documents returns the documents of all group versions. Discovery lists others
// too, of groups and of endpoints without kinds; those are passed over.
func (s *server) documents(ctx context.Context) (map[string][]byte, error) {
	data, err := s.get(ctx, "openapi/v3")
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
	documents := map[string][]byte{}
	for _, name := range slices.Sorted(maps.Keys(discovery.Paths)) {
		if _, err := bundle.GroupVersion(name); err != nil {
			continue
		}
		relative := strings.TrimPrefix(discovery.Paths[name].ServerRelativeURL, "/")
		if documents[name], err = s.get(ctx, relative); err != nil {
			return nil, err
		}
	}
	if len(documents) == 0 {
		return nil, fmt.Errorf("discovery at openapi/v3 lists no group version")
	}
	return documents, nil
}

// get reads what is at a URL below the server's.
func (s *server) get(ctx context.Context, relative string) ([]byte, error) {
	target, err := s.base.Parse(strings.TrimSuffix(s.base.Path, "/") + "/" + relative)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", relative, err)
	}
	// The token is for this server only.
	if target.Host != s.base.Host || target.Scheme != s.base.Scheme {
		return nil, fmt.Errorf("%s: leads to another server, %s", relative, target.Host)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	if s.token != "" {
		request.Header.Set("Authorization", "Bearer "+s.token)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxDocument+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", relative, err)
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s: the server answered %s", relative, response.Status)
	case len(data) > maxDocument:
		return nil, fmt.Errorf("%s: more than %d bytes", relative, maxDocument)
	}
	return data, nil
}
