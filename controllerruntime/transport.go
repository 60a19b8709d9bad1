package controllerruntime

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"
)

// Transport is for rest.Config.Wrap, for clients other than controller-runtime's. Like the Client, it skips applies and
// decides their conflicts. It sends everything else with next. It handles only JSON: it skips nothing for a client that
// does not accept JSON.
func (c *Client) Transport(next http.RoundTripper) http.RoundTripper {
	t := &transport{next: next, client: c}
	if c.options.Config != nil {
		if host, err := url.Parse(c.options.Config.Host); err == nil {
			t.prefix = strings.TrimSuffix(host.Path, "/")
		}
	}
	return t
}

type transport struct {
	next   http.RoundTripper
	client *Client
	prefix string // prefix of all paths
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	target, ok := parseTarget(strings.TrimPrefix(r.URL.Path, t.prefix))
	if !ok || r.Method == http.MethodGet || r.Method == http.MethodHead {
		return t.next.RoundTrip(r)
	}
	kind, err := t.client.mapper.KindFor(target.resource)
	if err != nil {
		return t.next.RoundTrip(r)
	}
	switch isApply := r.Method == http.MethodPatch && r.Header.Get("Content-Type") == string(types.ApplyYAMLPatchType); {
	case isApply && acceptsJSON(r):
		return t.apply(r, target, kind)
	case r.Method == http.MethodDelete && target.name == "":
		defer t.client.memory.LoseKind(kind.GroupKind())
		return t.next.RoundTrip(r)
	}
	var response *http.Response
	t.client.core.write(keyOf(kind.GroupKind(), target.key()), func() (name, version string) {
		var served *unstructured.Unstructured
		response, served, err = t.send(r)
		switch r.Method {
		case http.MethodPost:
			return served.GetName(), served.GetResourceVersion()
		case http.MethodDelete:
			return target.name, ""
		}
		return target.name, versionIn(served, target.subresource)
	})
	return response, err
}

// apply skips or sends an apply.
func (t *transport) apply(r *http.Request, target target, kind schema.GroupVersionKind) (*http.Response, error) {
	body, err := readAll(r.Body)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set("Accept", runtime.ContentTypeJSON) // the response is compared
	query := r.URL.Query()
	intent := &unstructured.Unstructured{}
	if repeated, err := kjson.UnmarshalStrict(body, &intent.Object); err != nil || len(repeated) > 0 {
		intent.Object = nil // the server returns the error
	}
	request := request{
		kind: kind, key: target.key(), subresource: target.subresource, data: body, intent: intent,
		manager: query.Get("fieldManager"), force: query.Get("force") == "true", dryRun: query["dryRun"],
		identity: strings.Join(slices.Concat(r.Header["Impersonate-User"], r.Header["Impersonate-Group"],
			r.Header["Impersonate-Uid"]), "\n"),
	}
	var got *http.Response
	cached, err := t.client.core.apply(r.Context(), t.client.Client, request,
		func(resolved *unstructured.Unstructured, force bool) (response, error) {
			sent := r.Clone(r.Context())
			if resolved != nil {
				if body, err = resolved.MarshalJSON(); err != nil {
					return response{}, err
				}
				query.Set("force", strconv.FormatBool(force))
				sent.URL.RawQuery = query.Encode()
			}
			sent.Body, sent.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			var served *unstructured.Unstructured
			if got, served, err = t.send(sent); err != nil {
				return response{}, err
			}
			return response{served.Object, len(got.Header["Warning"]) == 0}, statusIn(got)
		})
	switch {
	case cached != nil:
		return respond(r, cached)
	case got != nil: // with the status code of the error
		return got, nil
	}
	return nil, err
}

// statusIn returns the error in a response; nil if the response is an object.
func statusIn(r *http.Response) error {
	if r.StatusCode < http.StatusMultipleChoices {
		return nil
	}
	body, err := readAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	status := &apierrors.StatusError{}
	if err != nil || json.Unmarshal(body, &status.ErrStatus) != nil {
		status.ErrStatus = metav1.Status{}
	}
	status.ErrStatus.Code = int32(r.StatusCode)
	return status
}

// send sends a request, and returns the object in the response if the response is an object in JSON.
func (t *transport) send(r *http.Request) (response *http.Response, served *unstructured.Unstructured, err error) {
	served = &unstructured.Unstructured{}
	response, err = t.next.RoundTrip(r)
	if err != nil {
		return nil, served, err
	}
	contentType, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
	if response.StatusCode >= 300 || contentType != runtime.ContentTypeJSON {
		return response, served, nil
	}
	body, err := readAll(response.Body)
	if err != nil {
		return nil, served, err
	}
	if kjson.UnmarshalCaseSensitivePreserveInts(body, &served.Object) != nil {
		served.Object = nil
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, served, nil
}

func readAll(body io.ReadCloser) ([]byte, error) {
	data, err := io.ReadAll(body)
	return data, errors.Join(err, body.Close())
}

// respond responds to a request with an object.
func respond(r *http.Request, obj client.Object) (*http.Response, error) {
	body, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: r.Proto, ProtoMajor: r.ProtoMajor, ProtoMinor: r.ProtoMinor,
		Header: http.Header{"Content-Type": {runtime.ContentTypeJSON}}, Request: r,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

// acceptsJSON reports whether the client accepts the object in JSON as the response.
func acceptsJSON(r *http.Request) bool {
	accepted := r.Header.Get("Accept")
	return accepted == "" || strings.Contains(accepted, runtime.ContentTypeJSON) && !strings.Contains(accepted, "as=")
}

// target is the resource in a request. name is empty for a request about all objects, and for a create.
type target struct {
	resource                     schema.GroupVersionResource
	namespace, name, subresource string
}

func (t target) key() client.ObjectKey { return client.ObjectKey{Namespace: t.namespace, Name: t.name} }

// parseTarget parses a path of the API: /api/v1/namespaces/a/pods/b/status.
func parseTarget(path string) (t target, ok bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		t.resource.Version, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		t.resource.Group, t.resource.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return t, false
	}
	isNamespace := len(parts) == 3 && (parts[2] == "status" || parts[2] == "finalize")
	if parts[0] == "namespaces" && len(parts) > 2 && !isNamespace {
		t.namespace, parts = parts[1], parts[2:]
	}
	t.resource.Resource = parts[0]
	if len(parts) > 1 {
		t.name = parts[1]
	}
	if len(parts) > 2 {
		t.subresource = strings.Join(parts[2:], "/")
	}
	return t, true
}
