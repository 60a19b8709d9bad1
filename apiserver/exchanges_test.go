package apiserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/recorded"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
)

// story is a file of HTTP exchanges with kube-apiserver in testdata/rest, in order, starting with an empty cluster.
// hosts/record records connect.json and log.json again.
type story struct {
	Name      string     `json:"name"`
	Exchanges []exchange `json:"exchanges"`
}

type exchange struct {
	Note    string            `json:"note"`
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Query   string            `json:"query"`
	Headers map[string]string `json:"headers"`
	Body    any               `json:"body"`
	// Setup says that only the status code was recorded.
	Setup bool `json:"setup"`

	Code          int               `json:"code"`
	AnswerHeaders map[string]string `json:"answerHeaders"`
	JSON          any               `json:"json"`
	Text          *string           `json:"text"`
}

// TestRecordedExchanges sends recorded requests, and compares the responses with the recorded responses of
// kube-apiserver: status codes, headers and bodies, except for generated values.
func TestRecordedExchanges(t *testing.T) {
	files, err := filepath.Glob("testdata/rest/*.json")
	require.NoError(t, err)
	require.Len(t, files, 8)
	total := 0
	used := map[string]bool{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		var s story
		require.NoError(t, json.Unmarshal(data, &s))
		total += len(s.Exchanges)
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) { replayStory(t, name, s, used) })
	}
	require.Equal(t, 321, total)
	for key := range exceptions {
		if !used[key] {
			t.Errorf("exception %q is about no exchange that differs", key)
		}
	}
}

func replayStory(t *testing.T, name string, s story, used map[string]bool) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	store := memory.New(memory.Options{})
	defer func() { require.NoError(t, store.Close()) }()
	// Entries are sorted by time. The recordings took less than a second, so the times of their entries are equal.
	start := time.Date(2026, 11, 21, 2, 1, 29, 0, time.UTC)
	server, err := apiserver.New(ctx, apiserver.Options{
		Token: "token", Store: store, Now: func() time.Time { return start },
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, server.Close()) }()
	config := server.LoopbackConfig()
	r := replayer{recorded.OfClient(&http.Client{Transport: config.Transport}, config.Host)}
	for i, e := range s.Exchanges {
		key := fmt.Sprintf("%s %d", name, i)
		t.Run(fmt.Sprintf("%02d %s", i, e.Note), func(t *testing.T) {
			if key == "list-watch 31" {
				// The recorded server had compacted the revisions from before its start.
				require.NoError(t, store.Compact(2))
			}
			if re := absent[key]; re != nil {
				e.JSON = without(e.JSON, re)
			}
			err := r.replay(e)
			if err != nil && later[key] {
				require.Eventually(t, func() bool {
					err = r.replay(e)
					return err == nil
				}, 10*time.Second, time.Millisecond)
			}
			if exception, ok := exceptions[key]; ok {
				if err != nil {
					used[key] = true
					t.Logf("excepted: %s", exception)
				}
				return
			}
			if err != nil {
				t.Errorf("%s: %s %s?%s: %v", key, e.Method, e.Path, e.Query, err)
			}
		})
	}
}

// later are exchanges that show background work of the server, which an earlier request has started.
var later = map[string]bool{"crd 20": true}

// replayer replays the exchanges of one story.
type replayer struct{ *recorded.Replayer }

func (r replayer) replay(e exchange) error {
	target := e.Path
	if e.Query != "" {
		target += "?" + e.Query
	}
	header := map[string]string{"Authorization": "Bearer token"}
	maps.Copy(header, e.Headers)
	answer, err := r.Ask(recorded.Request{Method: e.Method, Target: target, Header: header, Body: e.Body})
	if err != nil {
		return err
	}
	return r.compare(e, answer)
}

// Response headers that are compared.
var comparedHeaders = []string{"Content-Type", "Location", "Warning", "Retry-After", "Vary"}

func (r replayer) compare(e exchange, w *recorded.Answer) error {
	var faults []string
	if w.Code != e.Code {
		faults = append(faults, fmt.Sprintf("code %d, want %d: %.300s", w.Code, e.Code, w.Body))
	}
	if e.Setup && len(faults) == 0 {
		return nil
	}
	for _, name := range comparedHeaders {
		if want, got := e.AnswerHeaders[name], strings.Join(w.Header.Values(name), ", "); want != got &&
			e.AnswerHeaders != nil {
			faults = append(faults, fmt.Sprintf("header %s is %q, want %q", name, got, want))
		}
	}
	if len(faults) == 0 {
		faults = r.compareBody(e, w.Body)
	}
	if len(faults) > 0 {
		return fmt.Errorf("%s", strings.Join(faults, "\n\t"))
	}
	return nil
}

func (r replayer) compareBody(e exchange, got []byte) []string {
	if e.JSON != nil {
		var g any
		if err := json.Unmarshal(got, &g); err != nil {
			return []string{fmt.Sprintf("no JSON: %v: %.200s", err, got)}
		}
		return r.Difference(g, e.JSON)
	}
	want := ""
	if e.Text != nil {
		want = *e.Text
	}
	if strings.HasPrefix(want, `{"type":`) {
		return r.compareStream(got, want)
	}
	if g, w := recorded.Generic(string(got)), recorded.Generic(want); g != w {
		return []string{fmt.Sprintf("text is\n%s\nwant\n%s", g, w)}
	}
	return nil
}

// compareStream compares watch events.
func (r replayer) compareStream(got []byte, want string) []string {
	events := func(data []byte) (out []any) {
		d := json.NewDecoder(bytes.NewReader(data))
		for {
			var v any
			if d.Decode(&v) != nil {
				return out
			}
			out = append(out, v)
		}
	}
	return r.Difference(events(got), events([]byte(want)))
}

// exceptions are exchanges whose response differs from the recording, by story and number, with the reason.
var exceptions = map[string]string{
	"crd 13":              "a body that breaks the schema is a fault of the client's: 400 in place of 500 (a correction)",
	"discovery-health 0":  "the recorded server was built without a version; this one names the API that it serves",
	"discovery-health 13": "the checks are those of the parts that a server has, and this one has fewer",
	"list-watch 23":       "the recorded server's watch cache asks clients to try again; a store is never behind",
	"list-watch 28":       "the recorded server's watch cache was behind its store; there is no cache to wait for",
	"list-watch 29":       "the recorded server's etcd lacked a feature that streaming lists need there",
	"list-watch 31":       "the error of the recorded server's watch cache; here it is that of etcd3",
	"update-patch 5":      "the error shows the key in the storage, which begins with the group here",
}

// absent matches, by story and number, the items of recorded responses that this server does not have: groups of
// CustomResourceDefinitions that existed before the story, and paths of kube-apiserver's internals.
var absent = map[string]*regexp.Regexp{
	"discovery-health 1": regexp.MustCompile(`^/(apis/` + leftGroups +
		`(/|$)|flagz|statusz|metrics/slis|(healthz|livez|readyz)/([^p]|po))`),
	"discovery-health 3": regexp.MustCompile(`^` + leftGroups + `$`),
	"discovery-health 7": regexp.MustCompile(`^` + leftGroups + `$`),
	"discovery-health 9": regexp.MustCompile(`^(apis/` + leftGroups + `/|openid/|\.well-known/)`),
}

const leftGroups = `(gateway\.networking\.k8s\.io|monitoring\.coreos\.com|topology\.example\.dev|trace\.example\.dev)`

// without removes the absent items from a recorded response: strings, map entries by key, and objects by name.
func without(v any, absent *regexp.Regexp) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, member := range v {
			if !absent.MatchString(name) {
				out[name] = without(member, absent)
			}
		}
		return out
	case []any:
		out := []any{}
		for _, item := range v {
			if !absent.MatchString(nameOf(item)) {
				out = append(out, without(item, absent))
			}
		}
		return out
	}
	return v
}

func nameOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case map[string]any:
		if name, ok := v["name"].(string); ok {
			return name
		}
		return nameOf(v["metadata"])
	}
	return ""
}
