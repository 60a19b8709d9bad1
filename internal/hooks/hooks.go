// Package hooks lets the engine reach what public packages must not promise. Each function is set by the package that
// its comment names, before main begins; nothing else may set one.
package hooks

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

var (
	// DecodeSet is fieldpath.Parse, whose *Set it returns, for a text of any length, and for other limits.
	DecodeSet func(text string, maxDepth, maxMembers int) (any, error)
	// SetOf returns the set of a level. See fieldsets.Builder for its type.
	SetOf any
	// CompareAndValidate, DropUnknown and NewFinder are of package typed. See package values for their types.
	CompareAndValidate, DropUnknown any
	NewFinder                       func() any
	// Tree is the Tree of a fieldpath.Set, for the FieldsV1 that this project wrote of it.
	Tree func(fieldsV1 []byte) map[string]any
	// ReadEntries is managedfields.Read, into a *managedfields.Entries. isCurrent means that the list would be written as
	// it is.
	ReadEntries func(obj runtime.Object, into any) (isCurrent bool, err error)
	// SetEncoded makes fieldsV1 the fields of a *managedfields.Entry that NewEntry returned, without decoding them. They
	// must be as this project writes them: any other text would own other fields. The entry shares them.
	SetEncoded func(entry any, fieldsV1 *metav1.FieldsV1)
	// BeAsUpstream makes a *fieldmanager.FieldManager accept all names of managers that upstream accepts, and refuse
	// objects with upstream's texts.
	BeAsUpstream func(fieldManager any)
)
