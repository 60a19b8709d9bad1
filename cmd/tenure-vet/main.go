// Command tenure-vet finds writes of controllers that own more than they mean:
//
//	go install github.com/tenure-ssa/tenure/cmd/tenure-vet@latest
//	go vet -vettool=$(which tenure-vet) ./...
//	tenure-vet -fix ./...    # applies the fixes, where there are any
//
// Package golangci makes it a plugin of golangci-lint.
package main

import (
	"golang.org/x/tools/go/analysis/multichecker"

	"github.com/tenure-ssa/tenure/cmd/internal/analyzers"
)

func main() { multichecker.Main(analyzers.All()...) }
