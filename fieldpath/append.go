package fieldpath

// AppendScalar appends the canonical JSON of v, a string, int64, float64, bool or
// nil, as it stands in the text of an element and in the member names of
// FieldsV1. A float64 must not be a whole number that an int64 holds.
func AppendScalar(b []byte, v any) []byte { return appendValue(b, v) }

// AppendName appends the name of a key field, quoted as it stands in the text of
// an element.
func AppendName(b []byte, name string) []byte { return appendName(b, name) }
