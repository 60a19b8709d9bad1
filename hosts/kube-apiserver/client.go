package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tenure-ssa/tenure/hosts/internal/cluster"
)

// clients is how many send requests at a time.
const clients = 4

// target is a server that is sent requests.
type target struct {
	*cluster.Server
	clients [clients]*http.Client
	bodies  sync.Map // of requests, by object
}

func newTarget(s *cluster.Server) *target {
	t := &target{Server: s}
	for i := range t.clients {
		t.clients[i] = cluster.Client()
	}
	return t
}

// request is what a client sends.
type request struct {
	method, path, contentType string
	body                      []byte
}

// send sends a request and returns the code and the body of the response.
func (t *target) send(client int, r request) (int, []byte, error) {
	req, err := http.NewRequestWithContext(context.Background(), r.method, t.URL+r.path, bytes.NewReader(r.body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+cluster.Token)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "bench")
	if r.contentType != "" {
		req.Header.Set("Content-Type", r.contentType)
	}
	res, err := t.clients[client].Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	return res.StatusCode, out, err
}

// must sends a request that has to succeed.
func (t *target) must(method, path, contentType string, body []byte) ([]byte, error) {
	code, out, err := t.send(0, request{method, path, contentType, body})
	if err == nil && code/100 != 2 {
		err = fmt.Errorf("%d %s", code, out[:min(len(out), 600)])
	}
	if err != nil {
		return nil, fmt.Errorf("server %s: %s %s: %w", t.Name, method, path, err)
	}
	return out, nil
}

// ticks is how many parts of a second Linux counts CPU in.
const ticks = 100

// cpu returns the seconds of CPU that the server has taken.
func (t *target) cpu() (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", t.Pid()))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+2:]))
	user, err1 := strconv.ParseFloat(fields[11], 64)
	system, err2 := strconv.ParseFloat(fields[12], 64)
	if err1 != nil || err2 != nil {
		return 0, fmt.Errorf("/proc/%d/stat: %q", t.Pid(), text)
	}
	return (user + system) / ticks, nil
}

// metric returns the sum of the samples of a metric.
func (t *target) metric(name string) (float64, error) {
	text, err := t.must(http.MethodGet, "/metrics", "", nil)
	if err != nil {
		return 0, err
	}
	var sum float64
	for _, m := range regexp.MustCompile(`(?m)^`+name+`(?:\{[^}]*\})? (\S+)$`).FindAllStringSubmatch(string(text), -1) {
		v, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return 0, err
		}
		sum += v
	}
	return sum, nil
}

// result is what a run of a workload took.
type result struct {
	requests, failed   int
	seconds, cpu, size float64 // size is of what was allocated
	firstFailure       string
}

func (r *result) add(o result) {
	r.requests += o.requests
	r.failed += o.failed
	r.seconds += o.seconds
	r.cpu += o.cpu
	r.size += o.size
	if r.firstFailure == "" {
		r.firstFailure = o.firstFailure
	}
}

// perRequest returns the milliseconds of CPU of a request.
func (r *result) perRequest() float64 { return r.cpu / float64(r.requests) * 1000 }

// kilobytes returns how much a request allocates.
func (r *result) kilobytes() float64 { return r.size / float64(r.requests) / 1000 }

// run sends the requests of a workload for a while.
func (t *target) run(w workload, d time.Duration) (result, error) {
	const allocated = "go_memstats_alloc_bytes_total"
	var out result
	var mu sync.Mutex
	var wg sync.WaitGroup
	sizeBefore, err := t.metric(allocated)
	if err != nil {
		return out, err
	}
	cpuBefore, err := t.cpu()
	if err != nil {
		return out, err
	}
	start := time.Now()
	for c := range clients {
		wg.Go(func() {
			r := t.sendFor(w, c, start.Add(d))
			mu.Lock()
			defer mu.Unlock()
			out.add(r)
		})
	}
	wg.Wait()
	out.seconds = time.Since(start).Seconds()
	cpuAfter, err := t.cpu()
	if err != nil {
		return out, err
	}
	out.cpu = cpuAfter - cpuBefore
	sizeAfter, err := t.metric(allocated)
	out.size = sizeAfter - sizeBefore
	return out, err
}

func (t *target) sendFor(w workload, client int, until time.Time) (r result) {
	for n := 0; time.Now().Before(until); n++ {
		code, answer, err := t.send(client, w.request(t, client, n))
		r.requests++
		if err != nil || code/100 != 2 {
			r.failed++
			r.firstFailure = fmt.Sprint(code, " ", err, " ", string(answer[:min(len(answer), 300)]))
		}
	}
	return r
}
