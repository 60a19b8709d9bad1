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
