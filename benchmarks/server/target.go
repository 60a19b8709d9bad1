package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/kubernetes"
)

// A server is one in a process of its own, whose CPU and memory its metrics tell.
type server struct {
	Name  string `json:"name"`
	URL   string `json:"url"`
	Token string `json:"token"`
	// Etcd is the URL of the server's etcd; empty if it has none, or if it is not known.
	Etcd string `json:"etcd,omitempty"`
	stop func() error
}

// serve runs a server over a store in this process until its input ends.
func (f flags) serve(ctx context.Context, name string, in io.Reader, out io.Writer) (err error) {
	if name == floorName {
		return f.serveFloor(in, out)
	}
	s, err := storeOf(name)
	if err != nil {
		return err
	}
	records, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, records.close()) }()
	options := apiserver.Options{
		Store: records.Store, Limits: apiserver.Limits{Watches: 100_000, Connections: 100_000},
	}
	if !f.schemas {
		options.Validation = kubernetes.Validate
	}
	running, err := apiserver.Start(ctx, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, running.Close()) }()
	here := server{Name: name, URL: running.URL(), Token: running.Config().BearerToken, Etcd: records.etcd}
	if err := json.NewEncoder(out).Encode(here); err != nil {
		return err
	}
	return profiled(f.cpuprofile, func() error {
		_, err := io.Copy(io.Discard, in)
		return err
	})
}

// startServer starts a server over a store in a process of its own.
func (f flags) startServer(ctx context.Context, name string) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	profile := f.cpuprofile
	if profile != "" {
		profile += "." + name
	}
	return startProcess(ctx, "server over "+name, self, "-part", "serve:"+name, "-cpuprofile", profile,
		fmt.Sprintf("-schemas=%t", f.schemas), fmt.Sprintf("-floor=%d", f.floor))
}

// startProcess starts a program that prints a [server] and ends with its input.
func startProcess(ctx context.Context, what, program string, args ...string) (*server, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", cores)) // the same for all
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{stop: func() error { return errors.Join(in.Close(), cmd.Wait()) }}
	if err := json.NewDecoder(out).Decode(s); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", what, err), s.stop())
	}
	return s, nil
}

// transport returns the client of one HTTP/2 connection. The certificate is not checked: the
// benchmark is not about it.
func transport() http.RoundTripper { return transportOf(false) }

// transportOf returns the client of one HTTP/2 connection, or of HTTP/1.1.
func transportOf(http1 bool) http.RoundTripper {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(http1)
	protocols.SetHTTP2(!http1)
	return &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableCompression: true, //nolint:gosec // loopback
		Protocols: protocols, HTTP2: &http.HTTP2Config{StrictMaxConcurrentRequests: true},
	}
}

func (s *server) request(
	ctx context.Context, over http.RoundTripper, method, path, accept, contentType string, body []byte,
) (*http.Response, error) {
	q, err := http.NewRequestWithContext(ctx, method, s.URL+path, strings.NewReader(string(body)))
	if err != nil {
		return nil, err
	}
	q.Header.Set("Authorization", "Bearer "+s.Token)
	q.Header.Set("Accept", accept)
	if contentType != "" {
		q.Header.Set("Content-Type", contentType)
	}
	answer, err := over.RoundTrip(q)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode >= 300 {
		defer answer.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 1000))
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, text)
	}
	return answer, nil
}

// write sends a write that must succeed.
func (s *server) write(
	ctx context.Context, over http.RoundTripper, method, path, contentType string, body []byte,
) error {
	answer, err := s.request(ctx, over, method, path, "application/json", contentType, body)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}

// usage is what the process of a server has used.
type usage struct {
	cpu    time.Duration
	memory int64
}

// usage reads the metrics of the server.
func (s *server) usage(ctx context.Context, over http.RoundTripper) (u usage, err error) {
	answer, err := s.request(ctx, over, http.MethodGet, "/metrics", "text/plain", "", nil)
	if err != nil {
		return u, err
	}
	defer answer.Body.Close()
	return usageIn(answer.Body)
}

// etcdUsage reads the metrics of the server's etcd. They are zero if it has none.
func (s *server) etcdUsage(ctx context.Context) (u usage, err error) {
	if s.Etcd == "" {
		return u, nil
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Etcd+"/metrics", nil)
	if err != nil {
		return u, err
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		return u, err
	}
	defer answer.Body.Close()
	return usageIn(answer.Body)
}

// usageIn reads metrics.
func usageIn(metrics io.Reader) (u usage, err error) {
	lines := bufio.NewScanner(metrics)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, text, _ := strings.Cut(lines.Text(), " ")
		value, err := strconv.ParseFloat(text, 64)
		switch {
		case err != nil:
		case name == "process_cpu_seconds_total":
			u.cpu = time.Duration(value * float64(time.Second))
		case name == "process_resident_memory_bytes":
			u.memory = int64(value)
		}
	}
	if err := lines.Err(); err != nil {
		return u, err
	}
	if u.cpu == 0 {
		return u, errors.New("the server has no metric process_cpu_seconds_total")
	}
	return u, nil
}
