package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// checkApply compares an apply on the object or its status.
func (w *write) checkApply() error {
	if w.body == nil {
		return skipHTTP
	}
	m, err := w.objectManager()
	if err != nil {
		return err
	}
	got, err := m.Apply(context.Background(), w.liveObject(), wrap(w.body), w.applyOptions())
	if w.s.Response.Code >= 300 {
		return w.compareErrors(err)
	}
	if err != nil {
		return fmt.Errorf("the engine rejects a write that the server accepted: %w", err)
	}
	kind, err := w.kind()
	if err != nil {
		return err
	}
	tree := w.settleTimes(kind, unwrap(got.Object))
	if err := compareManagedFields(tree, w.s.Response.Body); err != nil {
		return err
	}
	return w.compareObject(tree)
}

// compareErrors compares an error response with the engine's error.
func (w *write) compareErrors(err error) error {
	status := w.s.Response.Body
	message, _ := status["message"].(string)
	var conflicting conflicts.Conflicts
	var invalid typed.Errors
	isConflict, isInvalid := errors.As(err, &conflicting), errors.As(err, &invalid)
	switch w.s.Response.Code {
	case 409:
		if strings.HasPrefix(message, "Operation cannot be fulfilled") {
			return skipPrecondition
		}
		if !isConflict {
			return fmt.Errorf("the server reports a conflict, the engine does not: %v\n%s", err, message)
		}
		return compareStatus(conflicting.Status(), status)
	case 500:
		if isInvalid {
			return nil
		}
		if !strings.Contains(message, "failed to create typed patch object") {
			return skipGoTypes
		}
		return fmt.Errorf("the server rejects the intent, the engine does not: %v\n%s", err, message)
	case 400:
		if apierrors.IsBadRequest(err) && err.Error() == message {
			return nil
		}
		return skipHTTP
	case 422:
		return skipValidation
	}
	return skipHTTP
}

func compareStatus(got metav1.Status, want map[string]any) error {
	var status metav1.Status
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(want, &status); err != nil {
		return err
	}
	if got.Message != status.Message {
		return fmt.Errorf("conflict message\n%s", diff(status.Message, got.Message))
	}
	if got.Code != status.Code || got.Reason != status.Reason {
		return fmt.Errorf("conflict is %d %s, want %d %s", got.Code, got.Reason, status.Code, status.Reason)
	}
	// The server lists the causes in no fixed order.
	count := map[metav1.StatusCause]int{}
	for _, c := range status.Details.Causes {
		count[c]++
	}
	for _, c := range got.Details.Causes {
		count[c]--
	}
	for c, n := range count {
		if n != 0 {
			return fmt.Errorf("conflict cause %v: %+d too many", c, -n)
		}
	}
	return nil
}

// checkUpdate compares a create, update or patch: an update to the server's object, with the managed
// fields of the request, must result in the server's managed fields.
func (w *write) checkUpdate() error {
	m, err := w.objectManager()
	if err != nil {
		return err
	}
	carried, err := w.carried()
	if err != nil {
		return err
	}
	now := managedfields.With(w.s.Response.Body, carried)
	got, err := m.Update(context.Background(), w.liveObject(), wrap(now), fieldmanager.UpdateOptions{Manager: w.manager})
	if err != nil {
		return fmt.Errorf("the engine rejects a write that the server accepted: %w", err)
	}
	err = compareManagedFields(unwrap(got.Object), w.s.Response.Body)
	if err != nil && w.r.live == nil && w.crd() == nil && w.changedByAdmission(unwrap(got.Object)) {
		return skipAdmission
	}
	return err
}

// changedByAdmission reports whether the engine's entry of a new object has all fields of the server's
// entry, and more: those that were set after the server tracked fields. That happens to Pods and
// Services.
func (w *write) changedByAdmission(got map[string]any) bool {
	if kind := got["kind"]; kind != "Pod" && kind != "Service" {
		return false
	}
	ours, err1 := entriesIn(got)
	theirs, err2 := entriesIn(w.s.Response.Body)
	if err1 != nil || err2 != nil || len(ours) != 1 || len(theirs) != 1 {
		return false
	}
	return ours[0].Key == theirs[0].Key && theirs[0].Owned().Difference(ours[0].Owned()).Empty()
}

func entriesIn(tree map[string]any) (managedfields.Entries, error) {
	metadata, _ := tree["metadata"].(map[string]any)
	list, _ := metadata["managedFields"].([]any)
	return managedfields.DecodeTree(list)
}

// carried returns the managed fields of the request: those of the body, or, for a patch, those of live
// after the patch.
func (w *write) carried() (any, error) {
	if w.s.Request.Method != "PATCH" {
		return managedFieldsIn(w.body), nil
	}
	live, err := json.Marshal(map[string]any{"metadata": map[string]any{"managedFields": managedFieldsIn(w.r.live)}})
	if w.s.Request.ContentType == "application/json-patch+json" {
		live, err = json.Marshal(w.r.live)
	}
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(w.s.Request.Body)
	if err != nil {
		return nil, err
	}
	var patched []byte
	if w.s.Request.ContentType == "application/json-patch+json" {
		patch, err := jsonpatch.DecodePatch(body)
		if err != nil {
			return nil, err
		}
		patched, err = patch.Apply(live)
		if err != nil {
			return nil, err
		}
	} else if patched, err = jsonpatch.MergePatch(live, body); err != nil {
		// A strategic merge patch replaces managed fields too.
		return nil, err
	}
	var tree map[string]any
	if err := json.Unmarshal(patched, &tree); err != nil {
		return nil, err
	}
	return managedFieldsIn(tree), nil
}

func managedFieldsIn(tree map[string]any) any {
	list, _ := managedfields.Of(tree)
	return list
}

// checkScale compares a write to the scale subresource: the engine writes to the Scale of live. The next
// read compares the resulting object.
func (w *write) checkScale(isApply bool) error {
	if isApply && w.s.Response.Code == 500 && w.crd() != nil {
		return skipScaleFault
	}
	if w.r.live == nil {
		return skipHTTP
	}
	live, handler, err := w.liveScale()
	if err != nil {
		return err
	}
	m, err := w.fieldManager(scaleKind, true)
	if err != nil {
		return err
	}
	var got fieldmanager.Result
	if isApply {
		got, err = m.Apply(context.Background(), wrap(live), wrap(w.body), w.applyOptions())
		if w.s.Response.Code >= 300 {
			return w.compareErrors(err)
		}
	} else {
		now := wrap(managedfields.With(w.s.Response.Body, nil))
		got, err = m.Update(context.Background(), wrap(live), now, fieldmanager.UpdateOptions{Manager: w.manager})
	}
	if err != nil {
		return fmt.Errorf("the engine rejects a write that the server accepted: %w", err)
	}
	written, err := entriesIn(unwrap(got.Object))
	if err != nil {
		return err
	}
	after, err := handler.ToParent(written.Encode())
	if err != nil {
		return err
	}
	w.r.scaled = withScale(w.r.live, unwrap(got.Object), after)
	gotReplicas, _ := scaleReplicas(unwrap(got.Object))
	wantReplicas, _ := scaleReplicas(w.s.Response.Body)
	if gotReplicas != wantReplicas {
		return fmt.Errorf("replicas of the Scale are %v, want %v", gotReplicas, wantReplicas)
	}
	return nil
}

func (w *write) scalePaths() map[string]fieldpath.Path {
	replicas := fieldpath.Fields("spec", "replicas")
	out := map[string]fieldpath.Path{w.gv(): replicas}
	if w.crd() != nil {
		for _, version := range w.crd().versions() {
			out[w.group+"/"+version.name()] = version.scalePath()
		}
	}
	return out
}

func (w *write) scaleOf(live map[string]any) map[string]any {
	liveMetadata, _ := live["metadata"].(map[string]any)
	metadata := map[string]any{}
	for _, name := range []string{"name", "namespace", "uid", "resourceVersion", "creationTimestamp"} {
		if v, ok := liveMetadata[name]; ok {
			metadata[name] = v
		}
	}
	scale := map[string]any{"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata}
	spec := map[string]any{}
	if replicas, ok := scaleReplicas(live); ok && replicas != int64(0) {
		spec["replicas"] = replicas
	}
	scale["spec"] = spec
	if status, ok := w.s.Response.Body["status"].(map[string]any); ok {
		scale["status"] = status
	}
	return scale
}

func scaleReplicas(tree map[string]any) (any, bool) {
	spec, _ := tree["spec"].(map[string]any)
	v, ok := spec["replicas"]
	return v, ok
}

// withScale returns live after a write of its Scale.
func withScale(live, scale map[string]any, entries []metav1.ManagedFieldsEntry) map[string]any {
	out := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(live)}
	out.SetManagedFields(entries)
	if replicas, ok := scaleReplicas(scale); ok {
		// The comparison reports a spec of another type.
		_ = unstructured.SetNestedField(out.Object, replicas, "spec", "replicas")
	}
	return out.Object
}

// compareManagedFields compares managed fields, including order and times.
func compareManagedFields(got, want map[string]any) error {
	g, w := managedFieldsIn(got), managedFieldsIn(want)
	if g == nil {
		g = []any{}
	}
	if w == nil {
		w = []any{}
	}
	if reflect.DeepEqual(g, w) {
		return nil
	}
	return fmt.Errorf("managedFields\n%s", diff(render(w), render(g)))
}
