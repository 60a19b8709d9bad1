package managedfields

import (
	"errors"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DecodeEach is [Decode], but one entry that can't be decoded is no error as long as its
// key can be told: it owns nothing, and faults say by its key what is wrong with it. So
// one entry does not stop what is about others (spec rule 14.5).
func DecodeEach(list []metav1.ManagedFieldsEntry) (entries Entries, faults map[Key]error, err error) {
	return decodeEach(len(list), func(i int) (Entries, error) {
		return Decode(list[i : i+1])
	}, func(i int) (Entries, error) {
		header := list[i]
		header.FieldsV1 = nil
		return Decode([]metav1.ManagedFieldsEntry{header})
	})
}

// DecodeTreeEach is [DecodeEach] for entries as they stand in an unstructured object.
func DecodeTreeEach(list []any) (entries Entries, faults map[Key]error, err error) {
	return decodeEach(len(list), func(i int) (Entries, error) {
		return DecodeTree(list[i : i+1])
	}, func(i int) (Entries, error) {
		m, _ := list[i].(map[string]any)
		header := maps.Clone(m)
		delete(header, "fieldsV1")
		out, err := DecodeTree([]any{header})
		if err != nil {
			delete(header, "time")
			out, err = DecodeTree([]any{header})
		}
		return out, err
	})
}

func decodeEach(n int, decode, decodeHeader func(i int) (Entries, error)) (Entries, map[Key]error, error) {
	if err := CheckCount(n); err != nil {
		return nil, nil, err
	}
	out := newGathered(n)
	var faults map[Key]error
	for i := range n {
		one, err := decode(i)
		if err == nil {
			out.put(one[0])
			delete(faults, one[0].Key)
			continue
		}
		var located *Error
		if errors.As(err, &located) {
			located.Index = i
		}
		header, headerErr := decodeHeader(i)
		if headerErr != nil {
			return nil, nil, err
		}
		if faults == nil {
			faults = map[Key]error{}
		}
		out.put(header[0])
		faults[header[0].Key] = err
	}
	return out.entries, faults, nil
}
