// Package hooks gives the engine access to functions that public packages must not export. Each function is set by the
// package that its comment names, before main starts; no other package may set it.
package hooks

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

var (
	// DecodeSet is fieldpath.Parse for a text of any length and with the given limits. It returns the *fieldpath.Set.
	DecodeSet func(text string, maxDepth, maxMembers int) (any, error)
	// SetOf returns the set of a level. See fieldsets.Builder for its type.
	SetOf any
	// CompareAndValidate, DropUnknown and NewFinder are functions of package typed. See package values for their types.
	CompareAndValidate, DropUnknown any
	NewFinder                       func() any
	// Tree is fieldpath.Set.Tree, for a FieldsV1 that this project encoded from the set.
	Tree func(fieldsV1 []byte) map[string]any
	// ReadEntries is managedfields.Read, and stores the result in a *managedfields.Entries. isCurrent reports whether
	// the list would be written unchanged.
	ReadEntries func(obj runtime.Object, into any) (isCurrent bool, err error)
	// SetEncoded sets the fields of a *managedfields.Entry from NewEntry to fieldsV1, without decoding them. This
	// project must have encoded fieldsV1, because with any other text, the entry would own the wrong fields. The entry
	// shares the memory of fieldsV1.
	SetEncoded func(entry any, fieldsV1 *metav1.FieldsV1)
	// BeAsUpstream makes a *fieldmanager.FieldManager accept all manager names that upstream accepts, and reject
	// objects with upstream's error texts.
	BeAsUpstream func(fieldManager any)
)
