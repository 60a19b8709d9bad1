package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// List is what a list of all Pods costs.
type List struct {
	Server  string `json:"server"`
	Form    string `json:"form"`
	Objects int    `json:"objects"`
	// Took is the median from the request to the end of the response, CPU what the server took
	// for each list, Size the response. Peak is the maximum of the server's resident memory until
	// the end of this form's first list, more than before all lists.
	Took time.Duration `json:"took"`
	CPU  time.Duration `json:"cpu"`
	Size int64         `json:"size"`
	Peak int64         `json:"peak"`

	took []time.Duration
	cpu  time.Duration
}

// form is a way to list.
type form struct{ name, query, accept string }

// forms are how Pods are listed.
var forms = []form{
	{"JSON", "", "application/json"},
	{"JSON, resourceVersion=0", "?resourceVersion=0", "application/json"},
	{"protobuf", "", "application/vnd.kubernetes.protobuf"},
	{"protobuf, resourceVersion=0", "?resourceVersion=0", "application/vnd.kubernetes.protobuf"},
	{"metadata, protobuf", "", "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"},
	{"Table", "", "application/json;as=Table;v=v1;g=meta.k8s.io"},
	{"metadata, JSON", "", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"},
	// None has such a node or label: what selectors cost.
	{"JSON, of a node", "?fieldSelector=spec.nodeName%3Dnode-1", "application/json"},
	{"JSON, with a label", "?labelSelector=bench%3Dnone", "application/json"},
	{"JSON, limit=500", "?limit=500", "application/json"},
	{"Table, limit=500", "?limit=500", "application/json;as=Table;v=v1;g=meta.k8s.io"},
}

const pods = "/api/v1/namespaces/default/pods"

// fill creates a number of Pods, several at a time.
func (f flags) fill(ctx context.Context, s *server, n int) error {
	var working sync.WaitGroup
	errs := make([]error, f.clients)
	for c := range f.clients {
		over := transport()
		working.Go(func() {
			for i := c; i < n && errs[c] == nil; i += f.clients {
				errs[c] = s.write(ctx, over, http.MethodPost, pods+"?fieldManager=bench", "application/json",
					podBody.with(fmt.Sprintf("pod-%06d", i), 0))
			}
		})
	}
	working.Wait()
	return errors.Join(errs...)
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
