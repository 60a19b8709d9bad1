package builtin

import "bytes"

// Raw returns the JSON of a list item, made of the stored JSON without decoding it: it
// removes kind and apiVersion and inserts the resourceVersion. It returns nil if the stored
// JSON does not start as EncodeStored writes it, or is of another version.
//
//	stored   {"kind":"Pod","apiVersion":"v1","metadata":{"name":"a", …
//	item     {"metadata":{"resourceVersion":"7","name":"a", …
func (k *kind) Raw(stored []byte, revision string) []byte {
	if k.resource.Stored != k.gvk {
		return nil
	}
	head := `{"kind":"` + k.gvk.Kind + `","apiVersion":"` + k.gvk.GroupVersion().String() + `",`
	rest, ok := bytes.CutPrefix(stored, []byte(head))
	if !ok {
		return nil
	}
	const metadata = `"metadata":{"`
	if rest, ok = bytes.CutPrefix(rest, []byte(metadata)); !ok {
		return nil
	}
	out := make([]byte, 0, len(stored)+len(revision)+24)
	out = append(out, `{"metadata":{"resourceVersion":"`...)
	out = append(out, revision...)
	out = append(out, `","`...)
	return append(out, rest...)
}
