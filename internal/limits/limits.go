// Package limits has the limits on the engine's input (chapter 12 of doc/spec.md), which bound the cost of hostile
// input. All except MaxAnnotations are far above what real objects need. They can't be configured. Limits that only
// one function needs are next to that function.
package limits

const (
	// MaxDepth is the deepest nesting of a value, and the largest number of elements of a path.
	MaxDepth = 1000
	// MaxValues is the largest number of values in an object or other value: the value itself, containers and scalars.
	MaxValues = 4 << 20
	// MaxItems is the largest number of items of a list.
	MaxItems = 1_000_000
	// MaxElement is the size of the longest text of a path element, in bytes.
	MaxElement = 256 << 10
	// MaxBytes is the size of the longest FieldsV1, in bytes.
	MaxBytes = 64 << 20
	// MaxMembers is the largest number of members of a FieldsV1, on all levels together.
	MaxMembers = 4 << 20
	// MaxEntries is the largest number of entries of an object.
	MaxEntries = 10_000
	// MaxAnnotations is the maximum size of an object's annotations that a server accepts, in bytes of keys and values
	// together.
	MaxAnnotations = 256 << 10
	// MaxErrors is the largest number of violations that are reported for one value.
	MaxErrors = 100
)
