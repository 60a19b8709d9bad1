// Package excess finds fields that managers own although a policy does not permit it.
//
//	p, err := policy.Parse(file)
//	...
//	fields, err := excess.Find(p, deployment)
//	for _, f := range fields {
//		fmt.Println(f) // deployment.apps/web in shop: .spec.replicas: my-operator (Update) owns it since …
//	}
//
// [policy.Policy.Permits] says what a manager may own. Components of the control plane and writes through the status
// subresource are not checked. [Find] checks the managers that the policy names. [FindDrift] checks all managers: it
// finds the owned fields that a manifest lacks and that none of their owners may own.
package excess

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/conflicts/policy"
	"github.com/tenure-ssa/tenure/internal/gostruct"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership/internal/components"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Field is a field that a manager owns but may not own.
type Field struct {
	// Kind is the kind of the object with its group, such as deployment.apps.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Path is the path of the field. The manager owns no field below it.
	Path fieldpath.Path `json:"field"`
	policy.Owner
	// Time is when the manager last changed its entry; nil if the entry has no time.
	Time *metav1.Time `json:"time,omitempty"`
	// Before is the earlier state of the field. Only FindTaken sets it.
	Before *Before `json:"before,omitempty"`
}

// String returns a line with the object, the field, its owner, the time, and the field's earlier state.
func (f Field) String() string {
	text := f.Kind + "/" + f.Name
	if f.Namespace != "" {
		text += " in " + f.Namespace
	}
	text = fmt.Sprintf("%s: %s: %s owns it", printable.Text(text), f.Path, ownerText(f.Owner))
	if f.Time != nil {
		text += " since " + f.Time.UTC().Format(time.RFC3339)
	}
	if f.Before != nil {
		text += "; before, it was " + f.Before.String()
	}
	return text
}

func ownerText(o policy.Owner) string {
	if o.Subresource == "" {
		return fmt.Sprintf("%s (%s)", printable.Text(o.Manager), o.Operation)
	}
	return fmt.Sprintf("%s (%s of %s)", printable.Text(o.Manager), o.Operation, printable.Text(o.Subresource))
}

// Find returns the fields of obj that managers own but may not own by policy p, in the order of the entries and their
// paths. It returns an error if an entry of a checked manager can't be decoded. obj is an unstructured object or a Go
// struct with its kind; Find does not change it.
func Find(p *policy.Policy, obj runtime.Object) (found []Field, err error) {
	metadata, entries, err := read(obj)
	if err != nil {
		return nil, err
	}
	kind := strings.ToLower(metadata.GroupVersionKind().GroupKind().String())
	var undecoded []error
	for i := range entries {
		e := &entries[i]
		if !p.Names(e.Manager) || !isJudged(e) {
			continue
		}
		set, err := e.FieldSet()
		if err != nil {
			undecoded = append(undecoded, err)
		}
		owner := policy.Owner{Manager: e.Manager, Operation: e.Operation, Subresource: e.Subresource}
		for path := range set.Leaves().All() {
			if !p.Permits(metadata, owner, path) {
				found = append(found, Field{
					Kind: kind, Namespace: metadata.Namespace, Name: metadata.Name,
					Path: slices.Clone(path), Owner: owner, Time: e.Time,
				})
			}
		}
	}
	return found, errors.Join(undecoded...)
}

// isJudged reports whether policies apply to an entry.
func isJudged(e *managedfields.Entry) bool {
	return !components.Has(e.Manager) && e.Subresource != "status"
}

// read returns the metadata of an object, which policies need, and its entries.
func read(obj runtime.Object) (*metav1.PartialObjectMetadata, managedfields.Entries, error) {
	accessor, err := gostruct.Accessor(obj)
	if err != nil {
		return nil, nil, err
	}
	entries, err := managedfields.Read(obj)
	if err != nil {
		return nil, nil, err
	}
	gvk := obj.GetObjectKind().GroupVersionKind()
	if gvk.Kind == "" {
		return nil, nil, fmt.Errorf("object %s has no kind, which permissions are about", printable.Text(accessor.GetName()))
	}
	metadata := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: accessor.GetNamespace(), Name: accessor.GetName(), Labels: accessor.GetLabels(),
	}}
	metadata.SetGroupVersionKind(gvk)
	return metadata, entries, nil
}

// Error lists fields that managers own but may not own, as an error for tests.
type Error []Field

// Error returns a line for each field.
func (e Error) Error() string {
	lines := make([]string, len(e))
	for i, f := range e {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}
