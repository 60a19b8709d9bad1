// Package testbed is where benchmarks of commands run: the command, built from the tree, and an API server in this
// process that it talks to.
package testbed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/tenure-ssa/tenure/apiserver"
)

// Testbed has a command, a server and a folder, until it is closed.
type Testbed struct {
	Dir    string   // for files of the benchmark
	Tenure string   // the command
	Flags  []string // of the command, and of kubectl, to reach the server
	server *apiserver.Running
	client *http.Client
}

// New builds the command and starts the server.
func New(ctx context.Context) (_ *Testbed, err error) {
	dir, err := os.MkdirTemp("", "tenure-benchmark-")
	if err != nil {
		return nil, err
	}
	b := &Testbed{Dir: dir, Tenure: filepath.Join(dir, "tenure")}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close())
		}
	}()
	build := exec.CommandContext(ctx, "go", "build", "-o", b.Tenure, "github.com/tenure-ssa/tenure/cmd/tenure")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build: %w: %s", err, out)
	}
	config := filepath.Join(dir, "kubeconfig")
	b.Flags = []string{"--kubeconfig", config, "--cache-dir", filepath.Join(dir, "cache")}
	if b.server, err = apiserver.Start(ctx, apiserver.Options{Kubeconfig: config}); err != nil {
		return nil, err
	}
	b.client, err = rest.HTTPClientFor(b.server.Config())
	return b, err
}

// Close stops the server and removes the folder.
func (b *Testbed) Close() error {
	var err error
	if b.server != nil {
		err = b.server.Close()
	}
	return errors.Join(err, os.RemoveAll(b.Dir))
}

// Create creates an object.
func (b *Testbed) Create(ctx context.Context, path, manager string, tree any) error {
	return b.send(ctx, http.MethodPost, path+"?fieldManager="+manager, "application/json", tree)
}

// Apply applies an object, with force.
func (b *Testbed) Apply(ctx context.Context, path, manager string, tree any) error {
	return b.send(ctx, http.MethodPatch, path+"?force=true&fieldManager="+manager, string(types.ApplyYAMLPatchType), tree)
}

// send sends a write, which has to be accepted.
func (b *Testbed) send(ctx context.Context, method, path, contentType string, tree any) error {
	body, err := json.Marshal(tree)
	if err != nil {
		return err
	}
	q, err := http.NewRequestWithContext(ctx, method, b.server.URL()+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	q.Header.Set("Content-Type", contentType)
	response, err := b.client.Do(q)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %s: %s", method, path, response.Status, text)
	}
	return err
}

// Each calls a function with the numbers below count, several at a time, and returns its errors.
func Each(count int, do func(i int) error) error {
	errs := make([]error, count)
	slots := make(chan struct{}, runtime.GOMAXPROCS(0)*4)
	var wait sync.WaitGroup
	for i := range count {
		slots <- struct{}{}
		wait.Go(func() {
			errs[i] = do(i)
			<-slots
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// ResidentSet returns the largest resident set of a process that has ended, in bytes; 0 where the system does not
// report it.
func ResidentSet(state *os.ProcessState) int64 {
	if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
		return usage.Maxrss << 10
	}
	return 0
}
