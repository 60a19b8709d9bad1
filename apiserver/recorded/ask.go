// Package recorded sends recorded requests to a server and compares its responses with those
// of kube-apiserver.
//
// A [Replayer] does so request by request. It replaces generated values of the recorded server
// (resource versions, UIDs, tokens) in requests by those that this server generated in the
// same place, and ignores them in responses. [Replay] replays a whole [Trace], the life of one
// object, on a server of its own.
package recorded

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
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
	versions  map[string]string // recorded to ours
	uids      map[string]string
	tokens    map[string]string
	// defined are the groups of created CustomResourceDefinitions.
	defined map[string]bool
}

// OfClient returns a replayer for the server at a URL. It follows no redirects.
func OfClient(client *http.Client, url string) *Replayer {
	direct := *client
	direct.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Replayer{
		client: &direct, url: url, versions: map[string]string{}, uids: map[string]string{}, tokens: map[string]string{},
		defined: map[string]bool{},
	}
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
	return s
}

var versionValue = regexp.MustCompile(`(resourceVersion"?[=:]"?)(\d+)`)
