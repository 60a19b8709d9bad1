package envtest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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
// binary, and kubectl is a link to the kubectl on path, which has the value of PATH.
func MakeFolder(folder, binary, path string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if strings.Contains(filepath.ToSlash(binary), "/go-build") {
		// go run deletes its program when it ends, so keep a copy.
		kept := filepath.Join(folder, exe("tenure"))
		if err := copyProgram(binary, kept); err != nil {
			return err
		}
		binary = kept
	}
	kubectl := findKubectl(folder, path)
	if kubectl == "" {
		kubectl = binary // runs noKubectl
	}
	for name, target := range map[string]string{"kube-apiserver": binary, "etcd": binary, "kubectl": kubectl} {
		if err := link(target, filepath.Join(folder, exe(name))); err != nil {
			return err
		}
	}
	return nil
}

func exe(name string) string {
	if runtime.GOOS == "windows" {
		return name + ".exe"
	}
	return name
}

// findKubectl returns the kubectl on path, ignoring folder; "" if there is none.
func findKubectl(folder, path string) string {
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) || filepath.Clean(dir) == filepath.Clean(folder) {
			continue
		}
		found := filepath.Join(dir, exe("kubectl"))
		if _, err := exec.LookPath(found); err == nil {
			return found
		}
	}
	return ""
}

// link atomically creates or replaces the link name to target, because another process may use the name. If links are
// not allowed, it makes a copy.
func link(target, name string) error {
	if linked, err := os.Readlink(name); err == nil && linked == target {
		return nil
	}
	temporary, err := freeName(name)
	if err != nil {
		return err
	}
	defer os.Remove(temporary)
	if err := os.Symlink(target, temporary); err != nil {
		return copyProgram(target, name)
	}
	return os.Rename(temporary, name)
}

// freeName returns an unused name in the same folder as name.
func freeName(name string) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return "", err
	}
	return f.Name(), errors.Join(f.Close(), os.Remove(f.Name()))
}

// copyProgram copies a program, unless to is already a copy of it.
func copyProgram(from, to string) error {
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
	if err = errors.Join(err, out.Chmod(0o755), out.Close()); err != nil {
		return fmt.Errorf("copying %s: %w", from, err)
	}
	if err := os.Chtimes(out.Name(), info.ModTime(), info.ModTime()); err != nil {
		return err
	}
	if err := os.Rename(out.Name(), to); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
