package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/benchmarks/internal/objects"
)

// Start is how long it takes from Start to the first answered apply, which creates a
// Deployment in memory over TLS: the median, and the longest.
type Start struct {
	// First is of the first server of a process, Next of the next one.
	First        time.Duration `json:"first"`
	FirstLongest time.Duration `json:"firstLongest"`
	Next         time.Duration `json:"next"`
	NextLongest  time.Duration `json:"nextLongest"`
}

// Memory is what a server weighs with objects, Pods that were applied.
type Memory struct {
	Store string `json:"store"`
	// Empty and Full are the heaps without and with the objects, after collections.
	Empty int64 `json:"empty"`
	Full  int64 `json:"full"`
	// Resident is what the process takes of the machine's memory in the end; 0 if
	// the system does not say.
	Resident int64 `json:"resident"`
	// Values are the objects as they are stored.
	Values int64 `json:"values"`
	// List is how long it takes to list all of them.
	List time.Duration `json:"list"`
}

// measurePart measures a part in this process.
func (f flags) measurePart(ctx context.Context) (any, error) {
	if name, ok := strings.CutPrefix(f.part, "memory:"); ok {
		return f.weigh(ctx, name)
	}
	if f.part != "start" {
		return nil, fmt.Errorf("there is no part %q", f.part)
	}
	var took [2]time.Duration
	for i := range took {
		intent, err := intentOf("first")
		if err != nil {
			return nil, err
		}
		if took[i], err = startOnce(ctx, numbered(intent, 1)); err != nil {
			return nil, err
		}
	}
	return took, nil
}

func startOnce(ctx context.Context, intent []byte) (took time.Duration, err error) {
	begin := time.Now()
	server, err := apiserver.Start(ctx, apiserver.Options{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	c, err := newClient(server)
	if err != nil {
		return 0, err
	}
	err = c.apply("first", intent)
	return time.Since(begin), err
}

// startInProcesses starts servers in processes of their own.
func startInProcesses(ctx context.Context) (Start, error) {
	progress("the start of a server")
	var first, next []time.Duration
	for range 11 {
		var took [2]time.Duration
		if err := (flags{run: 1, clients: 1, objects: 1, rounds: 1, streams: 1}).inProcess(ctx, "start", &took); err != nil {
			return Start{}, err
		}
		first, next = append(first, took[0]), append(next, took[1])
	}
	slices.Sort(first)
	slices.Sort(next)
	n := len(first)
	return Start{First: first[n/2], FirstLongest: first[n-1], Next: next[n/2], NextLongest: next[n-1]}, nil
}

// inProcess measures a part in a process of its own.
func (f flags) inProcess(ctx context.Context, part string, result any) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, "-part", part, "-objects", strconv.Itoa(f.objects))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w", part, err)
	}
	return json.Unmarshal(out, result)
}

// weigh applies objects to a server, without a network, and weighs it.
func (f flags) weigh(ctx context.Context, name string) (m Memory, err error) {
	s, err := storeOf(name)
	if err != nil {
		return m, err
	}
	records, err := s.open(ctx)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, records.close()) }()
	server, err := apiserver.New(ctx, apiserver.Options{Store: records.Store, Token: "bench"})
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	pod := objects.Intent(objects.Pod())
	pod.SetNamespace("default")
	pod.SetGenerateName("")
	m.Store = name
	for i := -1; i < f.objects; i++ {
		if i == 0 {
			m.Empty = heap() // with what the first object needs
		}
		pod.SetName(fmt.Sprintf("pod-%d", i+1))
		body, err := json.Marshal(pod.Object)
		if err != nil {
			return m, err
		}
		q := httptest.NewRequest(
			http.MethodPatch,
			"/api/v1/namespaces/default/pods/"+pod.GetName()+"?fieldManager=bench",
			bytes.NewReader(body),
		)
		q.Header.Set("Content-Type", string(types.ApplyPatchType))
		if err := serve(server, q, http.StatusCreated); err != nil {
			return m, err
		}
	}
	m.Full = heap()
	m.Resident = resident()
	page, err := records.List(ctx, "/core/pods/", storage.ListOptions{})
	if err != nil {
		return m, err
	}
	for _, record := range page.Records {
		m.Values += int64(len(record.Value))
	}
	begin := time.Now()
	err = serve(server, httptest.NewRequest(http.MethodGet, "/api/v1/pods", nil), http.StatusOK)
	m.List = time.Since(begin)
	return m, err
}

func serve(server http.Handler, q *http.Request, code int) error {
	q.Header.Set("Authorization", "Bearer bench")
	w := httptest.NewRecorder()
	server.ServeHTTP(w, q)
	if w.Code != code {
		return fmt.Errorf("%s %s: %d: %.1000s", q.Method, q.URL, w.Code, w.Body)
	}
	return nil
}

// heap returns the size of the heap after collections: the second one takes what
// pools have let go of in the first.
func heap() int64 {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// resident returns the memory of the process, as Linux counts it.
func resident() int64 {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "VmRSS:" {
			kib, _ := strconv.ParseInt(fields[1], 10, 64)
			return kib << 10
		}
	}
	return 0
}
