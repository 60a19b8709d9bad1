// Package recorded asks a server what a real one was asked, and compares what it
// answers with what that answered.
//
// A [Replayer] does so exchange by exchange: what the recorded server generated
// (resource versions, uids, tokens) it replaces in requests by what was generated
// here in the same place, and passes over in answers. [Replay] replays a whole
// [Trace], the life of one object, on a server of its own.
package recorded

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
)

// A Request is what is asked: a method, a path with its query, headers and a body.
type Request struct {
	Method, Target string
	// Header has what is to be sent beside a User-Agent of recorder/v1; an empty
	// value takes a header away.
	Header map[string]string
	// Body is a text as it is, and anything else as JSON; nil for none.
	Body any
}

// An Answer is what came.
type Answer struct {
	Code   int
	Header http.Header
	Body   []byte
}

// A Replayer asks the requests of one story. It is not safe for concurrent use.
type Replayer struct {
	send func(*http.Request) (*http.Response, error)
	// request makes a request for a path with a query.
	request func(method, target string, body io.Reader) (*http.Request, error)

	// sameClock says that the server's clock is the recorded one, so that the times of
	// managed fields are compared.
	sameClock bool

	versions map[string]string // recorded to ours
	uids     map[string]string
	tokens   map[string]string
	// defined are the groups of the definitions that were made.
	defined map[string]bool
}

func newReplayer() *Replayer {
	return &Replayer{versions: map[string]string{}, uids: map[string]string{}, tokens: map[string]string{},
		defined: map[string]bool{}}
}

// OfHandler returns a replayer that asks a handler, with a bearer token, without a
// network.
func OfHandler(handler http.Handler, token string) *Replayer {
	r := newReplayer()
	r.request = func(method, target string, body io.Reader) (*http.Request, error) {
		q := httptest.NewRequest(method, target, body)
		q.Header.Set("Authorization", "Bearer "+token)
		return q, nil
	}
	r.send = func(q *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, q)
		if q.Method == http.MethodHead {
			w.Body.Reset() // a connection would not carry it
		}
		return w.Result(), nil
	}
	return r
}

// OfClient returns a replayer that asks the server at a URL.
func OfClient(client *http.Client, url string) *Replayer {
	r := newReplayer()
	r.request = func(method, target string, body io.Reader) (*http.Request, error) {
		return http.NewRequest(method, url+target, body)
	}
	r.send = client.Do
	return r
}

// Ask sends a request and returns the answer.
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
	q, err := r.request(request.Method, r.translate(request.Target), body)
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
	response, err := r.send(q)
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

// translate replaces what was generated.
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
