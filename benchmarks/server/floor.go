package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
)

// floorName is the server of -floor in tables.
const floorName = "floor"

// floor is a server over HTTP/2 and TLS, of net/http alone, that writes the body of each PATCH to all watches: what
// a watch costs at least. Its handlers do nothing but wait for bytes, write and flush them. It responds to a PATCH with
// as many bytes as an event has, so that it is also what a write costs at least.
type floor struct {
	size    int // of an event
	mu      sync.Mutex
	watches map[chan []byte]struct{}
}

// serveFloor runs a floor in this process until its input ends.
func (f flags) serveFloor(in io.Reader, out io.Writer) error {
	s := httptest.NewUnstartedServer(&floor{size: f.floor, watches: map[chan []byte]struct{}{}})
	s.EnableHTTP2 = true
	s.StartTLS()
	defer func() {
		s.CloseClientConnections() // Close waits for them
		s.Close()
	}()
	if err := json.NewEncoder(out).Encode(server{Name: floorName, URL: s.URL}); err != nil {
		return err
	}
	return profiled(f.cpuprofile, func() error {
		_, err := io.Copy(io.Discard, in)
		return err
	})
}

func (f *floor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/metrics":
		cpu, err := cpuTime()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintf(w, "process_cpu_seconds_total %f\nprocess_resident_memory_bytes %d\n", cpu.Seconds(), resident())
	case r.Method == http.MethodPatch:
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		event := append(body, bytes.Repeat([]byte{' '}, max(0, f.size-len(body)))...)
		f.send(event)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(event)))
		_, _ = w.Write(event) // the client may be gone
	case r.URL.Query().Has("watch"):
		f.watch(w, r)
	default:
		_, _ = io.WriteString(w, `{"metadata":{"resourceVersion":"1"}}`) // the client may be gone
	}
}

func (f *floor) send(event []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for events := range f.watches {
		events <- event
	}
}

func (f *floor) watch(w http.ResponseWriter, r *http.Request) {
	events := make(chan []byte, 1000)
	f.mu.Lock()
	f.watches[events] = struct{}{}
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.watches, events)
	}()
	control := http.NewResponseController(w)
	if control.Flush() != nil {
		return
	}
	for {
		select {
		case event := <-events:
			if _, err := w.Write(event); err != nil || control.Flush() != nil {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}
