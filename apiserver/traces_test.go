package apiserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
)

// trace is one object's life on a real server; see testdata/traces of the root.
type trace struct {
	CRD   map[string]any `json:"crd"`
	Steps []struct {
		Note    string `json:"note"`
		Request struct {
			Method      string `json:"method"`
			Path        string `json:"path"`
			Query       string `json:"query"`
			ContentType string `json:"contentType"`
			UserAgent   string `json:"userAgent"`
			Body        any    `json:"body"`
		} `json:"request"`
		Now      string `json:"now"`
		Response struct {
			Code     int      `json:"code"`
			Warnings []string `json:"warnings"`
			Body     any      `json:"body"`
		} `json:"response"`
	} `json:"steps"`
}

// TestRecordedTraces sends this server what was sent to a real one, and compares
// all of what it answers: codes, warnings, objects and managed fields, but for
// generated values.
func TestRecordedTraces(t *testing.T) {
	var files []string
	for _, folder := range []string{"random", "scenarios", "topology"} {
		found, err := filepath.Glob(filepath.Join("..", "testdata", "traces", folder, "*.json"))
		require.NoError(t, err)
		files = append(files, found...)
	}
	require.Len(t, files, 75)
	used := map[string]bool{}
	steps := 0
	for _, file := range files {
		name := strings.TrimSuffix(filepath.ToSlash(file[len("../testdata/traces/"):]), ".json")
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		var tr trace
		decoder := json.NewDecoder(bytes.NewReader(data))
		require.NoError(t, decoder.Decode(&tr))
		steps += len(tr.Steps)
		t.Run(name, func(t *testing.T) { replayTrace(t, name, tr, used) })
	}
	require.Greater(t, steps, 700)
	for key := range traceExceptions {
		if !used[key] {
			t.Errorf("exception %q is about no step that differs", key)
		}
	}
}

func replayTrace(t *testing.T, name string, tr trace, used map[string]bool) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	store := memory.New(memory.Options{})
	defer func() { require.NoError(t, store.Close()) }()
	server, err := apiserver.New(ctx, apiserver.Options{Token: "token", Store: store, Now: func() time.Time { return now }})
	require.NoError(t, err)
	defer func() { require.NoError(t, server.Close()) }()
	r := &replayer{server: server, versions: map[string]string{}, uids: map[string]string{}, tokens: map[string]string{}}
	if tr.CRD != nil {
		define(t, server, tr.CRD)
	}
	for i, s := range tr.Steps {
		if s.Request.Method == "CRD" {
			crd, _ := s.Request.Body.(map[string]any)
			define(t, server, crd)
			continue
		}
		if s.Now != "" {
			at, err := time.Parse(time.RFC3339, s.Now)
			require.NoError(t, err)
			if at.After(now) {
				now = at
			}
		}
		body, err := json.Marshal(s.Request.Body)
		require.NoError(t, err)
		e := exchange{
			Method: s.Request.Method, Path: s.Request.Path, Query: s.Request.Query, Body: string(body),
			Headers: map[string]string{"Content-Type": s.Request.ContentType},
			Code:    s.Response.Code, JSON: s.Response.Body,
		}
		if s.Request.UserAgent != "" {
			e.Headers["User-Agent"] = s.Request.UserAgent
		}
		before, err := store.List(ctx, "/", storage.ListOptions{})
		require.NoError(t, err)
		err = r.replayStep(e, s.Response.Warnings)
		if err == nil {
			continue
		}
		key := fmt.Sprintf("%s %d", name, i)
		exception := exceptionOf(key, e, err)
		if exception == "" {
			t.Errorf("%s: %s: %s %s?%s: %v", key, s.Note, e.Method, e.Path, e.Query, err)
			return // what follows builds on it
		}
		used[exception] = true
		if e.Code >= 300 {
			r.undo(t, store, before)
		}
	}
}

func (r *replayer) replayStep(e exchange, warnings []string) error {
	w := r.ask(e)
	if w.Code != e.Code {
		return fmt.Errorf("code %d, want %d: %.700s", w.Code, e.Code, w.Body.String())
	}
	got, want := slices.Sorted(slices.Values(w.Header().Values("Warning"))), slices.Sorted(slices.Values(warnings))
	if !slices.Equal(got, want) {
		return fmt.Errorf("warnings %q, want %q", got, want)
	}
	var g any
	if err := json.Unmarshal(w.Body.Bytes(), &g); err != nil {
		return err
	}
	sortCauses(g)
	sortCauses(e.JSON)
	if faults := r.difference("", g, e.JSON, nil); len(faults) > 0 {
		return fmt.Errorf("%s", strings.Join(faults, "\n\t"))
	}
	return nil
}

// sortCauses sorts the causes of a Status, which a real server lists in no order.
func sortCauses(v any) {
	status, _ := v.(map[string]any)
	details, _ := status["details"].(map[string]any)
	causes, _ := details["causes"].([]any)
	sort.Slice(causes, func(i, j int) bool { return fmt.Sprint(causes[i]) < fmt.Sprint(causes[j]) })
}

// define creates a CustomResourceDefinition, or brings it up to date.
func define(t *testing.T, server http.Handler, crd map[string]any) {
	t.Helper()
	const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	name, _ := crd["metadata"].(map[string]any)["name"].(string)
	body := func() *bytes.Reader {
		data, err := json.Marshal(map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": name}, "spec": crd["spec"],
		})
		require.NoError(t, err)
		return bytes.NewReader(data)
	}
	w := httptest.NewRecorder()
	q := httptest.NewRequest(http.MethodPut, path+"/"+name, body())
	q.Header.Set("Authorization", "Bearer token")
	server.ServeHTTP(w, q)
	if w.Code == http.StatusNotFound {
		w = httptest.NewRecorder()
		q = httptest.NewRequest(http.MethodPost, path, body())
		q.Header.Set("Authorization", "Bearer token")
		server.ServeHTTP(w, q)
	}
	require.Less(t, w.Code, 300, "%s", w.Body.String())
}

// undo brings the store back to what it was before a write that the recorded
// server refused.
func (r *replayer) undo(t *testing.T, store storage.Store, before storage.Page) {
	t.Helper()
	was := map[string]storage.Record{}
	for _, record := range before.Records {
		was[record.Key] = record
	}
	after, err := store.List(t.Context(), "/", storage.ListOptions{})
	require.NoError(t, err)
	for _, now := range after.Records {
		record, there := was[now.Key]
		switch {
		case !there:
			_, err := store.Delete(t.Context(), now.Key, now.Revision)
			require.NoError(t, err)
		case now.Revision != record.Revision:
			revision, err := store.Put(t.Context(), now.Key, record.Value, now.Revision)
			require.NoError(t, err)
			for recorded, ours := range r.versions {
				if ours == fmt.Sprint(record.Revision) {
					r.versions[recorded] = fmt.Sprint(revision)
				}
			}
		}
	}
}

// traceExceptions are what this server answers otherwise, with the reason: the
// three faults of the recorded server, and single steps by trace and number.
var traceExceptions = map[string]string{
	"scale":  "an apply to /scale of a custom resource fails in the recorded server: 500",
	"null":   "an empty map or list of an intent comes back as null in the recorded server: 422",
	"schema": "a body that breaks the schema is a fault of the client's: 400 in place of 500",

	// What a server checks in Go code of its own, beyond schemas and metadata, is
	// for a host's validator.
	"scenarios/bad-lists 1":               "ports of Services are between 1 and 65535",
	"scenarios/containers-nested-lists 1": "volume mounts name volumes",
	"scenarios/pod-status-by-kubelet 3":   "most of a Pod may not change",

	"scenarios/atomic-lists-and-maps 4": "an empty list of an intent comes back as null in the recorded server",
}

// exceptionOf returns which exception a step falls under that differs.
func exceptionOf(key string, e exchange, err error) string {
	status, _ := e.JSON.(map[string]any)
	message, _ := status["message"].(string)
	custom := strings.Contains(e.Path, ".example.dev/")
	switch {
	case traceExceptions[key] != "":
		return key
	case e.Code == 500 && custom && strings.HasSuffix(e.Path, "/scale") && strings.Contains(message, "invalid group/version"):
		return "scale"
	case e.Code == 422 && custom && strings.Contains(message, `"null"`):
		return "null"
	case e.Code == 500 && strings.HasPrefix(message, "failed to c") && strings.HasPrefix(err.Error(), "code 400"):
		return "schema"
	}
	return ""
}
