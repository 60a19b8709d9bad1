package envtest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/tenure-ssa/tenure/typed/openapi"
)

// DefaultFolder returns the folder for a tenure binary in the user's cache.
func DefaultFolder(binary string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(binary))
	name := strings.TrimPrefix(openapi.KubernetesVersion, "v") + "-" + hex.EncodeToString(sum[:4])
	return filepath.Join(cache, "tenure", "envtest", name), nil
}

// MakeFolder creates kube-apiserver, etcd and kubectl in a folder, for envtest. The first two are links to the tenure
// binary. The third is a link to the first kubectl in path, a list of folders like PATH; without one, it is a link to
// the tenure binary, too (see noKubectl). If policyFile is not "", the kube-apiserver checks writes against a copy of
// this policy. If MakeFolder would replace or remove a file that it did not make, it fails and changes nothing.
func MakeFolder(folder, binary, path, policyFile string) error {
	if err := checkPolicy(policyFile); err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	replaced := []string{policyName, reportName}
	target, kept := binary, filepath.Join(folder, exe("tenure"))
	isTemporary := strings.Contains(filepath.ToSlash(binary), "/go-build")
	if isTemporary {
		target = kept // go run deletes its program when it ends, so keep a copy
		replaced = append(replaced, exe("tenure"))
	}
	kubectl := findKubectl(folder, path)
	if kubectl == "" {
		kubectl = target // runs noKubectl
	}
	links := map[string]string{exe("kube-apiserver"): target, exe("etcd"): target, exe("kubectl"): kubectl}
	for name, target := range links {
		if isLink(filepath.Join(folder, name), target) {
			delete(links, name)
		}
	}
	if err := checkMade(folder, slices.AppendSeq(replaced, maps.Keys(links))); err != nil {
		return err
	}
	if isTemporary {
		if err := copyFile(binary, kept); err != nil {
			return err
		}
	}
	for name, target := range links {
		if err := link(target, filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	return copyPolicy(policyFile, folder)
}

func exe(name string) string {
	if runtime.GOOS == "windows" {
		return name + ".exe"
	}
	return name
}

// findKubectl returns the first kubectl in path, a list of folders like PATH. It ignores folder, and returns "" if
// there is no kubectl.
func findKubectl(folder, path string) string {
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) || isSame(dir, folder) {
			continue
		}
		found := filepath.Join(dir, exe("kubectl"))
		if _, err := exec.LookPath(found); err == nil {
			return found
		}
	}
	return ""
}

// isSame reports whether two paths lead to the same folder.
func isSame(a, b string) bool {
	one, errA := os.Stat(a)
	other, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(one, other)
}

// isLink reports whether name is a link to target.
func isLink(name, target string) bool {
	linked, err := os.Readlink(name)
	return err == nil && linked == target
}

// link makes name a link to target. It does so atomically, because another process may be using name. If links are not
// allowed, it makes a copy.
func link(target, name string) error {
	temporary, err := freeName(name)
	if err != nil {
		return err
	}
	defer os.Remove(temporary)
	if err := os.Symlink(target, temporary); err != nil {
		return copyFile(target, name)
	}
	return install(temporary, name)
}

// freeName returns an unused name in the same folder as name.
func freeName(name string) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return "", err
	}
	return f.Name(), errors.Join(f.Close(), os.Remove(f.Name()))
}

// copyFile copies a file with its mode and time. It does nothing if the destination has the same size and time.
func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	info, err := source.Stat()
	if err != nil {
		return err
	}
	if have, err := os.Stat(to); err == nil && have.Size() == info.Size() && have.ModTime().Equal(info.ModTime()) {
		return nil
	}
	out, err := os.CreateTemp(filepath.Dir(to), filepath.Base(to)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	_, err = io.Copy(out, source)
	if err = errors.Join(err, out.Chmod(info.Mode().Perm()), out.Close()); err != nil {
		return fmt.Errorf("copying %s: %w", from, err)
	}
	if err := os.Chtimes(out.Name(), info.ModTime(), info.ModTime()); err != nil {
		return err
	}
	if err := install(out.Name(), to); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
