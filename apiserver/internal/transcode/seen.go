package transcode

import "bytes"

// Objects of a list are much alike: Pods of one template differ in names, times and addresses. So an encoder remembers
// the latest value at each path, such as spec.containers or spec.containers[0].env, and what became of it. If the JSON
// goes on with the same bytes, the value is the same, because a list, an object or a string ends with its last byte:
// none that is longer starts with all of it. (A number may.)
//
//	spec.containers            differs in the name of a volume
//	spec.containers[0]         differs, too
//	spec.containers[0].env     as in the object before

// seen is a value at a path.
type seen struct {
	field  *field
	path   uint32
	misses uint8 // since it was met again
	in     []byte
	out    []byte
}

const (
	seenSlots = 1 << seenBits
	seenBits  = 11
	// Shorter values are encoded sooner than looked up, and longer ones take too much memory.
	minSeen, maxSeen = 40, 8 << 10
	// A value that was another one more often than this, one after the other, is remembered every 16th time.
	maxMisses = 4
)

// below sets the path of a field or an element of a list, and returns the one around it.
func (e *encoder) below(id uint32) (around uint32) {
	around = e.path
	e.path = (around ^ id) * 16777619
	return around
}

// slot returns where the value of a field at the current path is remembered.
func (e *encoder) slot() *seen { return &e.seen[e.path*2654435769>>(32-seenBits)] }

// recall appends what the value that starts here became before. It returns false if it is not known.
func (e *encoder) recall(s *seen, f *field) bool {
	if s.field != f || s.path != e.path || !bytes.HasPrefix(e.in[e.at:], s.in) {
		return false
	}
	s.misses = 0
	e.at += len(s.in)
	e.out = append(e.out, s.out...)
	return true
}

// remember notes what the value between start and here has become: what was appended to out since from.
func (e *encoder) remember(s *seen, f *field, start, from int) {
	if n := e.at - start; n < minSeen || n > maxSeen {
		return
	}
	if c := e.in[e.at-1]; c != '}' && c != ']' && c != '"' {
		return
	}
	if s.field != f || s.path != e.path {
		s.field, s.path, s.misses = f, e.path, 0
	} else if s.misses++; s.misses > maxMisses && s.misses%16 != 0 {
		return
	}
	s.in = append(s.in[:0], e.in[start:e.at]...)
	s.out = append(s.out[:0], e.out[from:]...)
}
