package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tenure-ssa/tenure/typed/openapi/internal/remote"
)

// readDir returns the documents in a directory. The name of a file is that of its document, with __ for each slash.
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

// newServer returns the server at an address. ca is a file with the certificates of the authorities to trust; empty for
// those of the system.
func newServer(address, token, ca string) (*remote.Server, error) {
	base, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("the server's URL: %w", err)
	}
	s := &remote.Server{Base: base, Token: token, Client: &http.Client{Timeout: time.Minute}}
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
	s.Client.Transport = transport
	return s, nil
}

// readServer returns the documents of all group versions of a server.
func readServer(ctx context.Context, s *remote.Server) (map[string][]byte, error) {
	list, err := s.List(ctx)
	if err != nil {
		return nil, err
	}
	documents := map[string][]byte{}
	for _, d := range list {
		if documents[d.Name], err = s.Get(ctx, d.Path); err != nil {
			return nil, err
		}
	}
	return documents, nil
}
