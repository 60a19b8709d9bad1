package builtin

import "bytes"

// Raw returns a stored object as it stands in a list, in JSON, without decoding
// it: its kind and version are the list's, and its resourceVersion is put in. It
// returns nil when the object can't be shown so.
//
//	stored   {"kind":"Pod","apiVersion":"v1","metadata":{"name":"a", …
//	listed   {"metadata":{"resourceVersion":"7","name":"a", …
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
