package ownership

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/internal/fieldsets"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Selects reports whether from, the From of a [Move], selects the entry of a key.
func Selects(from, entry managedfields.Key) bool {
	if from.Manager != entry.Manager {
		return false
	}
	hasVersion := from.APIVersion == "" || from.APIVersion == entry.APIVersion
	if from.Operation == "" {
		return hasVersion && (from.Subresource == "" || from.Subresource == entry.Subresource)
	}
	return from.Operation == entry.Operation && from.Subresource == entry.Subresource &&
		(hasVersion || from.Operation == metav1.ManagedFieldsOperationApply)
}

// selected returns the entries that the From of a move selects.
func (e *Edit) selected(from managedfields.Key) (out managedfields.Entries, err error) {
	for _, entry := range e.Entries {
		if Selects(from, entry.Key) {
			out = append(out, entry)
		}
	}
	if len(out) > 0 {
		return out, nil
	}
	prefix := ""
	if from.Operation != "" {
		prefix = fmt.Sprintf(" of an %s", from.Operation)
	}
	if from.APIVersion != "" && from.Operation != metav1.ManagedFieldsOperationApply {
		prefix += " at " + from.APIVersion
	}
	if from.Subresource != "" {
		prefix += fmt.Sprintf(" through %q", from.Subresource)
	}
	return nil, fmt.Errorf("manager %q has no entry%s", from.Manager, prefix)
}

// readable returns the selected entries that can be decoded. It returns an error if there are none (spec rule 14.5).
func (e *Edit) readable(from managedfields.Key) (out managedfields.Entries, err error) {
	selected, err := e.selected(from)
	if err != nil {
		return nil, err
	}
	for _, entry := range selected {
		if _, err := entry.FieldSet(); err == nil {
			out = append(out, entry)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%w; it can only be dropped", selected.Err())
	}
	return out, nil
}

// errNothing reports a path that selects nothing: no set contains it or a path below it.
var errNothing = errors.New("nothing there")

// checkFields returns an error if no fields are chosen, if both all and fields are given, or if a path in fields is a
// key field or selects nothing in sets.
func checkFields(fields *fieldpath.Set, all bool, whose string, sets ...*fieldpath.Set) error {
	switch {
	case all && !fields.IsEmpty():
		return errors.New("both all and some fields are chosen")
	case all:
		return nil
	case fields.IsEmpty():
		return errors.New("no fields are chosen")
	}
	for p := range fields.All() {
		if fieldsets.IsKeyField(p) {
			return fmt.Errorf("%s: part of the key of its item, with which it goes: name the item, %s", p, p[:len(p)-1])
		}
		found := false
		var inside fieldpath.Path
		for _, set := range sets {
			for i, e := range p {
				isMember, below := set.At(e)
				switch {
				case i == len(p)-1:
					found = found || isMember || !below.IsEmpty()
				case isMember && below.IsEmpty():
					inside = p[:i+1]
				}
				set = below
			}
		}
		switch {
		case found:
		case inside != nil:
			return fmt.Errorf("%s: inside %s, which %s as a whole", p, inside, whose)
		default:
			return fmt.Errorf("%s: %w that %s", p, errNothing, whose)
		}
	}
	return nil
}
