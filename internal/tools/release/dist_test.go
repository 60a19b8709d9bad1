package main

import (
	"bytes"
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/stretchr/testify/require"
)

// distSample is a distribution with archives of what is no binary, for what looks at archives only.
func distSample(t *testing.T) *distribution {
	d := &distribution{
		dir: t.TempDir(), version: "v0.1.0", date: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		extras: []treeFile{{name: "LICENSE", data: []byte("license")}, {name: "man/tenure.1", data: []byte("page")}},
	}
	for _, a := range []artifact{
		{platform: platform{"linux", "amd64"}, file: "tenure_v0.1.0_linux_amd64.tar.gz"},
		{platform: platform{"windows", "arm64"}, file: "tenure_v0.1.0_windows_arm64.zip"},
	} {
		a.binary = filepath.Join(t.TempDir(), a.executable())
		require.NoError(t, os.WriteFile(a.binary, []byte("binary of "+a.String()), 0o755))
		require.NoError(t, d.writeArchive(&a))
		sum, err := fileSum(filepath.Join(d.dir, a.file))
		require.NoError(t, err)
		a.sum = sum
		d.artifacts = append(d.artifacts, a)
	}
	return d
}

func TestChoosePlatforms(t *testing.T) {
	all, err := choosePlatforms("")
	require.NoError(t, err)
	require.Len(t, all, 6)
	some, err := choosePlatforms("darwin/arm64,linux/amd64")
	require.NoError(t, err)
	require.Equal(t, []platform{{"darwin", "arm64"}, {"linux", "amd64"}}, some)
	_, err = choosePlatforms("plan9/amd64")
	require.ErrorContains(t, err, `platform "plan9/amd64"`)
}

// Archives have the command first and executable, and are the same for the same commit.
func TestArchives(t *testing.T) {
	d, again := distSample(t), distSample(t)
	for i, a := range d.artifacts {
		files, err := unpack(filepath.Join(d.dir, a.file))
		require.NoError(t, err)
		require.Equal(t, map[string][]byte{
			a.executable(): []byte("binary of " + a.String()), "LICENSE": []byte("license"), "man/tenure.1": []byte("page"),
		}, files)
		require.Equal(t, a.sum, again.artifacts[i].sum)
	}
	require.Equal(t, os.FileMode(0o755), modeOf(0))
	require.Equal(t, os.FileMode(0o644), modeOf(1))
}

// Every file is in the list of checksums, and nothing else is.
func TestChecksums(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(t *testing.T, dir string)
		want   string // empty: it passes
	}{
		{"as written", func(*testing.T, string) {}, ""},
		{"a changed file", func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "tenure_v0.1.0_windows_arm64.zip"), nil, 0o600))
		}, "tenure_v0.1.0_windows_arm64.zip: has the checksum e3b0c44298fc1c149afbf4c8996fb924"},
		{"a missing file", func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(filepath.Join(dir, "tenure_v0.1.0_windows_arm64.zip")))
		}, "tenure_v0.1.0_windows_arm64.zip: has a checksum and does not exist"},
		{"a file more", func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "x"), nil, 0o600))
		}, `x: has the checksum`},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := distSample(t)
			require.NoError(t, d.writeKrewManifest())
			require.NoError(t, d.writeChecksums())
			row.change(t, d.dir)
			err := verifyChecksums(d.dir)
			if row.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, row.want)
			}
		})
	}
}

// The manifest of krew has the archives where a release has them. Krew's own check is a part of release verify.
func TestKrewManifest(t *testing.T) {
	d := distSample(t)
	require.NoError(t, d.writeKrewManifest())
	manifest, err := readKrewManifest(d.dir)
	require.NoError(t, err)
	require.Equal(t, "v0.1.0", manifest.Spec.Version)
	require.Len(t, manifest.Spec.Platforms, 2)
	windows := manifest.Spec.Platforms[1]
	require.Equal(t, downloads+"/v0.1.0/tenure_v0.1.0_windows_arm64.zip", windows.URI)
	require.Equal(t, d.artifacts[1].sum, windows.SHA256)
	require.Equal(t, "tenure.exe", windows.Bin)
	require.Equal(t, "windows", windows.Selector.MatchLabels.OS)
}

// The SBOM has every module of the binary, those of the repository at the version of the release.
func TestSBOM(t *testing.T) {
	d := &distribution{version: "v0.1.0", date: time.Unix(0, 0).UTC()}
	bom := d.bomOf(&artifact{platform: platforms[0]}, &buildinfo.BuildInfo{
		GoVersion: "go1.26.8", Main: debug.Module{Path: "example.com/x/cmd", Version: "(devel)"},
		Deps: []*debug.Module{
			{Path: "example.com/x", Version: "(devel)"}, {Path: "example.com/xy", Version: "v1.0.0+incompatible", Sum: "h1:a="},
			{Path: "example.com/old", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/new", Version: "v1.1.0"}},
			{Path: "k8s.io/api", Version: "v0.36.3", Replace: &debug.Module{Path: "./api", Version: "(devel)"}},
		},
	})
	var out bytes.Buffer
	require.NoError(t, cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON).Encode(bom))
	var read cyclonedx.BOM
	require.NoError(t, cyclonedx.NewBOMDecoder(&out, cyclonedx.BOMFileFormatJSON).Decode(&read))
	var urls []string
	for _, c := range *read.Components {
		urls = append(urls, c.PackageURL)
	}
	require.Equal(t, []string{
		"pkg:golang/stdlib@1.26.8", "pkg:golang/example.com/x@v0.1.0", "pkg:golang/example.com/xy@v1.0.0%2Bincompatible",
		"pkg:golang/example.com/new@v1.1.0", "pkg:golang/k8s.io/api@v0.36.3",
	}, urls)
	for i, c := range *read.Components {
		isChanged := c.Pedigree != nil && strings.HasPrefix(c.Pedigree.Notes, "Changed for releases")
		require.Equal(t, i == len(urls)-1, isChanged, c.Name)
	}
	require.Equal(t, "pkg:golang/example.com/x/cmd@v0.1.0", read.Metadata.Component.PackageURL)
	require.Equal(t, urls, *(*read.Dependencies)[0].Dependencies)
}

// A release is built in the workspace, though this program runs outside of it.
func TestInWorkspace(t *testing.T) {
	t.Setenv("GOWORK", "off")
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	w := &workspace{root: root}
	got, err := capture(w.root, w.inWorkspace(), "go", "list", "./cmd/playground")
	require.NoError(t, err)
	require.Equal(t, "github.com/tenure-ssa/tenure/cmd/playground", got)
}

// A binary of another kind is rejected: this one is for tests, with other tags.
func TestCheckBinary(t *testing.T) {
	file, err := os.Executable()
	require.NoError(t, err)
	require.ErrorContains(t, checkBinary(file, platforms[0]), "built with ")
	require.Error(t, checkStatic("Dockerfile"))
}

// A binary that has methods that nothing calls is rejected, stripped or not. cmd/tenure has the same canary.
func TestCheckMethods(t *testing.T) {
	command, err := os.ReadFile("../../../cmd/tenure/main.go")
	require.NoError(t, err)
	const canary = "type canary struct{}\n\n// KeptByReflection does nothing.\nfunc (canary) KeptByReflection() {}\n\n" +
		"var kept any = canary{}\n\nfunc main() {\n\truntime.KeepAlive(kept)\n"
	require.Contains(t, string(command), canary)
	for _, row := range []struct {
		name, imports, body string
		rejected            bool
	}{
		{"no reflection", "", "", false},
		{"a method by a name that the linker knows", `"reflect"`, `reflect.ValueOf(0).MethodByName("String")`, false},
		{"a method by any name", `"os"; "reflect"`, `reflect.ValueOf(0).MethodByName(os.Args[0])`, true},
		{"a template", `"os"; "text/template"`, `template.Must(template.New("").Parse("")).Execute(os.Stdout, nil)`, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			source, file := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
			require.NoError(t, os.WriteFile(source, []byte("package main\n\nimport (\n\"runtime\"\n"+
				strings.ReplaceAll(row.imports, "; ", "\n")+"\n)\n\n"+canary+row.body+"\n}\n"), 0o600))
			build := exec.Command("go", "build", "-ldflags=-s -w", "-o", file, source)
			build.Dir, build.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=")
			out, err := build.CombinedOutput()
			require.NoError(t, err, "%s", out)
			if row.rejected {
				require.ErrorContains(t, checkMethods(file), "has every exported method")
			} else {
				require.NoError(t, checkMethods(file))
			}
		})
	}
}
