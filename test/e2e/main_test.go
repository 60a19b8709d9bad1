package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
	"k8s.io/component-base/cli"
	"k8s.io/klog/v2"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/tenure-ssa/tenure/apiserver"
)

func TestMain(m *testing.M) {
	if value := os.Getenv(servedStore); value != "" {
		var store served
		err := json.Unmarshal([]byte(value), &store)
		if err = errors.Join(err, store.run()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	// testscript puts kubectl of go.mod in front.
	machineKubectl, _ = exec.LookPath("kubectl")
	// Clients log what they then return as an error.
	klog.SetLogger(logr.Discard())
	testscript.Main(m, map[string]func(){"kubectl": kubectl, "ages": ages})
}

// machineKubectl is the kubectl that the machine has; empty if it has none.
var machineKubectl string

// kubectl is kubectl at the version of go.mod: this binary, called by that name.
func kubectl() {
	klog.ClearLogger()
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}

var (
	age     = regexp.MustCompile(`\b(\d+y)?\d+[dy]\b`)
	padding = regexp.MustCompile(` {2,}`)
)

// ages runs a command and prints AGE in place of ages. The clock of a script does not move, but a server computes ages
// by the clock of the machine.
func ages() {
	out, err := exec.Command(os.Args[1], os.Args[2:]...).Output()
	fmt.Print(padding.ReplaceAllString(age.ReplaceAllString(string(out), "AGE"), "  "))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// start starts a server that ends with the test.
func start(t testing.TB, options apiserver.Options) *apiserver.Running {
	server, err := apiserver.Start(context.Background(), options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	return server
}

// duration is how long a test loads a server.
func duration(t testing.TB) time.Duration {
	text := os.Getenv("E2E_DURATION")
	if text == "" {
		return 3 * time.Second
	}
	d, err := time.ParseDuration(text)
	require.NoError(t, err)
	return d
}

// kills is how often a test kills a server.
func kills(t testing.TB) int {
	text := os.Getenv("E2E_KILLS")
	if text == "" {
		return 4
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}
