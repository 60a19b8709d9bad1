package fieldpath

// The limits on what is decoded (spec rules 12.1 to 12.3). They are far above
// what a server can store, and there to bound what hostile input costs. Beyond
// one of them decoding ends with a *[SyntaxError] that names it.
const (
	// MaxDepth is the longest path of a set, in elements. It also bounds how deep
	// a JSON value inside an element is nested.
	MaxDepth = 1000
	// MaxBytes is the longest text of one FieldsV1, in bytes.
	MaxBytes = 64 << 20
	// MaxMembers is how many members one FieldsV1 may have, at all its levels.
	MaxMembers = 4 << 20
	// MaxElement is the longest text of one element, in bytes; see [Element.Text].
	MaxElement = 256 << 10
)
