// Package golangci is a plugin that makes golangci-lint run the checks of tenure-vet. In .custom-gcl.yml, add the
// plugin:
//
//	version: v2.15.0
//	plugins:
//	  - module: github.com/tenure-ssa/tenure/cmd
//	    import: github.com/tenure-ssa/tenure/cmd/golangci
//	    version: latest
//
// In .golangci.yml, enable the linter:
//
//	version: "2"
//	linters:
//	  enable: [tenurevet]
//	  settings:
//	    custom:
//	      tenurevet:
//	        type: module
//	        description: finds writes that own more fields than intended
//
// "golangci-lint custom" then builds ./custom-gcl. "./custom-gcl run" runs the checks; "./custom-gcl run --fix" also
// applies the fixes.
package golangci

import (
	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"

	"github.com/tenure-ssa/tenure/cmd/internal/analyzers"
)

func init() {
	register.Plugin("tenurevet", func(any) (register.LinterPlugin, error) { return plugin{}, nil })
}

type plugin struct{}

func (plugin) BuildAnalyzers() ([]*analysis.Analyzer, error) { return analyzers.All(), nil }

func (plugin) GetLoadMode() string { return register.LoadModeTypesInfo }
