package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// writeSBOM writes the software bill of materials of a binary, in CycloneDX: the modules that the go command built it
// from, as it says in the binary itself.
func (d *distribution) writeSBOM(a *artifact, name string) error {
	info, err := buildinfo.ReadFile(a.binary)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	encoder := cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON)
	if err := encoder.SetPretty(true).Encode(d.bomOf(a, info)); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(d.dir, name), out.Bytes(), 0o666)
}

func (d *distribution) bomOf(a *artifact, info *buildinfo.BuildInfo) *cyclonedx.BOM {
	command := moduleComponent(cyclonedx.ComponentTypeApplication, info.Main.Path, d.version)
	command.Name = "tenure"
	components := []cyclonedx.Component{
		moduleComponent(cyclonedx.ComponentTypeLibrary, "stdlib", strings.TrimPrefix(info.GoVersion, "go")),
	}
	for _, m := range info.Deps {
		isTrimmed := m.Replace != nil && strings.HasPrefix(m.Replace.Path, "./")
		if m.Replace != nil && !isTrimmed {
			m = m.Replace
		}
		version := m.Version
		if isOwn(m.Path, info.Main.Path) {
			version = d.version // those of the workspace have none
		}
		c := moduleComponent(cyclonedx.ComponentTypeLibrary, m.Path, version)
		if m.Sum != "" {
			c.Properties = &[]cyclonedx.Property{{Name: "go:sum", Value: m.Sum}}
		}
		if isTrimmed {
			c.Pedigree = &cyclonedx.Pedigree{Notes: "Changed for releases: without clients and registrations of alpha and " +
				"beta versions of Kubernetes' APIs (internal/tools/release/trim.go)."}
		}
		components = append(components, c)
	}
	var uses []string
	for _, c := range components {
		uses = append(uses, c.BOMRef)
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{
		Timestamp: d.date.Format(time.RFC3339), Component: &command,
		Properties: &[]cyclonedx.Property{{Name: "go:platform", Value: a.String()}},
	}
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: command.BOMRef, Dependencies: &uses}}
	return bom
}

// isOwn reports whether a module is of the repository that the module main is of.
func isOwn(path, main string) bool {
	root := strings.TrimSuffix(main, "/cmd")
	return path == root || strings.HasPrefix(path, root+"/")
}

// moduleComponent describes a module by its package URL.
func moduleComponent(kind cyclonedx.ComponentType, path, version string) cyclonedx.Component {
	purl := fmt.Sprintf("pkg:golang/%s@%s", path, strings.ReplaceAll(version, "+", "%2B"))
	return cyclonedx.Component{BOMRef: purl, Type: kind, Name: path, Version: version, PackageURL: purl}
}
