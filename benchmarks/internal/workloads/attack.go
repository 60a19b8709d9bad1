package workloads

import (
	"bytes"
	"fmt"
)

// Attack is what somebody sends who wants FieldsV1 to cost much.
type Attack struct {
	// Name is what its row is called.
	Name string
	// Times is how often each FieldsV1 is sent, in a row.
	Times int
	// each returns the n-th FieldsV1, made from that of a Pod.
	each func(pod []byte, n int) []byte
}

// Attacks returns what attackers may send to fill caches.
func Attacks() []Attack {
	return []Attack{
		{Name: "ever new, one label", Times: 1, each: newLabel},
		{Name: "ever new, all names", Times: 1, each: newNames},
		{Name: "ever new, one label, twice", Times: 2, each: newLabel},
		{Name: "ever new, all names, twice", Times: 2, each: newNames},
	}
}

// Fields returns FieldsV1 from the n-th on, as many as count, no two alike.
func (a Attack) Fields(n, count int) ([][]byte, error) {
	_, pod, _, err := podFields()
	if err != nil {
		return nil, err
	}
	out := make([][]byte, count)
	for i := range out {
		out[i] = a.each(pod, n+i)
	}
	return out, nil
}

func newLabel(pod []byte, n int) []byte {
	return bytes.Replace(pod, []byte(`"f:team"`), fmt.Appendf(nil, `"f:team-%d"`, n), 1)
}

// newNames gives every field a name that it had in no other FieldsV1, nor
// elsewhere in this one.
func newNames(pod []byte, n int) []byte {
	var out []byte
	for i := 0; ; i++ {
		before, after, found := bytes.Cut(pod, []byte(`"f:`))
		out = append(out, before...)
		if !found {
			return out
		}
		out = fmt.Appendf(out, `"f:%x-%x-`, n, i)
		pod = after
	}
}
