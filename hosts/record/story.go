package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/tenure-ssa/tenure/internal/controlplane"
)

// story is a file of exchanges, as in apiserver/testdata/rest. The requests are written by hand.
type story struct {
	Exchanges []exchange `json:"exchanges"`
	Name      string     `json:"name"`
	Server    string     `json:"server"`
}

type exchange struct {
	Note    string            `json:"note"`
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Query   string            `json:"query,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    any               `json:"body,omitempty"`
	// Setup marks an exchange that only prepares others. Only the code of its response is recorded.
	Setup bool `json:"setup,omitempty"`
	// Settle is how long to wait after the request, for example until kube-apiserver enforces a new policy.
	Settle string `json:"settle,omitempty"`

	Code          int               `json:"code"`
	AnswerHeaders map[string]string `json:"answerHeaders,omitempty"`
	JSON          any               `json:"json,omitempty"`
	Text          *string           `json:"text,omitempty"`
}

// recordedHeaders are the response headers that are recorded.
var recordedHeaders = []string{"Content-Type", "Location", "Warning", "Retry-After", "Vary", "Etag"}

// nobody is the address of a host that refuses connections, in requests of a story. The address is reserved for
// documentation. During recording, it is replaced with an address of this machine, which refuses connections
// immediately.
const nobody = "192.0.2.1"

// recordStory sends the requests of a story to a server, and writes the responses into the file.
func recordStory(ctx context.Context, server *controlplane.Server, version, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var s story
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	address, err := ownAddress()
	if err != nil {
		return err
	}
	// Only HTTP/1 can upgrade connections.
	client := &http.Client{
		Timeout: time.Minute,
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // self-signed
			TLSNextProto:    map[string]func(string, *tls.Conn) http.RoundTripper{},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	s.Server = "kube-apiserver " + version
	for i := range s.Exchanges {
		e := &s.Exchanges[i]
		if err := e.record(ctx, client, server.URL, address); err != nil {
			return fmt.Errorf("%s: exchange %d, %s: %w", path, i, e.Note, err)
		}
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(&s); err != nil {
		return err
	}
	return os.WriteFile(path, out.Bytes(), 0o644)
}

// record sends the request of an exchange, and stores the response in it.
func (e *exchange) record(ctx context.Context, client *http.Client, url, address string) error {
	body, isText := e.Body.(string)
	if !isText && e.Body != nil {
		data, err := json.Marshal(e.Body)
		if err != nil {
			return err
		}
		body = string(data)
	}
	target := url + e.Path
	if e.Query != "" {
		target += "?" + e.Query
	}
	sent := strings.NewReader(strings.ReplaceAll(body, nobody, address))
	q, err := http.NewRequestWithContext(ctx, e.Method, target, sent)
	if err != nil {
		return err
	}
	q.Header.Set("User-Agent", "recorder/v1")
	q.Header.Set("Authorization", "Bearer "+controlplane.Token)
	for name, value := range e.Headers {
		q.Header.Set(name, value)
	}
	response, err := client.Do(q)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if e.Settle != "" {
		settle, err := time.ParseDuration(e.Settle)
		if err != nil {
			return err
		}
		time.Sleep(settle)
	}
	e.Code, e.AnswerHeaders, e.JSON, e.Text = response.StatusCode, nil, nil, nil
	if e.Setup {
		if e.Code >= http.StatusBadRequest {
			return fmt.Errorf("%s: %.500s", response.Status, data)
		}
		return nil
	}
	e.AnswerHeaders = map[string]string{}
	for _, name := range recordedHeaders {
		if values := response.Header.Values(name); len(values) > 0 {
			e.AnswerHeaders[name] = strings.Join(values, ", ")
		}
	}
	data = bytes.ReplaceAll(data, []byte(address), []byte(nobody))
	if json.Unmarshal(data, &e.JSON) != nil || e.JSON == nil {
		text := string(data)
		e.JSON, e.Text = nil, &text
	}
	return nil
}

// ownAddress returns an address of this machine other than loopback, because kube-apiserver does not proxy to
// loopback addresses.
func ownAddress() (string, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return "", err
	}
	for _, a := range all {
		if network, ok := a.(*net.IPNet); ok && network.IP.To4() != nil && network.IP.IsGlobalUnicast() {
			return network.IP.String(), nil
		}
	}
	return "", errors.New("expected an IPv4 address that is not a loopback one")
}
