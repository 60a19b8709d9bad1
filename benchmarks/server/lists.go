package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tenure-ssa/tenure/benchmarks/internal/markdown"
)

// List is what a list of all Pods costs.
type List struct {
	Server string `json:"server"`
	Form   string `json:"form"`
	// Took is the median from the request to the end of the response, CPU what the server took
	// for each list, Size the response. Peak is the server's resident memory afterwards, more
	// than before all lists.
	Took time.Duration `json:"took"`
	CPU  time.Duration `json:"cpu"`
	Size int64         `json:"size"`
	Peak int64         `json:"peak"`
}

// forms are how Pods are listed.
var forms = []struct{ name, query, accept string }{
	{"JSON", "", "application/json"},
	{"JSON, resourceVersion=0", "?resourceVersion=0", "application/json"},
	{"protobuf", "", "application/vnd.kubernetes.protobuf"},
	{"protobuf, resourceVersion=0", "?resourceVersion=0", "application/vnd.kubernetes.protobuf"},
	{"metadata, protobuf", "", "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"},
	{"Table", "", "application/json;as=Table;v=v1;g=meta.k8s.io"},
	{"JSON, limit=500", "?limit=500", "application/json"},
}

const pods = "/api/v1/namespaces/default/pods"

// fill creates Pods, several at a time.
func (f flags) fill(ctx context.Context, s *server) error {
	var working sync.WaitGroup
	errs := make([]error, f.clients)
	for c := range f.clients {
		over := transport()
		working.Go(func() {
			for i := c; i < f.objects && errs[c] == nil; i += f.clients {
				errs[c] = s.write(ctx, over, http.MethodPost, pods+"?fieldManager=bench", "application/json",
					podBody.with(fmt.Sprintf("pod-%06d", i), 0))
			}
		})
	}
	working.Wait()
	return errors.Join(errs...)
}

// lists measures all forms on a server, which has one watch of the Pods, as in a cluster.
func (f flags) lists(ctx context.Context, s *server) (out []List, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := f.fill(ctx, s); err != nil {
		return nil, err
	}
	over := transport()
	before, err := s.usage(ctx, over)
	if err != nil {
		return nil, err
	}
	if !f.unwatched {
		answer, err := s.request(ctx, transport(), http.MethodGet, pods+"?watch=1&resourceVersion=0", "application/json",
			"", nil)
		if err != nil {
			return nil, err
		}
		go func() { _, _ = io.Copy(io.Discard, answer.Body) }()
	}
	for _, form := range forms {
		l := List{Server: s.Name, Form: form.name}
		var took []time.Duration
		var start usage
		for i := range 6 {
			if i == 1 { // the first one is not counted
				if start, err = s.usage(ctx, over); err != nil {
					return nil, err
				}
			}
			begin := time.Now()
			if l.Size, err = s.list(ctx, over, form.query, form.accept); err != nil {
				return nil, fmt.Errorf("%s: %w", form.name, err)
			}
			if i > 0 {
				took = append(took, time.Since(begin))
			}
		}
		end, err := s.usage(ctx, over)
		if err != nil {
			return nil, err
		}
		slices.Sort(took)
		l.Took, l.CPU, l.Peak = took[len(took)/2], (end.cpu-start.cpu)/time.Duration(len(took)), end.memory-before.memory
		out = append(out, l)
	}
	return out, nil
}

// list lists all Pods, in pages if the query has a limit, and returns the size of the responses.
func (s *server) list(ctx context.Context, over http.RoundTripper, query, accept string) (size int64, err error) {
	path := pods + query
	for {
		answer, err := s.request(ctx, over, http.MethodGet, path, accept, "", nil)
		if err != nil {
			return size, err
		}
		if !strings.Contains(query, "limit") {
			defer answer.Body.Close()
			return io.Copy(io.Discard, answer.Body)
		}
		data, err := io.ReadAll(answer.Body)
		size += int64(len(data))
		if err = errors.Join(err, answer.Body.Close()); err != nil {
			return size, err
		}
		const key = `"continue":"`
		_, rest, found := strings.Cut(string(data[:min(1000, len(data))]), key)
		if !found {
			return size, nil
		}
		token, _, _ := strings.Cut(rest, `"`)
		path = pods + query + "&continue=" + token
	}
}

// compareLists measures lists of all servers, and prints a table.
func (f flags) compareLists(ctx context.Context, out io.Writer) error {
	start, err := f.servers()
	if err != nil {
		return err
	}
	var results []List
	for _, start := range start {
		lists, err := f.measureLists(ctx, start)
		if err != nil {
			return err
		}
		results = append(results, lists...)
	}
	if f.asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(results)
	}
	rows := [][]string{{fmt.Sprintf("list of %d Pods", f.objects), "server", "median", "CPU", "size", "memory"}}
	for _, form := range forms {
		for _, l := range results {
			if l.Form == form.name {
				rows = append(rows, []string{
					l.Form, l.Server, milliseconds(l.Took), milliseconds(l.CPU), mebibytes(l.Size), mebibytes(l.Peak),
				})
			}
		}
	}
	return markdown.Table(out, rows)
}

func (f flags) measureLists(ctx context.Context, start func(context.Context) (*server, error)) (out []List, err error) {
	s, err := start(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	progress(fmt.Sprintf("lists of %d Pods of %s", f.objects, s.Name))
	return f.lists(ctx, s)
}
