// Command gen writes the embedded schemas of built-in types again, from a directory of the OpenAPI v3 documents of a
// server, in files such as api__v1.json and apis__apps__v1.json:
//
//	go run ./typed/openapi/internal/gen -from DIR
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tenure-ssa/tenure/typed/openapi/internal/bundle"
)

func main() {
	from := flag.String("from", ".", "a `directory` of OpenAPI v3 documents")
	to := flag.String("to", filepath.Join("typed", "openapi", "builtin.zip"), "the `file` to write to")
	flag.Parse()
	if err := run(*from, *to); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// run builds the bundle of the documents in a directory and writes it to a file. The name of a document's file is that
// of the document, with __ for each slash.
func run(from, to string) error {
	paths, err := filepath.Glob(filepath.Join(from, "*.json"))
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		return fmt.Errorf("%s: no *.json files", from)
	}
	documents := map[string][]byte{}
	for _, path := range paths {
		name := strings.ReplaceAll(strings.TrimSuffix(filepath.Base(path), ".json"), "__", "/")
		if documents[name], err = os.ReadFile(path); err != nil {
			return err
		}
	}
	built, err := bundle.Build(documents)
	if err != nil {
		return err
	}
	return os.WriteFile(to, built, 0o644)
}
