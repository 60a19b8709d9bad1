// Command record records traces again. It sends the requests of each trace in a folder to a new kube-apiserver,
// replaces the responses in the trace, and prints the differences from the earlier responses.
//
//	go build -o SERVE ./hosts/kube-apiserver
//	go run ./test/record --serve SERVE --server PATH testdata/traces
//
// For each trace, SERVE starts the kube-apiserver at PATH with its own etcd. Package apiserver/recorded describes
// traces.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/tenure-ssa/tenure/apiserver/recorded"
	"github.com/tenure-ssa/tenure/typed/openapi"
	"k8s.io/client-go/rest"
)

func main() {
	var r recorder
	flag.StringVar(&r.serve, "serve", "", "`path` of the command hosts/kube-apiserver")
	flag.StringVar(&r.server, "server", "", "`path` of kube-apiserver")
	flag.Parse()
	if err := r.record(context.Background(), flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

type recorder struct {
	serve, server string
}

func (r *recorder) record(ctx context.Context, folders []string) error {
	traces, err := recorded.Load(folders...)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tenure-record-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary, err := filepath.Abs(r.server)
	if err != nil {
		return err
	}
	r.server = filepath.Join(dir, "kube-apiserver") // the name of the program becomes the name of its field manager
	if err := os.Symlink(binary, r.server); err != nil {
		return err
	}
	for _, trace := range traces {
		if err := r.trace(ctx, trace); err != nil {
			return fmt.Errorf("%s: %w", trace.Name, err)
		}
	}
	return nil
}

// trace records a trace, and writes it to its file, whose path is the name of the trace.
func (r *recorder) trace(ctx context.Context, trace *recorded.Trace) (err error) {
	path := trace.Name
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var written struct{ Name string }
	if err := json.Unmarshal(data, &written); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, r.serve, "serve", "--binary", r.server)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe() // the server ends when this pipe is closed
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close(), cmd.Wait()) }()
	var started struct{ URL, Token string }
	if err := json.NewDecoder(out).Decode(&started); err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(&rest.Config{
		Host: started.URL, BearerToken: started.Token,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true}, // the server's certificate is its own
		Timeout:         time.Minute,
	})
	if err != nil {
		return err
	}
	differences, err := recorded.OfClient(client, started.URL).Record(ctx, trace)
	if err != nil {
		return err
	}
	for step := range trace.Steps {
		if difference, ok := differences[step]; ok {
			fmt.Printf("%s, step %d: %s\n", path, step, difference)
		}
	}
	trace.Name, trace.Server = written.Name, "kube-apiserver "+openapi.KubernetesVersion
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(trace); err != nil {
		return err
	}
	return os.WriteFile(path, text.Bytes(), 0o644)
}
