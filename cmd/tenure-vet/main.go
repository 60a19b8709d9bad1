// Command tenure-vet finds writes of controllers that own more than they mean:
//
//	go install github.com/tenure-ssa/tenure/cmd/tenure-vet@latest
//	go vet -vettool=$(which tenure-vet) ./...
//
// golangci-lint runs it as a Go plugin: go build -buildmode=plugin, which needs golangci-lint's versions of modules.
package main

import (
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/multichecker"

	"github.com/tenure-ssa/tenure/cmd/internal/analyzers"
)

func main() { multichecker.Main(analyzers.All()...) }

// New is what golangci-lint calls in a plugin.
func New(any) ([]*analysis.Analyzer, error) { return analyzers.All(), nil }
