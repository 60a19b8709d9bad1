// Command tenure-vet finds writes that make a controller the owner of more fields than intended:
//
//	go install github.com/tenure-ssa/tenure/cmd/tenure-vet@latest
//	go vet -vettool=$(which tenure-vet) ./...
//	tenure-vet -fix ./...    # applies the fixes, where there are any
//
// Package golangci provides it as a plugin for golangci-lint.
package main

import (
	"golang.org/x/tools/go/analysis/multichecker"

	"github.com/tenure-ssa/tenure/cmd/internal/analyzers"
)

func main() { multichecker.Main(analyzers.All()...) }
