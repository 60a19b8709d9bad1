// Command gen regenerates the embedded schemas of built-in types:
//
//	go run ./typed/openapi/internal/gen -from DIR
//	go run ./typed/openapi/internal/gen -from https://HOST [-token TOKEN] [-ca FILE]
//
// From a directory it reads files such as api__v1.json and apis__apps__v1.json;
// from a server, it reads all documents that /openapi/v3 lists.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/tenure-ssa/tenure/typed/openapi/internal/bundle"
)

func main() {
	from := flag.String("from", "", "a `directory` of OpenAPI v3 documents, or the http(s) URL of a server")
	to := flag.String("to", filepath.Join("typed", "openapi", "builtin.zip"), "the `file` to write to")
	token := flag.String("token", "", "the bearer `token` to show to the server")
	ca := flag.String("ca", "", "a `file` with the certificates, in PEM, of the authorities to trust")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *from, *to, *token, *ca); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// run reads documents, builds the bundle and writes it to the file to, if all
// could be read and built.
func run(ctx context.Context, from, to, token, ca string) error {
	documents, err := documentsFrom(ctx, from, token, ca)
	if err != nil {
		return err
	}
	built, err := bundle.Build(documents)
	if err != nil {
		return err
	}
	return os.WriteFile(to, built, 0o644)
}

func documentsFrom(ctx context.Context, from, token, ca string) (map[string][]byte, error) {
	switch {
	case from == "":
		return nil, fmt.Errorf("-from is missing, want a directory or the URL of a server")
	case strings.HasPrefix(from, "http://"), strings.HasPrefix(from, "https://"):
		server, err := newServer(from, token, ca)
		if err != nil {
			return nil, err
		}
		return readServer(ctx, server)
	}
	return readDir(from)
}
