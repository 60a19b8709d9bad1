// Package assets finds the programs of envtest for the tests.
package assets

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Variable names the folder of kube-apiserver and etcd.
const Variable = "KUBEBUILDER_ASSETS"

// Set sets the folder to the one of tenure envtest, unless it is set.
func Set() error {
	if os.Getenv(Variable) != "" {
		return nil
	}
	_, file, _, _ := runtime.Caller(0)
	cmd := exec.Command("go", "run", "./cmd/tenure", "envtest")
	cmd.Dir = filepath.Join(filepath.Dir(file), "..", "..", "..", "..", "..")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	return os.Setenv(Variable, strings.TrimSpace(string(out)))
}
