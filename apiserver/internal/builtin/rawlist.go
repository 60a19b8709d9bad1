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
