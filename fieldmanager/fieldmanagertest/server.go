package fieldmanagertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/gostruct"
	"github.com/tenure-ssa/tenure/internal/trees"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// start is the time of the first write.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const (
	objectName = "thing"
	objectUID  = "00000000-0000-4000-8000-000000000001"
)

// server writes to an object like an API server, as far as managed fields are concerned. The object is in a [state].
type server struct {
	types     fieldmanager.Types
	converter fieldmanager.Converter
	kind      schema.GroupKind // empty until it is known
	versions  []string         // the preferred version first
	crd       map[string]any   // nil for a built-in kind
	// replicas has, by version, the path of the field that the scale subresource sets; nil for a version without scale.
	replicas map[string][]string

	now      time.Time              // time of the current write
	warnings []fieldmanager.Warning // warnings of the current write

	// observe, if it is not nil, is called for each call of the engine.
	observe func(call)
}

// call is one call of the engine, with its result.
type call struct {
	server       *server
	manager      *fieldmanager.FieldManager
	write        Write
	live, object runtime.Object // copies; live is nil for a create
	out          map[string]any
	err          error
}

func newServer() *server {
	return &server{types: openapi.Builtin(), converter: fieldmanager.NoneConverter{}}
}

// do makes a write. If the write fails, only the clock of the state changes. The result has no object;
// Result.withObject adds it.
func (s *server) do(st state, w Write) (state, Result) {
	s.now, s.warnings = start.Add(time.Duration(st.writes)*time.Second), nil
	next := st
	next.writes++
	live, err := s.write(st, w)
	out := Result{Err: err, Warnings: s.warnings}
	switch {
	case err != nil:
		errors.As(err, &out.Conflicts)
	case live != nil:
		next.live, out.Changed = live, true
		next.stored++
	}
	return next, out
}

// write returns the object to store, or nil for a no-op.
func (s *server) write(st state, w Write) (map[string]any, error) {
	body, err := decode(w.object)
	if err != nil {
		return nil, err
	}
	if err := s.identify(body); err != nil {
		return nil, err
	}
	if st.live == nil && (w.verb == patchVerb || w.subresource != "") {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: s.kind.Group, Resource: s.kind.Kind}, objectName)
	}
	version := cmp.Or(w.version, s.versionOf(body))
	if !s.serves(w.subresource, version) {
		return nil, apierrors.NewNotFound(
			schema.GroupResource{Group: s.kind.Group, Resource: s.kind.Kind + "/" + w.subresource}, objectName)
	}
	var object map[string]any
	if w.subresource == "scale" {
		object, err = s.scale(st, w, body, version)
	} else {
		object, err = s.writeObject(st, w, body, version)
	}
	if err != nil {
		return nil, err
	}
	return s.toStore(st, object)
}

// versionOf returns the version of an object. If that version is missing or not served, it returns the preferred
// version.
func (s *server) versionOf(body map[string]any) string {
	apiVersion, _ := body["apiVersion"].(string)
	if gv, err := schema.ParseGroupVersion(apiVersion); err == nil && gv.Group == s.kind.Group &&
		slices.Contains(s.versions, gv.Version) {
		return gv.Version
	}
	return s.versions[0]
}

// writeObject writes to the object or its status.
func (s *server) writeObject(st state, w Write, body map[string]any, version string) (map[string]any, error) {
	gvk := s.kind.WithVersion(version)
	if w.verb == patchVerb {
		live, err := s.convert(st.live, version)
		if err != nil {
			return nil, err
		}
		body = mergePatch(live, body).(map[string]any)
	}
	s.complete(body, gvk, st.live)
	if err := s.sameObject(w, body, st.live); err != nil {
		return nil, err
	}
	object, err := s.engine(gvk, w, st.live, body)
	if err != nil {
		return nil, err
	}
	return s.reset(st, w, object, version)
}

// complete sets the kind and name that a body omits.
func (s *server) complete(body map[string]any, gvk schema.GroupVersionKind, live map[string]any) {
	if _, ok := body["apiVersion"]; !ok {
		body["apiVersion"] = gvk.GroupVersion().String()
	}
	if _, ok := body["kind"]; !ok {
		body["kind"] = gvk.Kind
	}
	metadata, ok := body["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		body["metadata"] = metadata
	}
	if _, ok := metadata["name"]; !ok {
		metadata["name"] = objectName
		copyFields(metadata, live, "name")
	}
}

// sameObject rejects a body whose name or kind differs from the stored object's. It does not check the kind of an
// apply, because the engine does.
func (s *server) sameObject(w Write, body, live map[string]any) error {
	before, _ := live["metadata"].(map[string]any)
	name := body["metadata"].(map[string]any)["name"]
	if live != nil && name != before["name"] {
		return apierrors.NewBadRequest(fmt.Sprintf("metadata.name: expected %v, got %v", before["name"], name))
	}
	if w.verb == applyVerb {
		return nil
	}
	apiVersion, _ := body["apiVersion"].(string)
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return apierrors.NewBadRequest("apiVersion: " + err.Error())
	}
	kind, _ := body["kind"].(string)
	if got := (schema.GroupKind{Group: gv.Group, Kind: kind}); got != s.kind {
		return apierrors.NewBadRequest(fmt.Sprintf("kind: expected %s, got %s", s.kind, got))
	}
	return nil
}

// copyFields copies the named fields of metadata that the source has.
func copyFields(metadata, from map[string]any, names ...string) {
	before, _ := from["metadata"].(map[string]any)
	for _, name := range names {
		if v, ok := before[name]; ok {
			metadata[name] = v
		}
	}
}

// engine calls the engine, and checks that the engine does not change its arguments, even if it fails (spec rule 1.6).
func (s *server) engine(gvk schema.GroupVersionKind, w Write, live, body map[string]any) (map[string]any, error) {
	m, err := s.manager(gvk, w.subresource)
	if err != nil {
		return nil, err
	}
	c := call{server: s, manager: m, write: w, object: state{live: body}.object()}
	object := &unstructured.Unstructured{Object: body}
	var stored runtime.Object // nil interface for a create
	if live != nil {
		stored, c.live = &unstructured.Unstructured{Object: live}, state{live: live}.object()
	}
	var out fieldmanager.Result
	if ctx := context.Background(); w.verb == applyVerb {
		out, err = m.Apply(ctx, stored, object, fieldmanager.ApplyOptions{Manager: w.manager, Force: w.force})
	} else {
		out, err = m.Update(ctx, stored, object, fieldmanager.UpdateOptions{Manager: w.manager})
	}
	if !reflect.DeepEqual(object, c.object) || !reflect.DeepEqual(stored, c.live) {
		return nil, fmt.Errorf("%s %s: the engine changed an object that it was given", w.verb, w.manager)
	}
	if c.err = err; err == nil {
		c.out = out.Object.(*unstructured.Unstructured).Object
	}
	if s.observe != nil {
		s.observe(c)
	}
	return c.out, err
}

func (s *server) manager(gvk schema.GroupVersionKind, subresource string) (*fieldmanager.FieldManager, error) {
	types := s.types
	if gvk.GroupKind() == scaleKind.GroupKind() {
		types = openapi.Builtin()
	}
	return fieldmanager.New(gvk, types,
		fieldmanager.Options{Converter: s.converter,
			Subresource: subresource,
			ResetFields: s.resets(subresource, gvk.Version).Filters(),
			Clock:       func() time.Time { return s.now },
			Warnings: func(warning fieldmanager.Warning) {
				// The same conversion may fail several times in one write.
				isSame := func(w fieldmanager.Warning) bool { return w.String() == warning.String() }
				if !slices.ContainsFunc(s.warnings, isSame) {
					s.warnings = append(s.warnings, warning)
				}
			}})
}

// reset returns object with live's values in the fields that the write must not change.
func (s *server) reset(st state, w Write, object map[string]any, version string) (map[string]any, error) {
	live, err := s.convert(st.live, version)
	if err != nil {
		return nil, err
	}
	list, _ := managedfields.Of(object)
	return managedfields.With(s.resets(w.subresource, version).Restore(live, object), list), nil
}

// convert returns the object at a version; nil for a nil object.
func (s *server) convert(tree map[string]any, version string) (map[string]any, error) {
	to := s.at(version)
	if tree == nil || tree["apiVersion"] == to.String() {
		return tree, nil
	}
	out, err := s.converter.Convert(context.Background(), &unstructured.Unstructured{Object: tree}, to)
	if err != nil {
		return nil, fmt.Errorf("converting to %s: %w", to, err)
	}
	return gostruct.Tree(out)
}

// toStore returns the object with the fields that a server sets, or nil if it equals the stored object. Like a server,
// it treats objects as equal if only the times of entries differ.
func (s *server) toStore(st state, object map[string]any) (map[string]any, error) {
	object = trees.Copy(object).(map[string]any)
	metadata := object["metadata"].(map[string]any)
	if st.live == nil {
		metadata["uid"] = objectUID
		metadata["creationTimestamp"] = s.now.Format(time.RFC3339)
	} else {
		copyFields(metadata, st.live, "uid", "creationTimestamp", "resourceVersion")
		// An object that is stored at a removed version is treated as different. Storing it again does no harm.
		same, err := s.convert(object, s.versionOf(st.live))
		if err == nil && typed.Equal(managedfields.With(same, nil), managedfields.With(st.live, nil)) &&
			managedfields.Equal(&unstructured.Unstructured{Object: same}, &unstructured.Unstructured{Object: st.live}, true) {
			return nil, nil
		}
	}
	metadata["resourceVersion"] = strconv.Itoa(st.stored + 1)
	return object, nil
}

// store returns the state with obj as the stored object. It adds the kind, name and server-set metadata that obj lacks.
func (s *server) store(st state, obj any) (state, error) {
	tree, err := decode(obj)
	if err != nil {
		return st, err
	}
	if err := s.identify(tree); err != nil {
		return st, err
	}
	s.complete(tree, s.kind.WithVersion(s.versionOf(tree)), st.live)
	st.stored++
	metadata := map[string]any{
		"uid": objectUID, "creationTimestamp": start.Format(time.RFC3339), "resourceVersion": strconv.Itoa(st.stored),
	}
	maps.Copy(metadata, tree["metadata"].(map[string]any))
	tree["metadata"] = metadata
	st.live = tree
	return st, nil
}
