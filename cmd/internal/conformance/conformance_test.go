package conformance

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/tenure-ssa/tenure/apiserver"
)

// server is an API server in this process with a clock that the test sets.
type server struct {
	config *rest.Config
	now    atomic.Int64
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{}
	s.now.Store(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Unix())
	api, err := apiserver.New(t.Context(), apiserver.Options{
		Now: func() time.Time { return time.Unix(s.now.Load(), 0).UTC() }, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, api.Close()) })
	s.config = api.LoopbackConfig()
	return s
}

// run runs the traces whose names match, through a transport if there is one.
func (s *server) run(t *testing.T, match string, through func(http.RoundTripper) http.RoundTripper) *Report {
	t.Helper()
	config := rest.CopyConfig(s.config)
	if through != nil {
		config.Wrap(through)
	}
	report, err := Run(t.Context(), config, s.options(match))
	require.NoError(t, err)
	return report
}

func (s *server) options(match string) Options {
	return Options{Select: regexp.MustCompile(match), NextSecond: func() { s.now.Add(1) }}
}

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// left returns the objects that a run has created and not deleted.
func (s *server) left(t *testing.T) (out []string) {
	t.Helper()
	client, err := rest.HTTPClientFor(s.config)
	require.NoError(t, err)
	for _, path := range []string{
		"/api/v1/namespaces", definitionsPath, "/api/v1/configmaps", "/api/v1/services", "/api/v1/pods", "/api/v1/secrets",
		"/apis/apps/v1/deployments", "/apis/apps/v1/statefulsets", "/apis/rbac.authorization.k8s.io/v1/roles",
		"/apis/networking.k8s.io/v1/ingresses",
	} {
		response, err := client.Get(s.config.Host + path)
		require.NoError(t, err)
		var list struct{ Items []map[string]any }
		require.NoError(t, json.NewDecoder(response.Body).Decode(&list))
		require.NoError(t, response.Body.Close())
		for _, item := range list.Items {
			name, _ := lookup(item, fieldpath.MakePathOrDie("metadata", "name"))
			out = append(out, path+"/"+name.(string))
		}
	}
	return out
}

// fault changes the requests to a server, or its responses.
type fault struct {
	request func(q *http.Request, body []byte) []byte
	// response gets the current exchange, and the object of the previous response.
	response func(q *faulty)
}

// faulty is an exchange for a fault to change.
type faulty struct {
	*http.Request
	code            int
	header          http.Header
	before, object  map[string]any
	isApply         bool
	manager         string
	text            string // the response's body
	body            map[string]any
	own             map[string]any   // the entry of the request's manager
	entries, others []map[string]any // all entries of the object; the entries of other managers
}

// setEntries replaces the managed fields.
func (q *faulty) setEntries(entries []map[string]any) {
	var list []any
	for _, e := range entries {
		list = append(list, e)
	}
	q.object["metadata"].(map[string]any)["managedFields"] = list
}

// without removes entries.
func (q *faulty) without(is func(e map[string]any) bool) {
	q.setEntries(slices.DeleteFunc(q.entries, is))
}

// fields returns the fields that the request's manager owns, for changes. If there is no entry, it returns a new map.
func (q *faulty) fields() map[string]any {
	fields, _ := q.own["fieldsV1"].(map[string]any)
	if fields == nil {
		fields = map[string]any{}
	}
	return fields
}

var inNamespace = regexp.MustCompile(`/namespaces/ssa-[^/]+/[^/]`)

type roundTripper struct {
	fault
	next   http.RoundTripper
	before map[string]any // the object in the previous response
}

func (f fault) through(next http.RoundTripper) http.RoundTripper {
	return &roundTripper{fault: f, next: next}
}

func (r *roundTripper) RoundTrip(q *http.Request) (*http.Response, error) {
	q = q.Clone(q.Context())
	var body []byte
	if q.Body != nil {
		var err error
		if body, err = io.ReadAll(q.Body); err != nil {
			return nil, err
		}
	}
	sent := body
	if r.request != nil {
		sent = r.request(q, body)
	}
	q.Body, q.ContentLength = io.NopCloser(bytes.NewReader(sent)), int64(len(sent))
	response, err := r.next.RoundTrip(q)
	if err != nil || r.response == nil || !inNamespace.MatchString(q.URL.Path) {
		return response, err
	}
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	c := faulty{
		Request: q, code: response.StatusCode, header: response.Header,
		isApply: q.Header.Get("Content-Type") == string(types.ApplyPatchType),
		manager: q.URL.Query().Get("fieldManager"), text: string(body),
	}
	_ = utiljson.Unmarshal(body, &c.body)
	if utiljson.Unmarshal(data, &c.object) == nil && c.object["metadata"] != nil && c.object["items"] == nil {
		uid := fieldpath.MakePathOrDie("metadata", "uid")
		c.before = r.before
		if id, ok := lookup(c.object, uid); ok && c.object["kind"] != "Scale" && !q.URL.Query().Has("dryRun") {
			if old, _ := lookup(r.before, uid); old != id {
				c.before = nil
			}
			r.before = nil
			_ = utiljson.Unmarshal(data, &r.before)
		}
		for _, e := range entriesIn(c.object) {
			c.entries = append(c.entries, e)
			if e["manager"] == c.manager && (e["operation"] == "Apply") == c.isApply {
				c.own = e
			} else {
				c.others = append(c.others, e)
			}
		}
		r.response(&c)
		if data, err = json.Marshal(c.object); err != nil {
			return nil, err
		}
	}
	response.StatusCode = c.code
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	return response, nil
}

// entriesIn returns the managed fields of an object.
func entriesIn(object map[string]any) (out []map[string]any) {
	v, _ := lookup(object, fieldpath.MakePathOrDie("metadata", "managedFields"))
	list, _ := v.([]any)
	for _, item := range list {
		out = append(out, item.(map[string]any))
	}
	return out
}

// query changes the query parameters of a request.
func query(q *http.Request, change func(values map[string][]string)) {
	values := q.URL.Query()
	change(values)
	q.URL.RawQuery = values.Encode()
}

// accept turns an error response into a success if its message contains a text.
func accept(text string) func(q *faulty) {
	return func(q *faulty) {
		if message, _ := q.object["message"].(string); q.object["kind"] == "Status" && strings.Contains(message, text) {
			q.code = http.StatusOK
		}
	}
}

// TestFaults adds a fault to a server, and requires that traces fail with the rule that the fault breaks, and with no
// other rule.
func TestFaults(t *testing.T) {
	isApply := func(q *http.Request) bool { return q.Header.Get("Content-Type") == string(types.ApplyPatchType) }
	s := newServer(t)
	before := s.left(t)
	var tested []string
	for _, test := range []struct {
		name  string
		fault fault
		rule  string
		// traces selects the traces to run. By default, these are the scenarios, which cover most rules; random
		// traces cover custom resources.
		traces string
	}{
		{"conflicts are ignored", fault{request: func(q *http.Request, body []byte) []byte {
			if isApply(q) {
				query(q, func(v map[string][]string) { v["force"] = []string{"true"} })
			}
			return body
		}}, "5.1", ""},
		{"force is ignored", fault{request: func(q *http.Request, body []byte) []byte {
			if isApply(q) {
				query(q, func(v map[string][]string) { delete(v, "force") })
			}
			return body
		}}, "5.1", ""},
		{"a shared field loses its other owner", fault{response: func(q *faulty) {
			if q.isApply && len(entriesIn(q.before)) > 0 {
				for _, e := range q.others {
					subtract(e["fieldsV1"].(map[string]any), q.fields())
				}
				q.without(func(e map[string]any) bool { return len(e["fieldsV1"].(map[string]any)) == 0 })
			}
		}}, "5.1", ""},
		{"dropped fields stay", fault{response: func(q *faulty) {
			for _, part := range []string{"spec", "data"} {
				old, _ := q.before[part].(map[string]any)
				section, isMap := q.object[part].(map[string]any)
				for name, value := range old {
					if _, ok := section[name]; q.isApply && isMap && !ok && q.object["kind"] == q.before["kind"] {
						section[name] = value
					}
				}
			}
		}}, "6.1", ""},
		{"the entry of an apply is dropped", fault{response: func(q *faulty) {
			if q.isApply {
				q.without(func(e map[string]any) bool { return e["manager"] == q.manager && e["operation"] == "Apply" })
			}
		}}, "4.1", ""},
		{"the entry of an update is dropped", fault{response: func(q *faulty) {
			if !q.isApply {
				q.without(func(e map[string]any) bool {
					return e["manager"] == q.manager && e["operation"] == "Update" && e["subresource"] == nil
				})
			}
		}}, "5.5", ""},
		{"fields of before an apply are not tracked", fault{response: func(q *faulty) {
			q.without(func(e map[string]any) bool { return e["manager"] == "before-first-apply" })
		}}, "1.5", ""},
		{"old entries are not merged", fault{response: func(q *faulty) {
			q.without(func(e map[string]any) bool { return e["manager"] == "ancient-changes" })
		}}, "2.5", ""},
		{"an apply that changes nothing has a time", fault{response: func(q *faulty) {
			if q.isApply && q.own != nil && q.own["time"] == nil {
				q.own["time"] = "2026-01-02T03:04:05Z"
			}
		}}, "2.3", ""},
		{"a no-op apply sets the time", fault{response: func(q *faulty) {
			if q.isApply && q.own != nil && q.own["time"] != nil {
				q.own["time"] = time.Unix(s.now.Load(), 0).UTC().Format(time.RFC3339)
			}
		}}, "2.3", ""},
		{"a write does not set the time", fault{response: func(q *faulty) {
			for _, e := range entriesIn(q.before) {
				if q.own != nil && e["manager"] == q.manager && e["operation"] == q.own["operation"] && e["time"] != nil {
					q.own["time"] = e["time"]
				}
			}
		}}, "2.3", "^(scenarios|random/0[0-4])"},
		{"entries are in reverse order", fault{response: func(q *faulty) {
			slices.Reverse(q.entries)
			q.setEntries(q.entries)
		}}, "2.4", ""},
		{"the name is owned", fault{response: func(q *faulty) {
			if q.own != nil {
				metadata, _ := q.fields()["f:metadata"].(map[string]any)
				q.fields()["f:metadata"] = bothOf(map[string]any{"f:name": map[string]any{}}, metadata)
			}
		}}, "2.7", ""},
		{"who scales has no entry", fault{response: func(q *faulty) {
			q.without(func(e map[string]any) bool { return e["subresource"] == "scale" })
		}}, "2.8", ""},
		{"the status is owned by who writes the object", fault{response: func(q *faulty) {
			if q.own != nil && q.own["subresource"] == nil {
				q.fields()["f:status"] = map[string]any{"f:phase": map[string]any{}}
			}
		}}, "2.9", ""},
		{"an entry owns nothing", fault{response: func(q *faulty) {
			if len(q.entries) > 0 {
				q.setEntries(append(q.entries, map[string]any{
					"manager": "zz", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
					"fieldsV1": map[string]any{}, "time": "2036-01-02T03:04:05Z",
				}))
			}
		}}, "2.10", ""},
		{"an applier's entry keeps its first version", fault{response: func(q *faulty) {
			for _, e := range entriesIn(q.before) {
				if q.isApply && q.own != nil && e["manager"] == q.manager && e["operation"] == "Apply" {
					q.own["apiVersion"] = e["apiVersion"]
				}
			}
		}}, "2.1", "random/00"},
		{"a user agent is no manager", fault{response: func(q *faulty) {
			for _, e := range q.entries {
				if q.manager == "" && q.Method != http.MethodGet && e["operation"] == "Update" {
					e["manager"] = "unknown"
				}
			}
		}}, "2.2", ""},
		{"managed fields can't be cleared", fault{response: func(q *faulty) {
			if len(q.entries) == 0 && len(entriesIn(q.before)) > 0 && strings.Contains(q.text, "managedFields") {
				q.setEntries(entriesIn(q.before))
			}
		}}, "2.6", ""},
		{"an update of an object without entries is tracked", fault{response: func(q *faulty) {
			isUntracked := len(q.entries) == 0 && q.before != nil && len(entriesIn(q.before)) == 0
			if isUntracked && !q.isApply && q.body["metadata"] == nil && q.Method == http.MethodPatch {
				q.setEntries([]map[string]any{{
					"manager": q.manager, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
					"fieldsV1": map[string]any{"f:data": map[string]any{}}, "time": "2026-01-02T03:04:05Z",
				}})
			}
		}}, "1.4", ""},
		{"an intent of another kind is accepted", fault{response: accept("invalid object type")}, "1.1", ""},
		{"an intent may have managed fields", fault{response: accept("managedFields must be nil")}, "1.2", ""},
		{"a body that violates the schema is accepted", fault{response: accept("duplicate")}, "1.3", ""},
		{"a manager needs no name", fault{response: accept("fieldManager")}, "2.2", ""},
		{"items are in reverse order", fault{response: func(q *faulty) {
			if list, ok := lookup(q.object, fieldpath.MakePathOrDie("spec", "ports")); ok && q.isApply {
				slices.Reverse(list.([]any))
			}
		}}, "3.7", ""},
		{"an apply replaces the object", fault{response: func(q *faulty) {
			if q.isApply && q.object["data"] != nil && q.body["data"] != nil {
				q.object["data"] = q.body["data"]
			}
		}}, "3.1", ""},
		{"leaves are not owned", fault{response: func(q *faulty) {
			if data, ok := q.fields()["f:data"].(map[string]any); ok && q.isApply {
				maps.DeleteFunc(data, func(name string, _ any) bool { return name != "f:k" })
			}
		}}, "4.1", ""},
		{"declared containers are owned", fault{response: func(q *faulty) {
			if spec, ok := q.fields()["f:spec"].(map[string]any); ok && q.isApply {
				spec["."] = map[string]any{}
			}
		}}, "4.2", ""},
		{"items are not owned", fault{response: func(q *faulty) {
			if q.isApply {
				dropDots(q.fields())
			}
		}}, "4.3", ""},
		{"an update does not own what it changed", fault{response: func(q *faulty) {
			if data, ok := q.fields()["f:data"].(map[string]any); ok && !q.isApply {
				maps.DeleteFunc(data, func(name string, _ any) bool { return name != "f:k" })
			}
		}}, "5.5", ""},
		{"others own what was removed", fault{response: func(q *faulty) {
			for _, e := range q.others {
				if fields := e["fieldsV1"].(map[string]any); q.isApply && len(entriesIn(q.before)) > 0 {
					fields["f:gone"] = map[string]any{}
				}
			}
		}}, "5.2", ""},
		{"kubectl's conflicts are not excused", fault{response: func(q *faulty) {
			if _, ok := lookup(q.before, lastApplied); ok && q.isApply && q.manager == "kubectl" && q.code == http.StatusOK &&
				!q.URL.Query().Has("force") {
				q.code = http.StatusConflict
				q.object = map[string]any{"kind": "Status", "metadata": map[string]any{}, "details": map[string]any{"causes": []any{
					map[string]any{"reason": "FieldManagerConflict", "message": "conflict with \"x\"", "field": ".data"},
				}}}
			}
		}}, "9.1", ""},
		{"the annotation of client-side apply is not kept up", fault{response: func(q *faulty) {
			if old, ok := lookup(q.before, lastApplied); ok && q.isApply && q.object["kind"] != "Status" {
				annotations, _ := lookup(q.object, lastApplied[:2])
				annotations.(map[string]any)["kubectl.kubernetes.io/last-applied-configuration"] = old
			}
		}}, "9.2", ""},
		{"a no-op apply is written", fault{response: func(q *faulty) {
			metadata := q.object["metadata"].(map[string]any)
			old, ok := lookup(q.before, fieldpath.MakePathOrDie("metadata", "resourceVersion"))
			if ok && q.isApply && old == metadata["resourceVersion"] {
				metadata["resourceVersion"] = "1" + old.(string)
			}
		}}, "13.1", ""},
		{"a failed write changes the object", fault{response: func(q *faulty) {
			if spec, ok := q.object["spec"].(map[string]any); ok && q.Method == http.MethodGet {
				spec["size"] = 5
			}
		}}, "1.6", "random/006"},
		{"a value that became atomic is owned in part", fault{response: func(q *faulty) {
			for _, before := range entriesIn(q.before) {
				for _, e := range q.others {
					if e["manager"] == before["manager"] && strings.Contains(q.text, "labels") {
						e["fieldsV1"] = before["fieldsV1"]
					}
				}
			}
		}}, "8.1", "topology/.*-to-atomic"},
		{"a value that became granular is owned item by item", fault{response: func(q *faulty) {
			for _, e := range q.others {
				spec, _ := e["fieldsV1"].(map[string]any)["f:spec"].(map[string]any)
				if data, ok := spec["f:data"].(map[string]any); ok && len(data) == 0 && strings.Contains(q.text, "labels") {
					data["f:key1"] = map[string]any{}
				}
			}
		}}, "8.2", "topology/.*-atomic-to-granular"},
		{"an apply fails that empties a map", fault{response: func(q *faulty) {
			if q.isApply && q.URL.Query().Has("dryRun") {
				q.code = http.StatusInternalServerError
			}
		}}, "6.2", "random/018"},
		{"an apply to the scale fails", fault{response: func(q *faulty) {
			if q.isApply && strings.HasSuffix(q.URL.Path, "/scale") {
				q.code = http.StatusNotFound
			}
		}}, "2.8", "random/006"},
		{"a scale does not scale", fault{response: func(q *faulty) {
			if spec, ok := q.object["spec"].(map[string]any); ok && q.Method == http.MethodGet {
				spec["replicas"] = 3
			}
		}}, "2.8", "scenarios/hpa"},
		{"there are no warnings", fault{response: func(q *faulty) { q.header.Del("Warning") }}, "", ""},
		{"an outdated update is accepted", fault{response: accept("the object has been modified")}, "", "random/024"},
	} {
		tested = append(tested, test.rule)
		t.Run(test.name, func(t *testing.T) {
			report := s.run(t, cmp.Or(test.traces, "^(scenarios|random/003)"), test.fault.through)
			broken := map[string][]string{}
			for _, r := range report.Results {
				if len(r.Rules) > 0 {
					broken[r.Rules[0]] = append(broken[r.Rules[0]], r.Trace+" "+r.Step+" "+strings.Join(r.Differences, "; "))
				}
			}
			require.Equal(t, []string{test.rule}, slices.Sorted(maps.Keys(broken)), "%v", broken)
		})
	}
	require.Equal(t, before, s.left(t))
	for _, v := range verdicts {
		require.Contains(t, tested, v.rule, "no fault breaks the rule")
	}
}

// subtract removes the fields of one FieldsV1 from another.
func subtract(from, fields map[string]any) {
	for name, below := range fields {
		sub, ok := from[name].(map[string]any)
		if !ok {
			continue
		}
		subtract(sub, below.(map[string]any))
		if len(sub) == 0 {
			delete(from, name)
		}
	}
}

// dropDots removes ownership of list items themselves from FieldsV1, but not of the fields in them.
func dropDots(fields map[string]any) {
	for name, below := range fields {
		sub := below.(map[string]any)
		dropDots(sub)
		if strings.HasPrefix(name, "k:") && len(sub) > 1 {
			delete(sub, ".")
		}
	}
}

func TestPasses(t *testing.T) {
	s := newServer(t)
	before := s.left(t)
	report := s.run(t, "", nil)
	for _, r := range report.Results {
		require.Empty(t, r.Differences, r.Trace)
		require.Empty(t, r.Skipped, r.Trace)
	}
	require.Len(t, report.Results, 75)
	require.Equal(t, before, s.left(t))
}

// TestVerdicts checks that all rules in the table exist in doc/spec.md.
func TestVerdicts(t *testing.T) {
	known := map[string]Rule{}
	for _, rule := range rules() {
		known[rule.Number] = rule
	}
	require.Contains(t, known["5.1"].Text, "If another manager owns a path that the write added or changed")
	require.Equal(t, "https://github.com/tenure-ssa/tenure/blob/main/doc/spec.md#5-what-a-write-takes-from-others",
		known["5.1"].Link)
	for _, v := range verdicts {
		require.Contains(t, known, v.rule)
	}
}

// TestExistingDefinition checks that an existing CustomResourceDefinition is neither changed nor deleted.
func TestExistingDefinition(t *testing.T) {
	s := newServer(t)
	none := s.left(t)
	const name = "tmapgranulartoatomic.topology.example.dev"
	first, err := Run(t.Context(), s.config, func() Options {
		o := s.options("topology/map-granular-to-atomic")
		o.Keep = true
		return o
	}())
	require.NoError(t, err)
	require.Equal(t, map[string]int{"passed": 1}, first.Counts())
	client, err := rest.HTTPClientFor(s.config)
	require.NoError(t, err)
	read := func() string {
		response, err := client.Get(s.config.Host + definitionsPath + "/" + name)
		require.NoError(t, err)
		defer response.Body.Close()
		require.Equal(t, http.StatusOK, response.StatusCode)
		data, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return string(data)
	}
	before := read()
	require.Len(t, s.left(t), len(none)+2, "the namespace and the definition are kept")
	second := s.run(t, "topology/map-granular-to-atomic|scenarios/hpa", nil)
	require.Equal(t, map[string]int{"passed": 1, "skipped": 1}, second.Counts())
	require.Equal(t, "the CustomResourceDefinition "+name+" exists already, and is not touched", second.Results[1].Skipped)
	require.Equal(t, before, read())
}

// TestInterrupted checks that no objects are left if a run is interrupted in the middle of a trace.
func TestInterrupted(t *testing.T) {
	s := newServer(t)
	before := s.left(t)
	ctx, cancel := context.WithCancel(t.Context())
	config := rest.CopyConfig(s.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(q *http.Request) (*http.Response, error) {
			if strings.HasSuffix(q.URL.Path, "/widgets/w-1-3/status") {
				cancel()
			}
			return next.RoundTrip(q)
		})
	})
	report, err := Run(ctx, config, s.options("random/00"))
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, report.Results, 1, "those before")
	require.Equal(t, before, s.left(t))
}

// TestNotServed checks that traces of resources that the server lacks are skipped.
func TestNotServed(t *testing.T) {
	s := newServer(t)
	report := s.run(t, "scenarios/(hpa|no-op)|topology/map-gr", func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(q *http.Request) (*http.Response, error) {
			if strings.HasPrefix(q.URL.Path, "/apis/") {
				q = q.Clone(q.Context())
				q.URL.Path = "/none"
			}
			return next.RoundTrip(q)
		})
	})
	require.Equal(t, map[string]int{"passed": 1, "skipped": 2}, report.Counts())
	require.Equal(t, "the server does not serve deployments.apps", report.Results[0].Skipped)
	require.Equal(t, "the server has no CustomResourceDefinitions", report.Results[2].Skipped)
}

// TestControllers checks that a trace is skipped if a controller writes to its object.
func TestControllers(t *testing.T) {
	s := newServer(t)
	report := s.run(t, "scenarios/hpa", fault{response: func(q *faulty) {
		q.setEntries(append(q.entries, map[string]any{"manager": "kube-controller-manager", "operation": "Update"}))
	}}.through)
	require.Equal(t, string(errForeign), report.Results[0].Skipped)
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(q *http.Request) (*http.Response, error) { return f(q) }

// TestReports checks the reports about a passed, a failed and a skipped trace.
func TestReports(t *testing.T) {
	s := newServer(t)
	report := s.run(t, "scenarios/(hpa|shared|bad-lists)", fault{response: func(q *faulty) {
		if spec, ok := q.object["spec"].(map[string]any); ok && q.Method == http.MethodGet {
			spec["replicas"] = "<5>"
		}
	}}.through)
	report.Results[2].Skipped = "not <today>"
	report.Server, report.At = "https://127.0.0.1:6443", time.Time{}
	for i := range report.Results {
		report.Results[i].Took = 0
	}
	for _, test := range []struct {
		file  string
		write func(io.Writer) error
	}{
		{"report.txt", func(w io.Writer) error { return report.Write(w, true) }},
		{"report.xml", report.WriteJUnit},
		{"report.html", report.WriteHTML},
	} {
		var out strings.Builder
		require.NoError(t, test.write(&out))
		got := out.String()
		if test.file == "report.html" {
			_, got, _ = strings.Cut(got, "<body>")
		}
		path := filepath.Join("testdata", test.file)
		if *update {
			require.NoError(t, os.MkdirAll("testdata", 0o777))
			require.NoError(t, os.WriteFile(path, []byte(got), 0o666))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(want), got, "go test -update writes %s", path)
	}
}

var update = flag.Bool("update", false, "write the files in testdata")
