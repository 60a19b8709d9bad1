package main

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// platform is an operating system and an architecture that releases have a binary for.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

var platforms = []platform{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"},
}

// choosePlatforms returns the platforms of a list as in linux/amd64,darwin/arm64; all for an empty list.
func choosePlatforms(list string) ([]platform, error) {
	if list == "" {
		return platforms, nil
	}
	var out []platform
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(platforms, func(p platform) bool { return p.String() == name })
		if i < 0 {
			return nil, fmt.Errorf("platform %q: expected some of %v", name, platforms)
		}
		out = append(out, platforms[i])
	}
	return out, nil
}

// buildTags are the tags of the command in a release: it embeds the page of the playground, and has no traces of gRPC,
// whose page would make the linker keep every exported method, as everything does that uses a template.
const buildTags = "playground,grpcnotrace"

// releaseVariable is the variable that tenure version prints.
const releaseVariable = "github.com/tenure-ssa/tenure/cmd/internal/cli.release"

// maxBinary is the largest size of a binary in bytes.
const maxBinary = 60_000_000

// inlined are the packages that functions are inlined in. All others, most of the code, are smaller without, and are
// where Tenure spends little time: kube-apiserver's types, validation and policies, clients, and what they import.
var inlined = []string{
	"std", "github.com/tenure-ssa/tenure/...", "k8s.io/apimachinery/...", "sigs.k8s.io/json/...", "sigs.k8s.io/yaml/...",
	"go.yaml.in/...",
}

// commandPackages are packages of Tenure that functions are not inlined in: they print and ask.
const commandPackages = "github.com/tenure-ssa/tenure/cmd/..."

// buildFlags returns the flags that make a binary small, and set its version.
func (p platform) buildFlags(version string) []string {
	link := "-s -w -X " + releaseVariable + "=" + version
	if p.arch == "amd64" {
		link += " -funcalign=1" // the default is 32, and 16 on arm64
	}
	flags := []string{"-ldflags=" + link, "-gcflags=all=-l"}
	for _, pattern := range inlined {
		flags = append(flags, "-gcflags="+pattern+"=") // the last one that matches a package holds
	}
	return append(flags, "-gcflags="+commandPackages+"=-l")
}

// distribution is what people download of a release.
type distribution struct {
	dir     string
	version string
	date    time.Time // of the commit: the same commit makes the same files
	extras  []treeFile
	work    string // the path of the go.work to build with

	artifacts []artifact
}

// artifact is the archive of a platform.
type artifact struct {
	platform
	binary string // unpacked
	file   string // the name of the archive
	sum    string // SHA-256, in hexadecimal
}

// executable is the name of the command in an archive.
func (p platform) executable() string {
	if p.os == "windows" {
		return "tenure.exe"
	}
	return "tenure"
}

// dist builds the command for some platforms, and writes archives, SBOMs, a krew manifest, the context of an image, and
// checksums into a folder, which must not exist.
func (w *workspace) dist(dir, version string, list []platform) error {
	if semver.Canonical(version) != version {
		return fmt.Errorf("%q: is no version, expected one as in v1.2.3", version)
	}
	if err := os.Mkdir(dir, 0o777); err != nil {
		return err
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "dist")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	d := &distribution{dir: dir, version: version}
	if err := w.prepareDist(d, scratch); err != nil {
		return err
	}
	for _, p := range list {
		start := time.Now()
		a, err := w.buildFor(p, d, scratch)
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		d.artifacts = append(d.artifacts, *a)
		size, err := os.Stat(a.binary)
		if err != nil {
			return err
		}
		fmt.Fprintf(w.out, "%s: %.1f MB, %s (%ds)\n", p, float64(size.Size())/1e6, a.file, int(time.Since(start).Seconds()))
	}
	return errors.Join(d.writeKrewManifest(), w.writeImage(d), d.writeChecksums())
}

// prepareDist makes what all platforms share: the site of the playground, which the command embeds, manual pages and
// completions.
func (w *workspace) prepareDist(d *distribution, scratch string) error {
	stamp, err := capture(w.root, nil, "git", "log", "-1", "--format=%ct")
	if err != nil {
		return err
	}
	var seconds int64
	if _, err := fmt.Sscan(stamp, &seconds); err != nil {
		return fmt.Errorf("git log: expected seconds, got %q: %w", stamp, err)
	}
	d.date = time.Unix(seconds, 0).UTC()
	if d.work, err = w.trimmedWorkspace(filepath.Join(scratch, "trimmed")); err != nil {
		return err
	}
	extras := filepath.Join(scratch, "extras")
	env := append(w.inWorkspace(), "SOURCE_DATE_EPOCH="+stamp)
	for _, args := range [][]string{
		{"run", "./cmd/playground", "build", "cmd/internal/playground/site/built"},
		{"run", "./cmd/internal/man", extras},
	} {
		if _, err := capture(w.root, env, "go", args...); err != nil {
			return err
		}
	}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		f, err := readTreeFile(filepath.Join(w.root, name), name)
		if err != nil {
			return err
		}
		d.extras = append(d.extras, f)
	}
	for _, folder := range []string{"completions", "man"} {
		entries, err := os.ReadDir(filepath.Join(extras, folder))
		if err != nil {
			return err
		}
		for _, e := range entries {
			f, err := readTreeFile(filepath.Join(extras, folder, e.Name()), folder+"/"+e.Name())
			if err != nil {
				return err
			}
			d.extras = append(d.extras, f)
		}
	}
	return nil
}

// inWorkspace returns the environment of go commands on the modules of the tree, whatever this program runs with.
func (w *workspace) inWorkspace() []string {
	return append(slices.Clone(w.env), "GOWORK="+filepath.Join(w.root, "go.work"))
}

// buildFor builds the command for a platform, checks it, and writes its archive and SBOM.
func (w *workspace) buildFor(p platform, d *distribution, scratch string) (*artifact, error) {
	a := &artifact{platform: p, binary: filepath.Join(scratch, p.os, p.arch, p.executable())}
	// Without cgo, package plugin, which kustomize imports for plugins in Go, is a stub, so that the linker does not keep
	// every exported method for plugins.
	env := append(slices.Clone(w.env), "GOWORK="+d.work, "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch)
	args := append([]string{"build", "-trimpath", "-tags", buildTags}, p.buildFlags(d.version)...)
	if _, err := capture(w.root, env, "go", append(args, "-o", a.binary, "./cmd/tenure")...); err != nil {
		return nil, err
	}
	if err := checkBinary(a.binary, p); err != nil {
		return nil, err
	}
	name := fmt.Sprintf("tenure_%s_%s_%s", d.version, p.os, p.arch)
	a.file = name + ".tar.gz"
	if p.os == "windows" {
		a.file = name + ".zip"
	}
	if err := d.writeArchive(a); err != nil {
		return nil, err
	}
	var err error
	if a.sum, err = fileSum(filepath.Join(d.dir, a.file)); err != nil {
		return nil, err
	}
	return a, d.writeSBOM(a, name+".cdx.json")
}

// checkBinary checks that a binary is for a platform, made without cgo, static and not too large.
func checkBinary(file string, p platform) error {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return err
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	for key, want := range map[string]string{
		"CGO_ENABLED": "0", "GOOS": p.os, "GOARCH": p.arch, "-tags": buildTags, "-trimpath": "true",
	} {
		if settings[key] != want {
			return fmt.Errorf("%s: built with %s=%q, expected %q", file, key, settings[key], want)
		}
	}
	stat, err := os.Stat(file)
	if err != nil {
		return err
	}
	if err := checkMethods(file); err != nil {
		return err
	}
	if stat.Size() >= maxBinary {
		return fmt.Errorf("%s: has %d bytes, expected fewer than %d", file, stat.Size(), maxBinary)
	}
	if p.os != "linux" {
		return nil
	}
	return checkStatic(file)
}

// canaryMethod is in a binary only if the linker keeps methods that nothing calls.
const canaryMethod = "main.canary.KeptByReflection"

// checkMethods checks that the linker removed methods that nothing calls. Names of functions are in a stripped binary
// too, for stack traces.
func checkMethods(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if bytes.Contains(data, []byte(canaryMethod)) {
		return fmt.Errorf("%s: has every exported method, because something in it finds methods by name: "+
			"link with -ldflags=-dumpdep and look for ReflectMethod", file)
	}
	return nil
}

// checkStatic checks that a binary needs no other file to run, not even a loader: an image from scratch has none.
func checkStatic(file string) error {
	f, err := elf.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, prog := range f.Progs {
		if prog.Type == elf.PT_INTERP {
			return fmt.Errorf("%s: needs a loader", file)
		}
	}
	if libraries, err := f.ImportedLibraries(); err == nil && len(libraries) > 0 {
		return fmt.Errorf("%s: needs %s", file, strings.Join(libraries, ", "))
	}
	if f.Section(".symtab") != nil {
		return fmt.Errorf("%s: is not stripped", file)
	}
	return nil
}
