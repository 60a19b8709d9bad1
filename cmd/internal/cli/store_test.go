//go:build !windows

package cli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// asProcess returns the command tenure, as a process of its own.
func asProcess(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), commandVariable+"=yes")
	return cmd
}

// TestStoreOfManyProcesses applies objects to one store from three concurrent processes. Some applies fail and some
// processes are killed. Every apply that was reported as successful must be stored afterwards.
func TestStoreOfManyProcesses(t *testing.T) {
	dir := t.TempDir()
	manifest := func(name, text string) string {
		file := strings.ReplaceAll(name, "!", "") + ".yaml"
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(fmt.Sprintf(
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {a: %s}\n", name, text)), 0o600))
		return file
	}
	bad := manifest("Bad!", "x")
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 12 {
		store := fmt.Sprintf("s%d.db", round) // missing: each process may create it, a failing one removes it
		var wg sync.WaitGroup
		reported := make([]bool, 3)
		for i := range reported {
			file, isKilled := bad, random.IntN(6) == 0
			if random.IntN(3) > 0 {
				file = manifest(fmt.Sprintf("ok-%d-%d", round, i), "x")
			}
			life, delay := time.Duration(random.IntN(150))*time.Millisecond, time.Duration(random.IntN(60))*time.Millisecond
			wg.Go(func() {
				time.Sleep(delay) // random order of the processes
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if isKilled {
					time.AfterFunc(life, cancel) // SIGKILL
				}
				out, err := asProcess(ctx, dir, "apply", "--store", store, "-f", file).CombinedOutput()
				reported[i] = strings.Contains(string(out), "serverside-applied")
				var exit *exec.ExitError
				isLate := isKilled && errors.Is(err, context.Canceled) // the process had ended before the signal
				if err != nil && !isLate && !errors.As(err, &exit) {
					t.Errorf("%v: %s", err, out)
				}
			})
		}
		wg.Wait()
		for i, isReported := range reported {
			if isReported {
				name := fmt.Sprintf("ok-%d-%d", round, i)
				out, err := asProcess(t.Context(), dir, "get", "configmap", name, "--store", store, "-o", "name").CombinedOutput()
				require.NoError(t, err, "%s was reported: %s", name, out)
			}
		}
	}
}

// With -v=6, the command logs its requests as kubectl does. Without it, the command logs nothing.
func TestVerbosity(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "k"), []byte(kubeconfig(server.URL)), 0o600))
	for level, logs := range map[string]bool{"0": false, "6": true} {
		out, err := asProcess(t.Context(), dir, "blame", "pods", "--kubeconfig", "k", "-v="+level).CombinedOutput()
		require.Error(t, err)
		require.Equal(t, logs, strings.Contains(string(out), `verb="GET"`), "%s: %s", level, out)
	}
	out, err := asProcess(t.Context(), dir, "blame", "pods", "--kubeconfig", "k", "-v=much").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "-v")
}
