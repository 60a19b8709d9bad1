package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/benchmarks/internal/objects"
)

const deployments = "/apis/apps/v1/namespaces/default/deployments/"

// client sends writes to one server.
type client struct {
	http *http.Client
	url  string
}

func newClient(server *apiserver.Running) (*client, error) {
	c, err := rest.HTTPClientFor(server.Config())
	return &client{c, server.URL()}, err
}

// write sends a write, which has to be taken.
func (c *client) write(method, path, contentType string, body []byte) error {
	q, err := http.NewRequest(method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	q.Header.Set("Content-Type", contentType)
	answer, err := c.http.Do(q)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 300 {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 1000))
		return fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, text)
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}

func (c *client) apply(name string, intent []byte) error {
	return c.write(
		http.MethodPatch,
		deployments+name+"?fieldManager=bench&force=true",
		string(types.ApplyPatchType),
		intent,
	)
}

// mark stands in a body for its number.
const mark = `"@"`

// intentOf returns what an applier sends for a Deployment; the mark stands for its
// replicas.
func intentOf(name string) ([]byte, error) {
	d := objects.Intent(objects.Deployment())
	d.SetNamespace("default")
	d.SetName(name)
	objects.Set(d, "@", "spec", "replicas")
	return json.Marshal(d.Object)
}

// statusOf returns what a controller sends to the status of a Deployment: the whole
// object; the mark stands for its ready replicas.
func statusOf(name string) ([]byte, error) {
	d := objects.Deployment()
	for _, field := range []string{"resourceVersion", "uid", "generation", "creationTimestamp", "managedFields"} {
		delete(d.Object["metadata"].(map[string]any), field)
	}
	d.SetNamespace("default")
	d.SetName(name)
	objects.Set(d, "@", "status", "readyReplicas")
	return json.Marshal(d.Object)
}

// numbered returns a body with a number in the place of its mark.
func numbered(body []byte, n int) []byte {
	return bytes.Replace(body, []byte(mark), strconv.AppendInt(nil, int64(n), 10), 1)
}
