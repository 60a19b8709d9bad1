package e2e

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenure-ssa/tenure/apiserver"
)

var update = flag.Bool("update", false, "write what is got as what is expected, in testdata/kubectl")

// TestKubectl runs the scripts of testdata/kubectl, each with a new server whose clock stands still. It uses the
// kubectl of go.mod and, if the machine has one, the kubectl of the machine. In a script, the condition [machine] is
// true for the kubectl of the machine.
func TestKubectl(t *testing.T) {
	t.Run("go.mod", func(t *testing.T) { runScripts(t, "") })
	t.Run("machine", func(t *testing.T) {
		if machineKubectl == "" {
			t.Skip("there is no kubectl in PATH (Debian: apt-get install kubernetes-client)")
		}
		out, err := exec.Command(machineKubectl, "version", "--client").CombinedOutput()
		require.NoError(t, err)
		t.Logf("%s: %s", machineKubectl, out)
		runScripts(t, machineKubectl)
	})
}

func runScripts(t *testing.T, machine string) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/kubectl",
		UpdateScripts:       *update && machine == "",
		RequireExplicitExec: true,
		Setup:               func(env *testscript.Env) error { return setup(env, machine) },
		Condition: func(condition string) (bool, error) {
			return condition == "machine" && machine != "", nil
		},
	})
}

// now is the time at which scripts run.
var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func setup(env *testscript.Env, machine string) error {
	var uid atomic.Int64
	server, err := apiserver.Start(context.Background(), apiserver.Options{
		Now:        func() time.Time { return now },
		NewUID:     func() types.UID { return types.UID("uid-" + strconv.FormatInt(uid.Add(1), 10)) },
		Kubeconfig: filepath.Join(env.WorkDir, "kubeconfig"),
	})
	if err != nil {
		return err
	}
	env.Defer(func() { _ = server.Close() })
	if machine != "" {
		bin := filepath.Join(env.WorkDir, "bin")
		if err := os.Mkdir(bin, 0o755); err != nil {
			return err
		}
		if err := os.Symlink(machine, filepath.Join(bin, "kubectl")); err != nil {
			return err
		}
		env.Setenv("PATH", bin+string(os.PathListSeparator)+env.Getenv("PATH"))
	}
	env.Setenv("KUBECONFIG", filepath.Join(env.WorkDir, "kubeconfig"))
	env.Setenv("HOME", env.WorkDir)
	return nil
}
