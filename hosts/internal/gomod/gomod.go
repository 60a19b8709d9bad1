// Package gomod writes the go.mod of a program that is built from Kubernetes' modules.
//
// Kubernetes' own go.mod can't be used outside of its repository: it replaces the modules in k8s.io with folders that
// its published module does not contain. The go.mod written here requires the published modules of the same version
// instead, and pins every other module to the version in Kubernetes' go.mod. A program with Tenure is therefore built
// from the same modules, at the same versions, as the program without Tenure.
package gomod

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Kubernetes is the module of kube-apiserver.
const Kubernetes = "k8s.io/kubernetes"

// Pins are the versions of the modules that a Kubernetes version is built from.
type Pins struct {
	// Version is the version of Kubernetes, such as v1.37.2.
	Version string
	// Go and Godebug are the values of the directives go and godebug in Kubernetes' go.mod.
	Go      string
	Godebug []string
	// Modules are the versions of all modules, including k8s.io/kubernetes, by path.
	Modules map[string]string
}

// Staged returns the version of the modules published along with a Kubernetes version: v0.37.2 for v1.37.2.
func Staged(version string) (string, error) {
	rest, ok := strings.CutPrefix(version, "v1.")
	if !ok || rest == "" {
		return "", fmt.Errorf("version %q: expected v1.MINOR.PATCH", version)
	}
	return "v0." + rest, nil
}

// module is the output of go mod edit -json.
type module struct {
	Go      string
	Godebug []struct{ Key, Value string }
	Require []struct{ Path, Version string }
	Replace []struct {
		Old, New struct{ Path, Version string }
	}
}

// Read returns the pins of a Kubernetes version. It downloads the module if necessary.
func Read(version string) (*Pins, error) {
	staged, err := Staged(version)
	if err != nil {
		return nil, err
	}
	dir, err := Download(Kubernetes, version)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("go", "mod", "edit", "-json", filepath.Join(dir, "go.mod"))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go.mod of %s@%s: %w", Kubernetes, version, err)
	}
	return parse(out, version, staged)
}

func parse(edited []byte, version, staged string) (*Pins, error) {
	var m module
	if err := json.Unmarshal(edited, &m); err != nil {
		return nil, fmt.Errorf("go.mod of %s@%s: %w", Kubernetes, version, err)
	}
	p := &Pins{Version: version, Go: m.Go, Modules: map[string]string{Kubernetes: version}}
	for _, g := range m.Godebug {
		p.Godebug = append(p.Godebug, g.Key+"="+g.Value)
	}
	for _, r := range m.Require {
		p.Modules[r.Path] = r.Version
	}
	for _, r := range m.Replace {
		p.Modules[r.Old.Path] = staged
		if r.New.Version != "" {
			return nil, fmt.Errorf("go.mod of %s@%s: expected replacements by folders only, found %s",
				Kubernetes, version, r.New.Path)
		}
	}
	if len(m.Replace) == 0 {
		return nil, fmt.Errorf("go.mod of %s@%s: expected the modules of Kubernetes to be replaced by folders",
			Kubernetes, version)
	}
	return p, nil
}

// Libraries returns pins of modules that are published along with Kubernetes, at a version such as v0.37.2. The pins do
// not include k8s.io/kubernetes, which is not published for all of these versions.
func Libraries(version string, paths ...string) *Pins {
	p := &Pins{Version: version, Go: "1.26.0", Modules: map[string]string{}}
	for _, path := range paths {
		p.Modules[path] = version
	}
	return p
}

// Download downloads a module, and returns its folder in the module cache.
func Download(path, version string) (string, error) {
	cmd := exec.Command("go", "mod", "download", "-json", path+"@"+version)
	cmd.Dir = os.TempDir() // outside of any module
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := cmd.Output()
	var info struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &info); jsonErr != nil {
		return "", fmt.Errorf("downloading %s@%s: %w", path, version, err)
	}
	if info.Error != "" {
		return "", fmt.Errorf("downloading %s@%s: %s", path, version, info.Error)
	}
	return info.Dir, nil
}

// Main describes the main module of a program.
type Main struct {
	Name string
	// Require has the versions of additional required modules, by path.
	Require map[string]string
	// Folders has the folders that replace modules at any version, by module path.
	Folders map[string]string
}

// File returns the go.mod of a main module, with its requirements and the pins of all modules.
func (p *Pins) File(m Main) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "module %s\n\ngo %s\n\n", m.Name, p.Go)
	for _, g := range p.Godebug {
		fmt.Fprintf(&b, "godebug %s\n", g)
	}
	require := map[string]string{}
	if version, ok := p.Modules[Kubernetes]; ok {
		require[Kubernetes] = version
	}
	maps.Copy(require, m.Require)
	fmt.Fprint(&b, "\nrequire (\n")
	for _, path := range slices.Sorted(maps.Keys(require)) {
		fmt.Fprintf(&b, "\t%s %s\n", path, require[path])
	}
	fmt.Fprint(&b, ")\n\nreplace (\n")
	for _, path := range slices.Sorted(maps.Keys(p.Modules)) {
		if _, ok := m.Folders[path]; !ok {
			fmt.Fprintf(&b, "\t%s => %s %s\n", path, path, p.Modules[path])
		}
	}
	for _, path := range slices.Sorted(maps.Keys(m.Folders)) {
		fmt.Fprintf(&b, "\t%s => %s\n", path, m.Folders[path])
	}
	fmt.Fprint(&b, ")\n")
	return []byte(b.String())
}
