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
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// server is a server in a separate process. Its metrics report CPU time and memory.
type server struct {
	URL   string `json:"url"`
	Token string `json:"token"`
	// Etcd is the URL of the server's etcd; empty if it has none, or if it is unknown.
	Etcd string `json:"etcd,omitempty"`
	stop func() error
}

// program starts a server.
type program struct {
	path string
	args []string
	runs *server // a server that already runs
}

// programs returns the program of each server, and builds it if necessary. Building is not measured.
func (b *bench) programs(ctx context.Context) (out []program, err error) {
	for _, name := range b.names {
		p := program{args: []string{"-serve"}}
		switch {
		case strings.Contains(name, "://"):
			p.runs = &server{URL: strings.TrimSuffix(name, "/"), Token: b.token, stop: func() error { return nil }}
		case name == "tenure":
			p.path, err = os.Executable()
		default:
			if p.args = []string{"serve", "--build", name}; name != "stock" && name != "linked" {
				p.args[1] = "--binary"
			}
			p.path, err = buildHost(ctx)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// buildHost builds the command that starts a kube-apiserver, and returns its path.
func buildHost(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(cache, "tenure-hosts", "bin", "serve")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, "github.com/tenure-ssa/tenure/hosts/kube-apiserver")
	cmd.Stderr = os.Stderr
	return path, cmd.Run()
}

// start starts a program that prints a [server] and stops when its input ends.
func (p program) start(ctx context.Context, more ...string) (*server, error) {
	if p.runs != nil {
		return p.runs, nil
	}
	cmd := exec.CommandContext(ctx, p.path, append(p.args, more...)...)
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), "GOMAXPROCS=2") // the same for all servers
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
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// transport returns a client with one HTTP/2 connection. It does not check certificates, because servers generate their
// own.
func transport() http.RoundTripper {
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	return &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableCompression: true, //nolint:gosec // loopback
		Protocols: protocols,
	}
}

// open sends a request, which must succeed.
func (s *server) open(ctx context.Context, over http.RoundTripper, r request) (io.ReadCloser, error) {
	q, err := http.NewRequestWithContext(ctx, r.method, s.URL+r.path, strings.NewReader(string(r.body)))
	if err != nil {
		return nil, err
	}
	q.Header.Set("Authorization", "Bearer "+s.Token)
	q.Header.Set("Accept", "application/json")
	if r.contentType != "" {
		q.Header.Set("Content-Type", r.contentType)
	}
	answer, err := over.RoundTrip(q)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode >= 300 {
		defer answer.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 1000))
		return nil, fmt.Errorf("%s %s: %s: %s", r.method, r.path, answer.Status, text)
	}
	return answer.Body, nil
}

// send sends a request, and reads the response.
func (s *server) send(ctx context.Context, over http.RoundTripper, r request) error {
	body, err := s.open(ctx, over, r)
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = io.Copy(io.Discard, body)
	return err
}

// usage reads the CPU time and memory that the server's process has used.
func (s *server) usage(ctx context.Context) (cpu time.Duration, memory int64, err error) {
	q := request{http.MethodGet, "/metrics", "", nil}
	body, err := s.open(ctx, transport(), q)
	if err != nil {
		return 0, 0, err
	}
	defer body.Close()
	return usageIn(body)
}

// etcdCPU reads the CPU time of the server's etcd; 0 if it has none.
func (s *server) etcdCPU() (time.Duration, error) {
	if s.Etcd == "" {
		return 0, nil
	}
	answer, err := http.Get(s.Etcd + "/metrics")
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	cpu, _, err := usageIn(answer.Body)
	return cpu, err
}

func usageIn(metrics io.Reader) (cpu time.Duration, memory int64, err error) {
	lines := bufio.NewScanner(metrics)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, text, _ := strings.Cut(lines.Text(), " ")
		value, err := strconv.ParseFloat(text, 64)
		switch {
		case err != nil:
		case name == "process_cpu_seconds_total":
			cpu = time.Duration(value * float64(time.Second))
		case name == "process_resident_memory_bytes":
			memory = int64(value)
		}
	}
	if err := lines.Err(); err != nil {
		return 0, 0, err
	}
	if cpu == 0 {
		return 0, 0, errors.New("the server has no metric process_cpu_seconds_total")
	}
	return cpu, memory, nil
}

// spent is the cost of a workload's requests.
type spent struct {
	count              int
	elapsed, cpu, etcd time.Duration
}

func (s spent) each(d time.Duration) time.Duration { return d / time.Duration(s.count) }

// own is the number of objects to which each client writes in turn.
const own = 8

// measure lets all clients send a workload's requests for some time, and adds the requests' cost to *into.
func (s *server) measure(ctx context.Context, b *bench, load workload, isFirst bool, into *spent) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop() // stops the watches
	if isFirst {
		if err := s.setUp(ctx, b, load); err != nil {
			return err
		}
	}
	watching := transport()
	for range load.watches {
		body, err := s.open(ctx, watching, request{http.MethodGet, deployments + "?watch=1", "", nil})
		if err != nil {
			return err
		}
		go io.Copy(io.Discard, body)
	}
	overs := make([]http.RoundTripper, b.clients)
	for i := range overs {
		overs[i] = transport()
	}
	if _, err := s.during(ctx, b.run/5, overs, load); err != nil {
		return err
	}
	cpu, _, err := s.usage(ctx)
	if err != nil {
		return err
	}
	etcd, err := s.etcdCPU()
	if err != nil {
		return err
	}
	begin := time.Now()
	count, err := s.during(ctx, b.run, overs, load)
	if err != nil {
		return err
	}
	into.count, into.elapsed = into.count+count, into.elapsed+time.Since(begin)
	cpuAfter, _, err := s.usage(ctx)
	if err != nil {
		return err
	}
	etcdAfter, err := s.etcdCPU()
	into.cpu, into.etcd = into.cpu+cpuAfter-cpu, into.etcd+etcdAfter-etcd
	return err
}

// setUp creates the objects of a workload. It retries for some time, because kube-apiserver serves a new kind only some
// time after its definition was stored.
func (s *server) setUp(ctx context.Context, b *bench, load workload) error {
	if load.setUp == nil {
		return nil
	}
	over := transport()
	for i := range b.clients * own {
		r := load.setUp(objectName(i))
		limit := time.Now().Add(30 * time.Second)
		err := s.send(ctx, over, r)
		for ; err != nil && time.Now().Before(limit); err = s.send(ctx, over, r) {
			time.Sleep(time.Second)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func objectName(i int) string { return fmt.Sprintf("w-%d", i) }

// during lets all clients send requests for some time, and returns the number of responses.
func (s *server) during(ctx context.Context, run time.Duration, overs []http.RoundTripper, load workload) (int, error) {
	counts, errs := make([]int, len(overs)), make([]error, len(overs))
	var clients sync.WaitGroup
	start := time.Now()
	for i, over := range overs {
		clients.Go(func() {
			// Each run uses different numbers, whatever runs came before.
			for n := int(start.UnixNano() % 1_000_000_000); time.Since(start) < run; n++ {
				if errs[i] = s.send(ctx, over, load.request(objectName(i*own+n%own), n)); errs[i] != nil {
					return
				}
				counts[i]++
			}
		})
	}
	clients.Wait()
	total := 0
	for _, n := range counts {
		total += n
	}
	return total, errors.Join(errs...)
}
