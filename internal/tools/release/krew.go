package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

// krewFile is the manifest of the plugin for krew, kubectl's plugin manager.
const krewFile = "tenure.yaml"

// downloads is where the files of a release are.
const downloads = "https://github.com/tenure-ssa/tenure/releases/download"

var krewManifest = template.Must(template.New(krewFile).Parse(`apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: tenure
spec:
  version: {{.Version}}
  homepage: https://github.com/tenure-ssa/tenure
  shortDescription: See, plan and move ownership of fields
  description: |
    Tenure shows which manager owns which field of an object, what an apply would
    change, and which managers undo each other's writes. It moves ownership between
    managers, and from client-side to server-side apply, without losing fields.
  platforms:
{{- range .Platforms}}
  - selector:
      matchLabels:
        os: {{.OS}}
        arch: {{.Arch}}
    uri: {{.URI}}
    sha256: {{.Sum}}
    bin: {{.Bin}}
    files:
    - from: {{.Bin}}
      to: .
    - from: LICENSE
      to: .
{{- end}}
`))

// writeKrewManifest writes the manifest for the platforms that were built.
func (d *distribution) writeKrewManifest() error {
	type entry struct{ OS, Arch, URI, Sum, Bin string }
	data := struct {
		Version   string
		Platforms []entry
	}{Version: d.version}
	for _, a := range d.artifacts {
		data.Platforms = append(data.Platforms, entry{
			a.os, a.arch, fmt.Sprintf("%s/%s/%s", downloads, d.version, a.file), a.sum, a.executable(),
		})
	}
	var out strings.Builder
	if err := krewManifest.Execute(&out, data); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(d.dir, krewFile), []byte(out.String()), 0o666)
}
