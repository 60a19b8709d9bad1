// Package recorded sends recorded requests to a server and compares its responses with kube-apiserver's.
//
// A [Replayer] sends single requests. In requests, it replaces generated values of the recorded server
// (resourceVersions, UIDs, tokens) by the values that the tested server generated instead. In responses, it
// ignores generated values. [Replayer.Run] sends the requests of a whole [Trace], the life of one object.
// [Replayer.Replay] also sets the server's clock to the recorded times, and compares the responses. [Replayer.Record]
// replaces the responses in the trace. The command conformance uses Run to find the rules of server-side apply that a
// server breaks.
package recorded

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// A Request is a recorded request: method, path with query, headers and body.
type Request struct {
	Method, Target string
	// Header has the headers. Without a User-Agent, "recorder/v1" is sent. An empty value removes a header.
	Header map[string]string
	// Body is a string, which is sent unchanged, or any other value, which is sent as JSON. It is nil for no body.
	Body any
}

// An Answer is a response.
type Answer struct {
	Code   int
	Header http.Header
	Body   []byte
}

// A Replayer replays the requests of one recording. It is not safe for concurrent use.
type Replayer struct {
	client *http.Client
	url    string

	// sameClock is true if the server has the recorded clock. Then the times of managed fields are compared.
	sameClock bool
	// otherVersion is true if the server and the recorded server have different versions of Kubernetes.
	otherVersion bool
	// namespace replaces the namespace default, unless it is empty.
	namespace string
	versions  map[string]string // maps recorded resourceVersions to this server's
	uids      map[string]string
	tokens    map[string]string
	entries   map[string]any // maps recorded managed fields entries, as text, to this server's, whose times differ
	// defined maps the names of the CustomResourceDefinitions that the replayer created to their last spec, as JSON.
	defined map[string]string
}

// OfClient returns a replayer for the server at a URL. It follows no redirects.
func OfClient(client *http.Client, url string) *Replayer {
	direct := *client
	direct.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return (&Replayer{client: &direct, url: url, defined: map[string]string{}}).InNamespace("")
}

// InNamespace returns a replayer for another recording on the same server. In its requests, the given namespace
// replaces the namespace default; in its responses, default replaces the given namespace. The given name must not occur
// in recorded responses. Both replayers share their CustomResourceDefinitions.
func (r *Replayer) InNamespace(name string) *Replayer {
	return &Replayer{
		client: r.client, url: r.url, namespace: name, defined: r.defined,
		versions: map[string]string{}, uids: map[string]string{}, tokens: map[string]string{}, entries: map[string]any{},
	}
}

func (r *Replayer) send(asked Asked) (*Answer, error) {
	q := Request{Method: asked.Method, Target: asked.Path, Header: map[string]string{"Content-Type": asked.ContentType}}
	if asked.Body != nil {
		body, err := json.Marshal(r.withEntries(asked.Body))
		if err != nil {
			return nil, err
		}
		q.Body = string(body)
	}
	if asked.Query != "" {
		q.Target += "?" + asked.Query
	}
	if asked.UserAgent != "" {
		q.Header["User-Agent"] = asked.UserAgent
	}
	return r.Ask(q)
}

// withEntries returns a body in which recorded entries of managed fields are replaced by this server's entries, which
// have other times.
func (r *Replayer) withEntries(body any) any {
	body = runtime.DeepCopyJSONValue(body)
	if tree, ok := body.(map[string]any); ok {
		entries := entriesIn(tree)
		for i, e := range entries {
			if ours, ok := r.entries[fmt.Sprint(e)]; ok {
				entries[i] = ours
			}
		}
	}
	return body
}

// Ask sends a request and returns the response.
func (r *Replayer) Ask(request Request) (*Answer, error) {
	var body io.Reader
	switch b := request.Body.(type) {
	case nil:
	case string:
		body = strings.NewReader(r.translate(b))
	default:
		data, err := json.Marshal(b)
		if err != nil {
			return nil, err
		}
		body = strings.NewReader(r.translate(string(data)))
	}
	q, err := http.NewRequest(request.Method, r.url+r.translate(request.Target), body)
	if err != nil {
		return nil, err
	}
	q.Header.Set("User-Agent", "recorder/v1")
	for name, value := range request.Header {
		if value == "" {
			q.Header.Del(name)
		} else {
			q.Header.Set(name, value)
		}
	}
	response, err := r.client.Do(q)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if r.namespace != "" {
		data = bytes.ReplaceAll(data, []byte(r.namespace), []byte("default"))
	}
	return &Answer{Code: response.StatusCode, Header: response.Header, Body: data}, nil
}

// translate replaces recorded generated values by this server's.
func (r *Replayer) translate(s string) string {
	for from, to := range r.tokens {
		s = strings.ReplaceAll(s, from, to)
	}
	s = versionValue.ReplaceAllStringFunc(s, func(m string) string {
		parts := versionValue.FindStringSubmatch(m)
		if to, ok := r.versions[parts[2]]; ok {
			return parts[1] + to
		}
		return m
	})
	for from, to := range r.uids {
		s = strings.ReplaceAll(s, from, to)
	}
	if r.namespace != "" {
		s = inDefault.ReplaceAllString(s, "${1}"+r.namespace+"${2}")
	}
	return s
}

// inDefault matches the namespace default in a path and in JSON. An annotation may contain the JSON as a string.
var inDefault = regexp.MustCompile(`(/namespaces/|\\?"namespace\\?":\\?")default(/|\\?")`)

var versionValue = regexp.MustCompile(`(resourceVersion"?[=:]"?)(\d+)`)
