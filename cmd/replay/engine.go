package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tenure-ssa/tenure/apiserver/recorded"
	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// besideUpstream is the server name in traces of package hosts/shadow. Such a trace has one write to an object, and
// the result of upstream's field manager: no server has validated the object, or set fields that only servers set.
const besideUpstream = "recorded beside upstream"

// engine replays traces recorded beside upstream, and traces whose kind only the files of --schema define. It does what
// a field manager does. If a server recorded the trace, the engine also sets the metadata that every server sets.
// Requests that do not write the object, such as a request for the server's version, succeed.
type engine struct {
	env     *process.Env
	catalog *place.Catalog
	place   place.Place
	kind    schema.GroupVersionKind
	found   map[string]any // nil if there is no object
	served  bool           // the trace was recorded on a server
}

// isUnknown reports whether the server in this process does not serve the kind of a trace.
func isUnknown(trace *recorded.Trace) (bool, error) {
	for _, step := range trace.Steps {
		if body, ok := step.Request.Body.(map[string]any); ok && body["kind"] != nil {
			kind, err := document.GVKOf(body)
			return err == nil && openapi.Builtin().Versions(kind.GroupKind()) == nil, err
		}
	}
	return false, nil
}

func newEngine(env *process.Env, trace *recorded.Trace, schemas []string) (e *engine, err error) {
	e = &engine{env: env, catalog: place.NewCatalog(), served: trace.Server != besideUpstream}
	inputs, err := manifest.ReadSchemas(env, schemas)
	if err == nil {
		err = e.catalog.AddSchemas(inputs)
	}
	if err != nil {
		return nil, err
	}
	if trace.CRD != nil {
		d, err := place.Define(trace.CRD)
		if err != nil {
			return nil, err
		}
		e.catalog.Define(d)
	}
	if first := trace.Steps[0]; first.Request.Method == http.MethodGet {
		e.found = first.Response.Body
	}
	if e.place, err = place.NewMemory(env.Now, e.catalog, e.found); err != nil {
		return nil, err
	}
	known := e.found
	if known == nil {
		known, _ = trace.Steps[len(trace.Steps)-1].Request.Body.(map[string]any)
	}
	e.kind, err = document.GVKOf(known)
	return e, err
}

// RoundTrip implements [http.RoundTripper].
func (e *engine) RoundTrip(q *http.Request) (*http.Response, error) {
	code, object := http.StatusOK, e.found
	if q.Method != http.MethodGet {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			return nil, err
		}
		var given map[string]any
		if err := utiljson.Unmarshal(body, &given); err != nil {
			return nil, err
		}
		if given["kind"] == e.kind.Kind {
			if code, object, err = e.write(q, given); err != nil {
				return nil, err
			}
		}
	}
	data, err := json.Marshal(object)
	return &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(data))}, err
}

func (e *engine) write(q *http.Request, given map[string]any) (code int, _ map[string]any, err error) {
	target, err := recorded.ParseTarget(q.URL.Path)
	if err != nil {
		return 0, nil, err
	}
	u := &unstructured.Unstructured{Object: maps.Clone(given)}
	u.SetGroupVersionKind(e.kind) // the field manager reports errors about other versions
	t, _, err := e.place.Live(q.Context(), u.Object)
	if err != nil {
		return 0, nil, err
	}
	t = t.Stored()
	m, err := t.Manager(e.env.Now, target.Subresource)
	if err != nil {
		return 0, nil, err
	}
	query := q.URL.Query()
	var out fieldmanager.Result
	if isApply := q.Header.Get("Content-Type") == string(types.ApplyPatchType); isApply {
		options := fieldmanager.ApplyOptions{Manager: query.Get("fieldManager"), Force: query.Has("force")}
		out, err = m.Apply(q.Context(), place.Wrap(t.Object), place.Wrap(given), options)
	} else if e.served {
		return 0, nil, recorded.Unfit("the engine alone does no other writes than applies to kinds of --schema")
	} else {
		options := fieldmanager.UpdateOptions{Manager: query.Get("fieldManager")}
		out, err = m.Update(q.Context(), place.Wrap(t.Object), place.Wrap(given), options)
	}
	if err != nil {
		return statusOf(err)
	}
	object, err := e.withDefaults(t, out.Object)
	switch {
	case err != nil:
		return 0, nil, err
	case t.Object == nil:
		return http.StatusCreated, object, e.store(q, object)
	case managedfields.Equal(place.Wrap(t.Object), place.Wrap(object), true) &&
		typed.Equal(managedfields.With(t.Object, nil), managedfields.With(object, nil)):
		return http.StatusOK, t.Object, nil // a server does not store an object in which only times change
	}
	u.Object = object
	u.SetResourceVersion(u.GetResourceVersion() + "0")
	return http.StatusOK, object, e.store(q, object)
}

// store keeps an object for the next step, with metadata that a server sets.
func (e *engine) store(q *http.Request, object map[string]any) (err error) {
	if !e.served {
		return nil
	}
	content := func(object map[string]any) map[string]any {
		out := maps.Clone(object)
		delete(out, "metadata")
		delete(out, "status")
		return out
	}
	u := &unstructured.Unstructured{Object: object}
	switch {
	case e.found == nil:
		u.SetUID("00000000-0000-4000-8000-000000000000")
		u.SetCreationTimestamp(metav1.NewTime(e.env.Now()))
		u.SetResourceVersion("1")
		u.SetGeneration(1)
	case !typed.Equal(content(e.found), content(object)):
		u.SetGeneration(u.GetGeneration() + 1)
	}
	if q.URL.Query().Has("dryRun") {
		return nil
	}
	e.found = object
	e.place, err = place.NewMemory(e.env.Now, e.catalog, object)
	return err
}

// withDefaults returns an object with its defaults. For a built-in kind, Go code sets these.
func (e *engine) withDefaults(t *place.Target, obj runtime.Object) (map[string]any, error) {
	u := obj.DeepCopyObject().(*unstructured.Unstructured)
	u.Object, _ = t.Kind.Typ.Default(u.Object).(map[string]any)
	if set := t.PlanOptions(false).Defaulter; set != nil {
		set(u)
	}
	return u.Object, nil
}

// statusOf returns an error as the code and Status of a response.
func statusOf(err error) (int, map[string]any, error) {
	status := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusBadRequest, Message: err.Error()}
	if known := apierrors.APIStatus(nil); errors.As(err, &known) {
		status = known.Status()
	}
	status.Kind, status.APIVersion = "Status", "v1"
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	return int(status.Code), tree, err
}

// planOnEngine makes the planner use the engine.
func (p *planner) planOnEngine(trace *recorded.Trace, schemas []string) error {
	e, err := newEngine(p.env, trace, schemas)
	if err != nil {
		return err
	}
	p.next = e
	p.place = func(string) place.Place { return e.place }
	p.kindOf = func(recorded.Target) (schema.GroupVersionKind, error) { return e.kind, nil }
	return nil
}
