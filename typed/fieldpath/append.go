package fieldpath

// AppendScalar appends the canonical JSON of v, a string, int64, float64, bool or nil, as in the text of an element
// and in the member names of FieldsV1. Any other value is written as null. A float64 must not be a whole number that
// fits int64.
func AppendScalar(b []byte, v any) []byte {
	switch v.(type) {
	case []any, map[string]any:
		v = nil // their nesting is not bounded
	}
	return appendValue(b, v)
}

// AppendName appends the name of a key field, quoted as in the text of an element.
func AppendName(b []byte, name string) []byte { return appendName(b, name) }
