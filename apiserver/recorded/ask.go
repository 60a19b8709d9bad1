// Package recorded sends recorded requests to a server and compares its responses with kube-apiserver's.
//
// A [Replayer] does so request by request. It replaces generated values of the recorded server
// (resource versions, UIDs, tokens) in requests by those that this server generated in the
// same place, and ignores them in responses. [Replayer.Run] runs a whole [Trace], the life of one
// object: [Replayer.Replay] compares it with a server that has the recorded clock, [Replayer.Record] records it again,
// and the command conformance asks which rules of server-side apply a server breaks.
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
	// Header has the headers besides User-Agent: recorder/v1. An empty value removes a header.
	Header map[string]string
	// Body is a string, sent as it is, or any other value, sent as JSON; nil for no body.
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

	// sameClock: the server's clock is the recorded one, so the times of managed fields are
	// compared.
	sameClock bool
	// otherVersion: the server is of another version of Kubernetes than the recorded one.
	otherVersion bool
	// namespace is in place of the namespace default.
	namespace string
	versions  map[string]string // recorded to ours
	uids      map[string]string
	tokens    map[string]string
	entries   map[string]any // recorded entries of managed fields, as text, to ours, which have other times
	// defined are the CustomResourceDefinitions that were created, with their last spec as JSON.
	defined map[string]string
}

// OfClient returns a replayer for the server at a URL. It follows no redirects.
func OfClient(client *http.Client, url string) *Replayer {
	direct := *client
	direct.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return (&Replayer{client: &direct, url: url, defined: map[string]string{}}).InNamespace("")
}

// InNamespace returns a replayer for another recording on the same server. Its requests to the namespace default go to
// the given one, whose name is in no recorded response; it is default again in responses. Both have the same
// CustomResourceDefinitions.
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

// withEntries returns a body with the entries of managed fields that this server wrote in place of recorded ones: their
// times differ.
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

// translate replaces generated values.
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

// inDefault finds the namespace default in a path, and in JSON, which an annotation may hold as a string.
var inDefault = regexp.MustCompile(`(/namespaces/|\\?"namespace\\?":\\?")default(/|\\?")`)

var versionValue = regexp.MustCompile(`(resourceVersion"?[=:]"?)(\d+)`)
