package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Watches is what the events of one resource cost, when many clients watch it.
type Watches struct {
	Server   string `json:"server"`
	Watchers int    `json:"watchers"`
	// Wanted is how many writes a second were to be sent, Rate how many were, Event the size of an event.
	Wanted float64 `json:"wanted"`
	Rate   float64 `json:"rate"`
	Event  int     `json:"event"`
	// CPU is what the server took of the cores for each event to each watcher, writes included.
	CPU time.Duration `json:"cpu"`
	// P50 and P99 are the times from before a write to its event at a watcher; Lost is how many
	// events did not arrive.
	P50  time.Duration `json:"p50"`
	P99  time.Duration `json:"p99"`
	Lost int           `json:"lost"`
	// Watcher is what a watcher adds to the server's resident memory.
	Watcher int64 `json:"watcher"`
}

// sentKey is the annotation with the time of a write. Its value has a fixed length, so that it is
// found in any form of the object.
const sentKey = "bench/sent"

var sentMark = []byte(sentKey)

const watched = "/apis/apps/v1/namespaces/default/deployments"

// watches measures a number of watchers at a rate of writes.
func (f flags) watches(
	ctx context.Context, s *server, watchers int, rate float64, accept string,
) (w Watches, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	writer := transport()
	const name = "watched"
	intent, err := intentOf(name)
	if err != nil {
		return w, err
	}
	path := watched + "/" + name
	err = s.write(ctx, writer, http.MethodPatch, path+"?fieldManager=bench&force=true", string(types.ApplyPatchType),
		numbered(intent, 1))
	if err != nil {
		return w, err
	}
	from, err := s.revision(ctx, writer)
	if err != nil {
		return w, err
	}
	idle, err := s.usage(ctx, writer)
	if err != nil {
		return w, err
	}
	r := &readers{}
	query := "?watch=1&timeoutSeconds=3600&resourceVersion=" + from
	var over http.RoundTripper
	for i := range watchers {
		if i%f.streams == 0 {
			over = transportOf(f.http1)
		}
		answer, err := s.request(ctx, over, http.MethodGet, watched+query, accept, "", nil)
		if err != nil {
			return w, fmt.Errorf("watch %d: %w", i, err)
		}
		r.running.Go(func() { r.read(answer.Body) })
	}
	w = Watches{Server: s.Name, Watchers: watchers, Wanted: rate}
	before, err := s.usage(ctx, writer)
	if err != nil {
		return w, err
	}
	w.Watcher = (before.memory - idle.memory) / int64(watchers)
	start, sent := time.Now(), 0
	for due := start; time.Since(start) < f.run; due = due.Add(time.Duration(float64(time.Second) / rate)) {
		time.Sleep(time.Until(due))
		body := fmt.Sprintf(`{"metadata":{"annotations":{%q:"%020d"}}}`, sentKey, time.Now().UnixNano())
		if err := s.write(ctx, writer, http.MethodPatch, path, string(types.MergePatchType), []byte(body)); err != nil {
			return w, err
		}
		sent++
	}
	w.Rate = float64(sent) / time.Since(start).Seconds()
	r.wait(int64(sent*watchers), 2*f.run+30*time.Second)
	after, err := s.usage(ctx, writer)
	if err != nil {
		return w, err
	}
	cancel()
	r.running.Wait()
	slices.Sort(r.took)
	n := len(r.took)
	if n == 0 {
		return w, errors.New("no event arrived")
	}
	w.CPU = (after.cpu - before.cpu) / time.Duration(n)
	w.P50, w.P99, w.Lost, w.Event = r.took[n/2], r.took[n*99/100], sent*watchers-n, int(r.bytes.Load())/n
	return w, nil
}

// revision returns the current resourceVersion.
func (s *server) revision(ctx context.Context, over http.RoundTripper) (string, error) {
	answer, err := s.request(ctx, over, http.MethodGet, watched+"?limit=1", "application/json", "", nil)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	var list struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	err = json.NewDecoder(answer.Body).Decode(&list)
	return list.Metadata.ResourceVersion, err
}

// readers read watches, and find the time of the write in each event.
type readers struct {
	running sync.WaitGroup
	count   atomic.Int64
	bytes   atomic.Int64
	mu      sync.Mutex
	took    []time.Duration
}

func (r *readers) read(body io.ReadCloser) {
	defer body.Close()
	buffer := make([]byte, 0, 32<<10)
	var took []time.Duration
	for {
		n, err := body.Read(buffer[len(buffer):cap(buffer)])
		r.bytes.Add(int64(n))
		buffer = buffer[:len(buffer)+n]
		found := len(took)
		for {
			// The value comes soon after the key: it is a number of 20 digits.
			i := bytes.Index(buffer, sentMark)
			if i < 0 || len(buffer) < i+len(sentMark)+40 {
				break
			}
			rest := buffer[i+len(sentMark):]
			digits := bytes.IndexAny(rest, "0123456789")
			if nanos, err := strconv.ParseInt(string(rest[digits:digits+20]), 10, 64); err == nil {
				took = append(took, time.Duration(time.Now().UnixNano()-nanos))
			}
			buffer = buffer[:copy(buffer, rest[digits+20:])]
		}
		r.count.Add(int64(len(took) - found))
		if keep := 256; len(buffer) > keep && !bytes.Contains(buffer[len(buffer)-keep:], sentMark) {
			buffer = buffer[:copy(buffer, buffer[len(buffer)-len(sentMark):])]
		}
		if err != nil {
			break
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.took = append(r.took, took...)
}

// wait waits until all events have arrived, or none for a while.
func (r *readers) wait(all int64, limit time.Duration) {
	for start := time.Now(); r.count.Load() < all && time.Since(start) < limit; {
		time.Sleep(10 * time.Millisecond)
	}
}
