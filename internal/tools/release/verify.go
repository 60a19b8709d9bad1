package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/CycloneDX/cyclonedx-go"
	"golang.org/x/mod/semver"
	"sigs.k8s.io/yaml"
)

// verifyDist checks what dist wrote, as somebody who downloads it does: the checksums, each archive with its SBOM, the
// krew manifest by krew's own checks and by an installation, and the binary of the image in a file system that has
// nothing else.
func (w *workspace) verifyDist(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := verifyChecksums(dir); err != nil {
		return err
	}
	manifest, err := readKrewManifest(dir)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "verify")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	for _, p := range manifest.Spec.Platforms {
		if err := w.verifyPlatform(dir, scratch, &p); err != nil {
			return err
		}
	}
	return errors.Join(w.verifyKrew(dir, scratch, manifest), w.verifyAlone(dir, scratch))
}

// verifyChecksums compares every file with its line in the list.
func verifyChecksums(dir string) error {
	data, err := os.ReadFile(filepath.Join(dir, checksumFile))
	if err != nil {
		return err
	}
	listed := map[string]string{}
	for line := range strings.Lines(string(data)) {
		sum, name, found := strings.Cut(strings.TrimSpace(line), "  ")
		if !found {
			return fmt.Errorf("%s: expected a checksum and a name, got %q", checksumFile, line)
		}
		listed[name] = sum
	}
	names, err := distFiles(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		sum, err := fileSum(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if listed[name] != sum {
			return fmt.Errorf("%s: has the checksum %s, %s has %q", name, sum, checksumFile, listed[name])
		}
		delete(listed, name)
	}
	for name := range listed {
		return fmt.Errorf("%s: has a checksum and does not exist", name)
	}
	return nil
}

// krewPlugin is what verify reads of the manifest; krew's own check reads the rest.
type krewPlugin struct {
	Spec struct {
		Version   string         `json:"version"`
		Platforms []krewPlatform `json:"platforms"`
	} `json:"spec"`
}

type krewPlatform struct {
	URI      string `json:"uri"`
	SHA256   string `json:"sha256"`
	Bin      string `json:"bin"`
	Selector struct {
		MatchLabels struct{ OS, Arch string } `json:"matchLabels"`
	} `json:"selector"`
}

func readKrewManifest(dir string) (*krewPlugin, error) {
	data, err := os.ReadFile(filepath.Join(dir, krewFile))
	if err != nil {
		return nil, err
	}
	var out krewPlugin
	if err := yaml.Unmarshal(data, &out); err != nil {
		return nil, fmt.Errorf("%s: %w", krewFile, err)
	}
	if !semver.IsValid(out.Spec.Version) || len(out.Spec.Platforms) == 0 {
		return nil, fmt.Errorf("%s: expected a version and platforms", krewFile)
	}
	return &out, nil
}

// verifyPlatform checks that the archive is the one of the manifest, that it has what it should, that its binary passes
// the checks, and that the SBOM lists what the binary was built from.
func (w *workspace) verifyPlatform(dir, scratch string, p *krewPlatform) error {
	name := p.URI[strings.LastIndex(p.URI, "/")+1:]
	sum, err := fileSum(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	if sum != p.SHA256 {
		return fmt.Errorf("%s: has the checksum %s, the manifest of krew has %s", name, sum, p.SHA256)
	}
	files, err := unpack(filepath.Join(dir, name))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, want := range []string{p.Bin, "LICENSE", "man/tenure.1", "man/tenure-plan.1", "completions/tenure.bash"} {
		if len(files[want]) == 0 {
			return fmt.Errorf("%s: has no file %s", name, want)
		}
	}
	target := platform{p.Selector.MatchLabels.OS, p.Selector.MatchLabels.Arch}
	binary := filepath.Join(scratch, name+"-binary")
	if err := os.WriteFile(binary, files[p.Bin], 0o755); err != nil {
		return err
	}
	if err := checkBinary(binary, target); err != nil {
		return err
	}
	base := strings.TrimSuffix(strings.TrimSuffix(name, ".zip"), ".tar.gz")
	count, err := verifySBOM(filepath.Join(dir, base+".cdx.json"), binary)
	if err != nil {
		return err
	}
	fmt.Fprintf(w.out, "%s: %d files, %.1f MB unpacked, an SBOM of %d modules\n", name, len(files),
		float64(len(files[p.Bin]))/1e6, count)
	return nil
}

// unpack returns the files of an archive.
func unpack(file string) (map[string][]byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	if strings.HasSuffix(file, ".zip") {
		r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return nil, err
		}
		for _, f := range r.File {
			entry, err := f.Open()
			if err != nil {
				return nil, err
			}
			content, err := io.ReadAll(entry)
			if err := errors.Join(err, entry.Close()); err != nil {
				return nil, err
			}
			out[f.Name] = content
		}
		return out, nil
	}
	uncompressed, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	for r := tar.NewReader(uncompressed); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if out[header.Name], err = io.ReadAll(r); err != nil {
			return nil, err
		}
	}
}

// verifySBOM reads an SBOM, and requires a component for every module of a binary. It returns how many there are.
func verifySBOM(file, binary string) (int, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(data), cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		return 0, fmt.Errorf("%s: %w", file, err)
	}
	if bom.Components == nil || bom.Metadata == nil || bom.Metadata.Component == nil {
		return 0, fmt.Errorf("%s: expected components and metadata", file)
	}
	listed := map[string]bool{}
	for _, c := range *bom.Components {
		if c.Version == "" || !strings.HasPrefix(c.PackageURL, "pkg:golang/"+c.Name+"@") {
			return 0, fmt.Errorf("%s: component %q: expected a version and a package URL, got %q", file, c.Name, c.PackageURL)
		}
		listed[c.Name] = true
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return 0, err
	}
	for _, m := range info.Deps {
		if !listed[m.Path] {
			return 0, fmt.Errorf("%s: has no component for %s", file, m.Path)
		}
	}
	return len(*bom.Components), nil
}

// verifyKrew runs krew's check of manifests, which krew's index runs as well, and installs the plugin from its archive
// if there is one for this computer.
func (w *workspace) verifyKrew(dir, scratch string, manifest *krewPlugin) error {
	tools := filepath.Join(w.root, "internal", "tools")
	env := append(w.env, "GOWORK=off")
	file := filepath.Join(dir, krewFile)
	if _, err := capture(tools, env, "go", "tool", "sigs.k8s.io/krew/cmd/validate-krew-manifest",
		"-manifest", file, "-skip-install"); err != nil {
		return err
	}
	fmt.Fprintf(w.out, "%s: valid\n", krewFile)
	for _, p := range manifest.Spec.Platforms {
		if p.Selector.MatchLabels.OS != runtime.GOOS || p.Selector.MatchLabels.Arch != runtime.GOARCH {
			continue
		}
		root := filepath.Join(scratch, "krew")
		archive := filepath.Join(dir, p.URI[strings.LastIndex(p.URI, "/")+1:])
		if _, err := capture(tools, append(env, "KREW_ROOT="+root, "KREW_NO_UPGRADE_CHECK=1"), "go", "tool",
			"sigs.k8s.io/krew/cmd/krew", "install", "--manifest", file, "--archive", archive); err != nil {
			return err
		}
		help, err := capture(scratch, nil, filepath.Join(root, "bin", "kubectl-tenure"), "--help")
		if err != nil {
			return err
		}
		if !strings.Contains(help, "kubectl tenure") {
			return fmt.Errorf("kubectl-tenure --help: expected the help of a plugin, got:\n%s", help)
		}
		version, err := capture(scratch, nil, filepath.Join(root, "bin", "kubectl-tenure"), "version")
		if err != nil {
			return err
		}
		if !strings.HasPrefix(version, "tenure "+manifest.Spec.Version+" ") {
			return fmt.Errorf("kubectl-tenure version: expected %s, got %q", manifest.Spec.Version, version)
		}
		fmt.Fprintf(w.out, "%s: installed by krew, and runs as kubectl tenure\n", krewFile)
	}
	return nil
}

// verifyAlone runs the binary of the image in a file system with nothing else, as in an image from scratch. That needs
// root, and Linux.
func (w *workspace) verifyAlone(dir, scratch string) error {
	binary := filepath.Join(dir, imageDir, "linux", runtime.GOARCH, "tenure")
	if _, err := os.Stat(binary); runtime.GOOS != "linux" || os.Getuid() != 0 || err != nil {
		fmt.Fprintln(w.out, "image: not run: that needs root, and a binary for this computer")
		return nil
	}
	data, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	root := filepath.Join(scratch, "root")
	if err := errors.Join(os.MkdirAll(filepath.Join(root, "data"), 0o777), os.Chmod(filepath.Join(root, "data"), 0o777),
		os.WriteFile(filepath.Join(root, "tenure"), data, 0o755)); err != nil {
		return err
	}
	manifest := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: b}\n"
	for _, args := range [][]string{
		{"version"}, {"apply", "-f", "-", "--field-manager", "alice"}, {"blame", "configmap/c", "--store", "tenure.db"},
	} {
		command := exec.Command("/tenure", args...)
		command.Dir, command.Env = "/data", []string{"HOME=/data"}
		command.Stdin = strings.NewReader(manifest)
		alone(command, root)
		if out, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("tenure %s, alone: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	fmt.Fprintln(w.out, "image: the binary runs alone, as user 65532")
	return nil
}

// alone makes a command run with another root, as the user of the image.
func alone(command *exec.Cmd, root string) {
	command.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
}
