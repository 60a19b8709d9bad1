package oracle

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Server is an API server that makes the same writes to one object as both engines.
type Server interface {
	// Name returns the name and the namespace of the object.
	Name() (name, namespace string)
	// Live returns the object at a version; nil if it does not exist.
	Live(version string) (*unstructured.Unstructured, error)
	// Do sends a write. If the server rejects it, the error has the Status of the response.
	Do(write Write, how How) (*unstructured.Unstructured, error)
	// Close deletes the object.
	Close() error
}

// How describes how a write is sent.
type How struct {
	Create bool // the object does not exist, and an update creates it
	DryRun bool
}

// answer is an engine's result of a write.
type answer struct {
	object *unstructured.Unstructured
	err    error
}

// serve sends a write to the server of the definition, and compares the response with the results of both engines. The
// engines start from the server's object, and an update ends with the server's object, so serve compares only field
// management, and no other effects of a server, such as defaults.
func (w *World) serve(write Write, h *History) {
	live, err := w.server.Live(write.Version)
	if w.Live = live; err != nil {
		h.Err = err
		return
	}
	write = w.addressed(write)
	h.Writes = append(h.Writes, write)
	w.sent = append(w.sent, write.Object)
	got, err := w.server.Do(write, How{Create: live == nil && !write.Apply})
	var status apierrors.APIStatus
	switch isKnown := errors.As(err, &status); {
	case err != nil && !isKnown:
		h.Err = err
		return
	case err != nil && (!apierrors.IsConflict(err) || !write.Apply):
		h.Refused[reasonOf(status.Status())]++
		return
	case err == nil:
		h.Stored++
	}
	isUntracked := write.Apply && live != nil && len(live.GetManagedFields()) == 0
	if w.isOfOtherVersions(write, live, got) || isUntracked && (write.Subresource != "" || !w.isFromWrites(write, live)) {
		// Only the server knows how to convert, which fields the status resets, and which fields a Go struct has
		// initially.
		h.Uncompared++
		return
	}
	asked := write.Object
	if !write.Apply { // a server tracks the stored object, so this object must equal the object that was sent
		if !w.isStored(write, got) {
			h.Uncompared++
			return
		}
		write.Object = got.DeepCopy()
		write.Object.SetManagedFields(asked.GetManagedFields())
	}
	_, met, differs := w.both(write)
	for _, number := range met {
		h.Met[number]++
	}
	if h.Err = differs; differs != nil {
		return
	}
	if !write.Apply && (w.answers[0].err != nil || w.answers[1].err != nil) {
		h.Uncompared++ // a server stores the object without tracking it
		return
	}
	for _, engine := range w.answers { // their results differ at most by a numbered difference
		if h.Err = w.compareServed(write, asked, engine, answer{got, err}); h.Err == nil {
			return
		}
	}
}

// addressed returns a write with the metadata that identifies its object. A write to the status has no other metadata,
// because servers differ in whether such a write may change metadata.
func (w *World) addressed(write Write) Write {
	write.Object = write.Object.DeepCopy()
	live := w.Live
	if live == nil {
		live, write.Subresource = &unstructured.Unstructured{Object: map[string]any{}}, ""
	}
	o, entries := write.Object, write.Object.GetManagedFields()
	switch {
	case write.Subresource != "" && write.Apply || o.Object["metadata"] == nil:
		o.Object["metadata"] = map[string]any{}
	case write.Subresource != "":
		o.Object["metadata"] = runtime.DeepCopyJSONValue(live.Object["metadata"])
		o.SetManagedFields(entries)
	}
	name, namespace := w.server.Name()
	o.SetName(name)
	o.SetNamespace(namespace)
	if !write.Apply {
		o.SetResourceVersion(live.GetResourceVersion())
		o.SetUID(live.GetUID())
	}
	return write
}

// isFromWrites reports whether everything in an object except its metadata was sent.
func (w *World) isFromWrites(write Write, live *unstructured.Unstructured) bool {
	t, content := w.typeAt(write.Version), withoutMetadata(live)
	for path := range t.FieldSet(content).Leaves().All() {
		isSent := func(u *unstructured.Unstructured) bool { v, _ := t.Get(u.Object, path); return !isZero(v) }
		if len(path) > 1 && !slices.ContainsFunc(w.sent, isSent) {
			return false
		}
	}
	return !hasEmpty(content)
}

// isStored reports whether a server stored the object of an update. For Go structs, a strategy or a conversion may
// change the object, and a null or empty field may be the same as a missing one.
func (w *World) isStored(write Write, got *unstructured.Unstructured) bool {
	t := w.typeAt(write.Version)
	for path := range t.FieldSet(withoutMetadata(write.Object)).Leaves().All() {
		sent, _ := t.Get(write.Object.Object, path)
		stored, _ := t.Get(got.Object, path)
		_, isMap := sent.(map[string]any) // such as the spec of a Go struct, which always exists
		if hasEmpty(sent) && (len(path) > 1 || !isMap) || !isZero(sent) && !typed.Equal(sent, stored) {
			return false
		}
	}
	return true
}

// reasonOf returns the first cause of a rejection without values, or the message.
func reasonOf(s metav1.Status) string {
	if s.Details != nil && len(s.Details.Causes) > 0 {
		c := s.Details.Causes[0]
		message, _, _ := strings.Cut(c.Message, ":")
		return fmt.Sprintf("%d %s: %s", s.Code, c.Field, message)
	}
	return fmt.Sprintf("%d %s", s.Code, s.Message)
}

// isOfOtherVersions reports whether an entry has another version than the write.
func (w *World) isOfOtherVersions(write Write, objects ...*unstructured.Unstructured) bool {
	want := w.kind(write.Version).GroupVersion().String()
	for _, object := range objects {
		if object != nil && slices.ContainsFunc(object.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
			return e.APIVersion != want
		}) {
			return true
		}
	}
	return false
}

// compareServed compares the server's response with an engine's result. asked is the object that an update sent.
func (w *World) compareServed(write Write, asked *unstructured.Unstructured, want, got answer) error {
	switch {
	case !slices.Equal(sortedCauses(want.err), sortedCauses(got.err)) || got.err == nil && want.err != nil:
		return fmt.Errorf("the server responds %s\nexpected %s", got, want)
	case want.err != nil:
		return nil
	case write.Apply:
		if err := w.compareStored(write, want.object, got.object); err != nil {
			return err
		}
	}
	return w.compareOwners(write, asked, want.object, got.object)
}

func (a answer) String() string {
	if a.err != nil {
		return a.err.Error()
	}
	return JSON(a.object.Object)
}

// compareStored compares the server's result of an apply with the server's result of storing the expected object, so
// that defaults and encodings of values are the same.
func (w *World) compareStored(write Write, want, got *unstructured.Unstructured) error {
	put := write
	put.Apply, put.Object = false, want.DeepCopy()
	put.Object.SetManagedFields(nil)
	put.Object.SetResourceVersion(got.GetResourceVersion())
	put.Object.SetUID(got.GetUID())
	stored, err := w.server.Do(put, How{DryRun: true})
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return nil // the server rejects the result of upstream's engine, so there is no expected object
	} else if err != nil {
		return err
	}
	content := func(u *unstructured.Unstructured) map[string]any {
		out := map[string]any{}
		for name := range w.defined.Schemas[write.Version].Properties {
			if v, ok := u.Object[name]; ok && name != "metadata" && (name == "status") == (write.Subresource != "") {
				out[name] = v
			}
		}
		if write.Subresource == "" {
			out["labels"], out["annotations"] = u.GetLabels(), u.GetAnnotations()
		}
		return out
	}
	if a, b := JSON(content(stored)), JSON(content(got)); a != b {
		return fmt.Errorf("the server has %s\nexpected       %s", b, a)
	}
	return nil
}

func withoutMetadata(u *unstructured.Unstructured) map[string]any {
	out := maps.Clone(u.Object)
	delete(out, "metadata")
	return out
}

// hasEmpty reports whether v is or contains null, an empty map or an empty list.
func hasEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0 || slices.ContainsFunc(slices.Collect(maps.Values(v)), hasEmpty)
	case []any:
		return len(v) == 0 || slices.ContainsFunc(v, hasEmpty)
	}
	return false
}

// isZero reports whether v is null, empty or zero, or a container that contains only such values.
func isZero(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, value := range v {
			if !isZero(value) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	case string:
		return v == ""
	case bool:
		return !v
	}
	return v == nil || typed.Equal(v, int64(0))
}

// compareOwners compares managed fields without times. In Update entries, it ignores top-level fields. In the entry of
// the update's manager, it also ignores fields without a value in the update, or with a zero value. Only the server
// knows whether it sets such fields before it tracks an update.
func (w *World) compareOwners(write Write, asked, want, got *unstructured.Unstructured) error {
	expected, err1 := managedfields.DecodeTree(managedFields(want.Object))
	found, err2 := managedfields.DecodeTree(managedFields(got.Object))
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	less := func(e managedfields.Entry) *fieldpath.Set {
		if e.Key.Operation == metav1.ManagedFieldsOperationApply {
			return e.Owned()
		}
		var paths []fieldpath.Path
		for path := range e.Owned().All() {
			sent, _ := w.typeAt(write.Version).Get(asked.Object, path)
			isOwn := !write.Apply && e.Key.Manager == write.Manager
			if len(path) == 1 || isOwn && isZero(sent) { // a Go struct has its fields before anything is set
				paths = append(paths, slices.Clone(path))
			}
		}
		return e.Owned().Difference(fieldpath.NewSet(paths...))
	}
	texts := func(entries managedfields.Entries) (out []string) {
		for _, e := range entries {
			if fields := less(e); !fields.IsEmpty() {
				out = append(out, fmt.Sprint(e.Key, " ", e.APIVersion, " ", fields))
			}
		}
		slices.Sort(out)
		return out
	}
	if a, b := texts(expected), texts(found); !slices.Equal(a, b) {
		return fmt.Errorf("the server's managed fields: %s\nexpected:                    %s",
			strings.Join(b, "\n  "), strings.Join(a, "\n  "))
	}
	return nil
}

// sendable returns a schema without the properties whose random values a server would reject: properties without a
// type, and properties with a format other than the formats of numbers.
func sendable(s *spec.Schema) *spec.Schema {
	out := *s
	out.Properties = map[string]spec.Schema{}
	for name, sub := range s.Properties {
		isNumber := strings.HasPrefix(sub.Format, "int") || strings.HasPrefix(sub.Format, "float") || sub.Format == "double"
		isFree := sub.Extensions["x-kubernetes-int-or-string"] == true ||
			sub.Extensions["x-kubernetes-preserve-unknown-fields"] == true
		if (sub.Format == "" || isNumber) && (typeOf(&sub) != "" || isFree) {
			out.Properties[name] = *sendable(&sub)
		}
	}
	if elem := elemOf(s); elem != nil {
		out.AdditionalProperties = &spec.SchemaOrBool{Allows: true, Schema: sendable(elem)}
	}
	if s.Items != nil && s.Items.Schema != nil {
		out.Items = &spec.SchemaOrArray{Schema: sendable(s.Items.Schema)}
	}
	return &out
}
