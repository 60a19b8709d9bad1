// Package assets finds the programs that envtest needs in tests.
package assets

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Variable is the environment variable with the folder of kube-apiserver and etcd.
const Variable = "KUBEBUILDER_ASSETS"

// Set sets the variable to the folder of tenure envtest, unless it is already set.
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
