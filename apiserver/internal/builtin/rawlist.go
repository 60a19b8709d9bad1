package builtin

import "bytes"

// AppendRaw appends the JSON of a list item, made of the stored JSON without decoding it: it
// removes kind and apiVersion and inserts the resourceVersion. It returns false, and has appended
// nothing, if the stored JSON does not start as EncodeStored writes it, or is of another version.
//
//	stored   {"kind":"Pod","apiVersion":"v1","metadata":{"name":"a", …
//	item     {"metadata":{"resourceVersion":"7","name":"a", …
func (k *kind) AppendRaw(to, stored []byte, revision string) (out []byte, ok bool) {
	if k.resource.Stored != k.gvk {
		return to, false
	}
	head := `{"kind":"` + k.gvk.Kind + `","apiVersion":"` + k.gvk.GroupVersion().String() + `",`
	rest, ok := bytes.CutPrefix(stored, []byte(head))
	if !ok {
		return to, false
	}
	const metadata = `"metadata":{"`
	if rest, ok = bytes.CutPrefix(rest, []byte(metadata)); !ok {
		return to, false
	}
	out = append(to, `{"metadata":{"resourceVersion":"`...)
	out = append(out, revision...)
	out = append(out, `","`...)
	return append(out, rest...), true
}

// versionAfter are the fields of metadata that JSON has before resourceVersion, in its order.
var versionAfter = []string{"name", "generateName", "namespace", "selfLink", "uid"}

// WithVersion returns the JSON of an object with a resourceVersion, unless that is empty, and the newline of an
// encoder, made of the stored JSON without decoding it. It returns false if the stored JSON does not start as
// EncodeStored writes it, or is of another version.
//
//	stored   {"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","uid":"u", …
//	result   {"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","uid":"u","resourceVersion":"7", …
func (k *kind) WithVersion(stored []byte, revision string) ([]byte, bool) {
	if k.resource.Stored != k.gvk {
		return nil, false
	}
	head := `{"kind":"` + k.gvk.Kind + `","apiVersion":"` + k.gvk.GroupVersion().String() + `","metadata":{`
	rest, ok := bytes.CutPrefix(stored, []byte(head))
	if !ok || bytes.HasPrefix(rest, []byte("}")) {
		return nil, false
	}
	for _, name := range versionAfter {
		if rest, ok = cutText(rest, name); !ok {
			return nil, false
		}
	}
	if bytes.HasPrefix(rest, []byte(`"resourceVersion"`)) {
		return nil, false
	}
	field := `"resourceVersion":"` + revision + `"`
	at := len(stored) - len(rest)
	out := make([]byte, 0, len(stored)+len(field)+2)
	out = append(out, stored[:at]...)
	if revision == "" { // of a dry run
		return append(append(out, rest...), '\n'), true
	}
	if rest[0] == '}' { // nothing follows
		out = append(out, ',')
	}
	out = append(out, field...)
	if rest[0] != '}' {
		out = append(out, ',')
	}
	return append(append(out, rest...), '\n'), true
}

// cutText removes a field whose value is a string from the beginning of fields, if it is there, with the comma behind
// it. ok is false if the value is no string.
func cutText(fields []byte, name string) (rest []byte, ok bool) {
	rest, ok = bytes.CutPrefix(fields, []byte(`"`+name+`":`))
	if !ok {
		return fields, true
	}
	if len(rest) == 0 || rest[0] != '"' {
		return nil, false
	}
	for i := 1; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case '"':
			rest = bytes.TrimPrefix(rest[i+1:], []byte(","))
			return rest, len(rest) > 0
		}
	}
	return nil, false
}
