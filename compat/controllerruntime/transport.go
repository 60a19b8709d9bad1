package controllerruntime

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
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

// Transport is for the Wrap of a rest.Config: it answers dry runs of applies, and sends everything else with next. It
// takes and gives JSON; a client that does not accept JSON is not answered.
func (d *DryRuns) Transport(next http.RoundTripper) http.RoundTripper {
	host, err := url.Parse(d.options.Config.Host)
	prefix := ""
	if err == nil {
		prefix = strings.TrimSuffix(host.Path, "/")
	}
	return &transport{next, d, prefix}
}

type transport struct {
	next    http.RoundTripper
	dryRuns *DryRuns
	prefix  string // of paths
}

// RoundTrip is http.RoundTripper's.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	target, ok := parseTarget(strings.TrimPrefix(r.URL.Path, t.prefix))
	if !ok || r.Method == http.MethodGet || r.Method == http.MethodHead {
		return t.next.RoundTrip(r)
	}
	kind, err := t.dryRuns.options.Mapper.KindFor(target.resource)
	if err != nil {
		return t.next.RoundTrip(r)
	}
	query := r.URL.Query()
	isDryRun := len(query["dryRun"]) > 0
	isApply := r.Method == http.MethodPatch && r.Header.Get("Content-Type") == string(types.ApplyYAMLPatchType)
	switch {
	case isApply && acceptsJSON(r) && (isDryRun || t.dryRuns.options.SkipUnchanged):
		return t.apply(r, target, kind, query)
	case isDryRun:
		return t.next.RoundTrip(r)
	case r.Method == http.MethodDelete && target.name == "":
		defer t.dryRuns.objects.loseKind(kind.GroupKind())
		return t.next.RoundTrip(r)
	}
	w := t.dryRuns.startWrite(kind.GroupKind(), target.key())
	response, served, err := t.send(r, target.subresource)
	if target.name == "" {
		w.Name = served.GetName()
	}
	if r.Method == http.MethodDelete {
		served = &unstructured.Unstructured{}
	}
	w.end(served.GetResourceVersion(), err)
	return response, ignoreStatus(err)
}

// apply answers or sends an apply.
func (t *transport) apply(
	r *http.Request, target target, kind schema.GroupVersionKind, query url.Values,
) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err = errors.Join(err, r.Body.Close()); err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.Header.Set("Accept", runtime.ContentTypeJSON) // the answer is compared
	isDryRun := query.Has("dryRun")
	intent := &unstructured.Unstructured{}
	repeated, err := kjson.UnmarshalStrict(body, &intent.Object)
	isKnown := err == nil && len(repeated) == 0 && intent.Object != nil &&
		(!isDryRun || slices.Equal(query["dryRun"], []string{metav1.DryRunAll}))
	request := request{
		kind: kind, key: target.key(), subresource: target.subresource, intent: intent,
		manager: query.Get("fieldManager"), force: query.Get("force") == "true",
		identity: strings.Join(slices.Concat(r.Header["Impersonate-User"], r.Header["Impersonate-Group"],
			r.Header["Impersonate-Uid"]), "\n"),
	}
	if !isKnown {
		request.intent = &unstructured.Unstructured{}
	}
	w := t.dryRuns.startWrite(kind.GroupKind(), request.key)
	decided := t.dryRuns.decide(r.Context(), request)
	if decided.result == answered {
		return respond(r, decided.answer)
	}
	response, served, err := t.send(r, target.subresource)
	if !isDryRun {
		w.end(served.GetResourceVersion(), err)
	}
	if response != nil {
		t.dryRuns.compare(r.Context(), decided, served.Object, len(response.Header["Warning"]) > 0)
	}
	return response, ignoreStatus(err)
}

// send sends a request, and returns what the server has of the object, empty if the response has not got it. The error
// is a status for a response of an error.
func (t *transport) send(
	r *http.Request, subresource string,
) (response *http.Response, served *unstructured.Unstructured, err error) {
	served = &unstructured.Unstructured{}
	response, err = t.next.RoundTrip(r)
	if err != nil {
		return nil, served, err
	}
	if response.StatusCode >= 300 {
		return response, served, &apierrors.StatusError{ErrStatus: metav1.Status{Code: int32(response.StatusCode)}}
	}
	contentType, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
	if contentType != runtime.ContentTypeJSON || subresource != "" && subresource != "status" {
		return response, served, nil
	}
	body, err := io.ReadAll(response.Body)
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), failing{err}), response.Body}
	if err == nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(body, &served.Object)
	}
	if err != nil {
		served.Object = nil // the version is not known, and the caller sees the error when it reads
	}
	return response, served, nil
}

// failing ends a body with the error that it ended with; nil for io.EOF.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return 0, io.EOF
}

// ignoreStatus returns the errors of a RoundTripper, for which a response with a status is none.
func ignoreStatus(err error) error {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return nil
	}
	return err
}

// respond answers a request with an object.
func respond(r *http.Request, obj client.Object) (*http.Response, error) {
	tree, err := objectTree(obj, obj.GetObjectKind().GroupVersionKind())
	if err != nil {
		return nil, err
	}
	body, err := (&unstructured.Unstructured{Object: tree}).MarshalJSON()
	if err != nil {
		return nil, err
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {runtime.ContentTypeJSON}}, Request: r,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

// acceptsJSON reports whether a response may be the object in JSON.
func acceptsJSON(r *http.Request) bool {
	accepted := r.Header.Get("Accept")
	return accepted == "" || slices.ContainsFunc(strings.Split(accepted, ","), func(media string) bool {
		media = strings.TrimSpace(media)
		return media == runtime.ContentTypeJSON || media == "*/*"
	})
}

// target is what a request is about; name is empty for all objects, or one that is created.
type target struct {
	resource                     schema.GroupVersionResource
	namespace, name, subresource string
}

func (t target) key() client.ObjectKey { return client.ObjectKey{Namespace: t.namespace, Name: t.name} }

// parseTarget reads a path of the API: /api/v1/namespaces/a/pods/b/status.
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
