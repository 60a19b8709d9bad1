package transcode

import (
	"slices"
	"strings"
)

// A Filter copies some fields of objects in JSON.
//
// Invariant: below[i] is what is copied of the field names[i]; nil for all of it, which is leaf number leaves[i] then.
type Filter struct {
	names  []string
	below  []*Filter
	leaves []int
}

// NewFilter returns a filter of the fields at paths: names with dots between them. There are at most 64 of them, and
// none is below another.
func NewFilter(paths ...string) *Filter {
	f := &Filter{}
	for i, path := range paths {
		f.add(strings.Split(path, "."), i)
	}
	return f
}

func (f *Filter) add(path []string, leaf int) {
	i := slices.Index(f.names, path[0])
	if i < 0 {
		i = len(f.names)
		f.names, f.below, f.leaves = append(f.names, path[0]), append(f.below, nil), append(f.leaves, leaf)
	}
	if len(path) == 1 {
		return
	}
	if f.below[i] == nil {
		f.below[i] = &Filter{}
	}
	f.below[i].add(path[1:], leaf)
}

// count returns the number of leaves.
func (f *Filter) count() (n int) {
	for _, below := range f.below {
		if below == nil {
			n++
		} else {
			n += below.count()
		}
	}
	return n
}

// Append appends an object with the fields of data that the filter copies. It reads data until it has found them all.
// ok is false, and nothing is appended, if what it reads is not JSON without white space, or has one of them twice.
func (f *Filter) Append(to, data []byte) (out []byte, ok bool) {
	e := encoders.Get().(*encoder)
	e.in, e.at, e.out, e.path, e.found, e.left = data, 0, to, 0, 0, f.count()
	ok = e.filter(f)
	out = e.out
	e.in, e.out = nil, nil
	encoders.Put(e)
	if !ok {
		return to, false
	}
	return out, true
}

// skipped is the field of values that a filter does not copy.
var skipped field

// filter copies fields of an object.
func (e *encoder) filter(f *Filter) bool {
	if !e.take('{') {
		return false
	}
	e.out = append(e.out, '{')
	first := true
	for member := uint32(1); ; member++ {
		if member == 1 && e.take('}') {
			break
		}
		name, ok := e.name()
		if !ok {
			return false
		}
		around := e.below(member)
		if i := slices.Index(f.names, string(name)); i < 0 {
			ok = e.skipAlike()
		} else {
			if !first {
				e.out = append(e.out, ',')
			}
			first = false
			e.out = append(append(append(e.out, '"'), name...), '"', ':')
			ok = e.filtered(f, i)
		}
		e.path = around
		if !ok {
			return false
		}
		if e.left == 0 || e.take('}') {
			break
		}
		if !e.take(',') {
			return false
		}
	}
	e.out = append(e.out, '}')
	return true
}

// filtered copies what is wanted of a field.
func (e *encoder) filtered(f *Filter, i int) bool {
	if f.below[i] != nil {
		return e.filter(f.below[i])
	}
	start, bit := e.at, uint64(1)<<f.leaves[i]
	if e.found&bit != 0 || !e.skip() {
		return false
	}
	e.found |= bit
	e.left--
	e.out = append(e.out, e.in[start:e.at]...)
	return true
}

// skipAlike skips a value that may be the same as in the object before.
func (e *encoder) skipAlike() bool {
	s := e.slot()
	if e.recall(s, &skipped) {
		return true
	}
	start := e.at
	if !e.skip() {
		return false
	}
	e.remember(s, &skipped, start, len(e.out))
	return true
}
