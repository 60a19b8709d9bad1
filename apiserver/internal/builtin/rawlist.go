package builtin

import "bytes"

// AppendRaw appends the JSON of a list item, made of the stored JSON without decoding it: it
// removes kind and apiVersion and inserts the resourceVersion. It returns false, and has appended
// nothing, if the stored JSON does not start as EncodeStored writes it, or is of another version.
//
//	stored   {"kind":"Pod","apiVersion":"v1","metadata":{"name":"a", …
//	item     {"metadata":{"resourceVersion":"7","name":"a", …
func (k *kind) AppendRaw(to, stored []byte, revision string) (out []byte, ok bool) {
	rest, ok := k.rawMetadata(stored)
	if !ok {
		return to, false
	}
	out = append(to, `{"metadata":`...)
	return append(appendRevision(out, revision), rest...), true
}

// AppendRawMetadata appends the JSON of the metadata of a stored object in the same way.
//
//	{"resourceVersion":"7","name":"a", … }
func (k *kind) AppendRawMetadata(to, stored []byte, revision string) (out []byte, ok bool) {
	rest, ok := k.rawMetadata(stored)
	end := 0
	if ok {
		end = endOfObject(rest)
	}
	if end == 0 {
		return to, false
	}
	return append(appendRevision(to, revision), rest[:end]...), true
}

// rawMetadata returns the stored JSON behind the first quotation mark in the metadata.
func (k *kind) rawMetadata(stored []byte) (rest []byte, ok bool) {
	if k.resource.Stored != k.gvk {
		return nil, false
	}
	head := `{"kind":"` + k.gvk.Kind + `","apiVersion":"` + k.gvk.GroupVersion().String() + `",`
	if rest, ok = bytes.CutPrefix(stored, []byte(head)); !ok {
		return nil, false
	}
	return bytes.CutPrefix(rest, []byte(`"metadata":{"`))
}

// appendRevision appends the start of metadata, up to the first quotation mark behind the resourceVersion.
func appendRevision(to []byte, revision string) []byte {
	to = append(append(to, `{"resourceVersion":"`...), revision...)
	return append(to, `","`...)
}

// endOfObject returns where a JSON object ends, of which data starts in the name of a field; 0 if it does not end.
func endOfObject(data []byte) int {
	depth, isText := 1, true
	for i := 0; i < len(data); i++ {
		if isText {
			n := bytes.IndexAny(data[i:], `"\`)
			if n < 0 {
				return 0
			}
			if i += n; data[i] == '\\' {
				i++ // and what it escapes
			} else {
				isText = false
			}
			continue
		}
		switch data[i] {
		case '"':
			isText = true
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}

// versionAfter are the fields of metadata that JSON has before resourceVersion, in its order.
var versionAfter = []string{"name", "generateName", "namespace", "selfLink", "uid"}

// AppendWithVersion appends the JSON of an object with a resourceVersion, unless that is empty, and the newline of an
// encoder, made of the stored JSON without decoding it. It returns false, and has appended nothing, if the stored JSON
// does not start as EncodeStored writes it, or is of another version.
//
//	stored   {"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","uid":"u", …
//	result   {"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","uid":"u","resourceVersion":"7", …
func (k *kind) AppendWithVersion(to, stored []byte, revision string) ([]byte, bool) {
	if k.resource.Stored != k.gvk {
		return to, false
	}
	head := `{"kind":"` + k.gvk.Kind + `","apiVersion":"` + k.gvk.GroupVersion().String() + `","metadata":{`
	rest, ok := bytes.CutPrefix(stored, []byte(head))
	if !ok || bytes.HasPrefix(rest, []byte("}")) {
		return to, false
	}
	for _, name := range versionAfter {
		if rest, ok = cutText(rest, name); !ok {
			return to, false
		}
	}
	if bytes.HasPrefix(rest, []byte(`"resourceVersion"`)) {
		return to, false
	}
	field := `"resourceVersion":"` + revision + `"`
	at := len(stored) - len(rest)
	out := append(to, stored[:at]...)
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
