package fieldpath

// AppendScalar appends the canonical JSON of v, a string, int64, float64, bool or
// nil, as it stands in the text of an element and in the member names of
// FieldsV1; anything else stands as null. A float64 must not be a whole number
// that an int64 holds.
func AppendScalar(b []byte, v any) []byte {
	switch v.(type) {
	case []any, map[string]any:
		v = nil // their nesting would have no bound
	}
	return appendValue(b, v)
}

// AppendName appends the name of a key field, quoted as it stands in the text of
// an element.
func AppendName(b []byte, name string) []byte { return appendName(b, name) }
