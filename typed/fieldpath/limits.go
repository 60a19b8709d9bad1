package fieldpath

// The limits of decoding (spec rules 12.1, 12.2 and 12.3). They are far above what a server can store, and bound the
// cost of hostile input. A FieldsV1 that exceeds one is a *[SyntaxError] that names the limit.
const (
	// MaxDepth is the largest number of elements of a path. It also bounds the nesting of a JSON value in an element.
	MaxDepth = 1000
	// MaxBytes is the size of the longest FieldsV1, in bytes.
	MaxBytes = 64 << 20
	// MaxMembers is the largest number of members of a FieldsV1, on all levels together.
	MaxMembers = 4 << 20
	// MaxElement is the size of the longest text of an element, in bytes; see [Element.Text].
	MaxElement = 256 << 10
)
