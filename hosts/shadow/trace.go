package shadow

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/compat/apimachinery"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// trace is a trace in the format of `cmd/replay`: one write, after a read that shows the live object. Its responses
// are upstream's results.
type trace struct {
	Name   string         `json:"name"`
	About  string         `json:"about"`
	Server string         `json:"server"`
	CRD    map[string]any `json:"crd,omitempty"`
	Steps  []step         `json:"steps"`
}

type step struct {
	Note    string `json:"note"`
	Request struct {
		Method      string         `json:"method"`
		Path        string         `json:"path"`
		Query       string         `json:"query,omitempty"`
		ContentType string         `json:"contentType,omitempty"`
		Body        map[string]any `json:"body,omitempty"`
	} `json:"request"`
	Now      string `json:"now"`
	Response struct {
		Code int            `json:"code"`
		Body map[string]any `json:"body"`
	} `json:"response"`
}

// writeTrace writes the trace of a write and returns its path. It returns "" for an update that upstream rejected,
// which has no trace.
func (r *Recorder) writeTrace(w *write, a *answers, found []difference) (string, error) {
	if w.operation != apply && a.upstreamErr != nil {
		return "", nil
	}
	t := w.trace(a, r.now)
	var about []string
	for _, d := range found {
		about = append(about, fmt.Sprintf("%s of %s: %s", d.number, d.of, shortened(d.detail)))
	}
	t.About = strings.Join(about, "\n")
	out, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return "", err
	}
	kind := w.of.kind
	name := strings.ToLower(kind.Kind.Kind)
	if kind.Subresource != "" {
		name += "-" + kind.Subresource
	}
	path := filepath.Join(r.options.Folder, fmt.Sprintf("%s-%s-%s-%d.json",
		w.at.UTC().Format("20060102T150405.000000"), name, w.operation, os.Getpid()))
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) // no file or link of another user
	if err != nil {
		return "", err
	}
	_, err = file.Write(append(out, '\n'))
	return path, errors.Join(err, file.Close())
}

func (w *write) trace(a *answers, now time.Time) trace {
	kind := w.of.kind
	t := trace{
		Name:   fmt.Sprintf("%s of a %s at %s", w.operation, kind.Kind.Kind, w.at.UTC().Format(time.RFC3339Nano)),
		Server: "recorded beside upstream", // tells cmd/replay that no server has responded
	}
	if openapi.Builtin().TypeFor(kind.Kind) == nil {
		t.CRD = kind.definition(entriesOf(a.live))
	}
	path := w.path(a)
	clock := now.UTC().Format(time.RFC3339)
	if a.live != nil {
		var read step
		read.Note, read.Now = "the object as it was", clock
		read.Request.Method, read.Request.Path = "GET", path
		read.Response.Code, read.Response.Body = 200, a.live
		t.Steps = append(t.Steps, read)
	}
	var s step
	s.Note, s.Now = string(w.operation), clock
	s.Request.Body = a.obj
	s.Request.Path = path
	if kind.Subresource != "" {
		s.Request.Path += "/" + kind.Subresource
	}
	query := url.Values{"fieldManager": {w.manager}}
	switch {
	case w.operation == apply:
		s.Request.Method, s.Request.ContentType = "PATCH", "application/apply-patch+yaml"
		if w.force {
			query.Set("force", "true")
		}
	case a.live == nil:
		s.Request.Method, s.Request.ContentType = "POST", "application/json"
		s.Request.Path = path[:strings.LastIndex(path, "/")]
	default:
		s.Request.Method, s.Request.ContentType = "PUT", "application/json"
	}
	s.Request.Query = query.Encode()
	s.Response.Code, s.Response.Body = response(a)
	t.Steps = append(t.Steps, s)
	return t
}

// path returns the path of the object in a request. The plural is a guess, which suffices for replays.
func (w *write) path(a *answers) string {
	kind := w.of.kind.Kind
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	path := "/apis/" + kind.GroupVersion().String()
	if kind.Group == "" {
		path = "/api/" + kind.Version
	}
	for _, tree := range []map[string]any{a.live, a.obj} {
		metadata, _ := tree["metadata"].(map[string]any)
		name, _ := metadata["name"].(string)
		namespace, _ := metadata["namespace"].(string)
		if name == "" {
			continue
		}
		if namespace != "" {
			path += "/namespaces/" + url.PathEscape(namespace)
		}
		return path + "/" + plural.Resource + "/" + url.PathEscape(name)
	}
	return path + "/" + plural.Resource + "/unnamed"
}

// response returns the response of a server. If nothing changed except times of entries, a server stores nothing, and
// responds with the live object. If anything else changed, the response has another resourceVersion than live.
func response(a *answers) (int, map[string]any) {
	if err := a.upstreamErr; err != nil {
		status := metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
			Code: 500, Reason: metav1.StatusReasonInternalError, Message: err.Error(),
		}
		var known apierrors.APIStatus
		if errors.As(err, &known) {
			status = known.Status()
			status.Kind, status.APIVersion = "Status", "v1"
		}
		// A Status can always be converted.
		tree, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
		return int(status.Code), tree
	}
	out := runtime.DeepCopyJSON(a.upstream)
	if a.live == nil {
		return 201, out
	}
	isSame := sameJSON(managedfields.With(a.live, nil), managedfields.With(out, nil))
	if isSame && sameJSON(withoutTimes(entriesOf(a.live)), withoutTimes(entriesOf(out))) {
		return 200, a.live
	}
	if metadata, ok := out["metadata"].(map[string]any); ok {
		version, _ := metadata["resourceVersion"].(string)
		metadata["resourceVersion"] = version + "0" // another version
	}
	return 200, out
}

func withoutTimes(entries []any) []any {
	out := make([]any, len(entries))
	for i, e := range entries {
		entry, _ := e.(map[string]any)
		entry = maps.Clone(entry)
		delete(entry, "time")
		out[i] = entry
	}
	return out
}

// definition returns a CustomResourceDefinition for the kind, with the topology and the defaults of its type. It has no
// validation, which does not matter to field management. Its versions are the version of the write and the versions of
// entries.
func (k *Kind) definition(entries []any) map[string]any {
	plural, singular := meta.UnsafeGuessKindToResource(k.Kind)
	names := []string{k.Kind.Version}
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		text, _ := entry["apiVersion"].(string)
		if gv, err := schema.ParseGroupVersion(text); err == nil && gv.Group == k.Kind.Group &&
			!slices.Contains(names, gv.Version) {
			names = append(names, gv.Version)
		}
	}
	var versions []any
	for _, name := range names {
		t, err := apimachinery.Types(k.Types).Type(k.Kind.GroupKind().WithVersion(name))
		if err != nil && name != k.Kind.Version {
			continue // the version is no longer served
		}
		version := map[string]any{
			"name": name, "served": true, "storage": name == k.Kind.Version,
			"schema": map[string]any{"openAPIV3Schema": schemaOf(t)},
		}
		if k.Subresource == "status" || len(k.ResetFields) > 0 {
			version["subresources"] = map[string]any{"status": map[string]any{}}
		}
		versions = append(versions, version)
	}
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural.Resource + "." + k.Kind.Group},
		"spec": map[string]any{
			"group": k.Kind.Group, "scope": "Namespaced",
			"names":    map[string]any{"plural": plural.Resource, "singular": singular.Resource, "kind": k.Kind.Kind},
			"versions": versions,
		},
	}
}

// maxSchemaDepth limits the depth of a recursive type's schema. Deeper values may have any fields.
const maxSchemaDepth = 40

// schemaOf returns the schema of a type, in the format of CustomResourceDefinitions.
func schemaOf(t *typed.Type) map[string]any {
	root := schemaAt(t, 0)
	if root["type"] != "object" {
		return map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	}
	if properties, ok := root["properties"].(map[string]any); ok {
		// A definition does not contain the fields that every object has.
		for _, name := range []string{"apiVersion", "kind"} {
			properties[name] = map[string]any{"type": "string"}
		}
		properties["metadata"] = map[string]any{"type": "object"}
	}
	return root
}

func schemaAt(t *typed.Type, depth int) map[string]any {
	anything := map[string]any{"x-kubernetes-preserve-unknown-fields": true}
	if t == nil || depth > maxSchemaDepth {
		return anything
	}
	switch {
	case t.Map != nil && t.List == nil && t.Scalar == 0:
		return mapSchema(t.Map, depth)
	case t.List != nil && t.Map == nil && t.Scalar == 0:
		return listSchema(t.List, depth)
	case t.Map != nil || t.List != nil:
		return anything
	}
	switch t.Scalar {
	case typed.String:
		return map[string]any{"type": "string"}
	case typed.Boolean:
		return map[string]any{"type": "boolean"}
	case typed.Numeric:
		return map[string]any{"type": "number"}
	}
	return map[string]any{"x-kubernetes-int-or-string": true}
}

func mapSchema(m *typed.Map, depth int) map[string]any {
	out := map[string]any{"type": "object"}
	if m.IsAtomic() {
		out["x-kubernetes-map-type"] = "atomic"
	}
	properties := map[string]any{}
	for name, field := range m.Fields() {
		property := schemaAt(field.Type, depth+1)
		if field.Default != nil {
			property["default"] = field.Default
		}
		properties[name] = property
	}
	if len(properties) > 0 {
		out["properties"] = properties
	}
	switch {
	case m.IsUntyped():
		out["x-kubernetes-preserve-unknown-fields"] = true
	case m.Elem() != nil && len(properties) == 0:
		out["additionalProperties"] = schemaAt(m.Elem(), depth+1)
	case m.Elem() != nil:
		out["x-kubernetes-preserve-unknown-fields"] = true
	}
	return out
}

func listSchema(l *typed.List, depth int) map[string]any {
	out := map[string]any{"type": "array", "items": schemaAt(l.Elem(), depth+1)}
	switch {
	case l.IsAtomic():
		out["x-kubernetes-list-type"] = "atomic"
	case l.IsSet():
		out["x-kubernetes-list-type"] = "set"
	default:
		var list []any
		for key := range l.Keys() {
			list = append(list, key)
		}
		out["x-kubernetes-list-type"], out["x-kubernetes-list-map-keys"] = "map", list
	}
	return out
}
