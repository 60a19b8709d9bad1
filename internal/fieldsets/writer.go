// Package fieldsets has operations on sets of paths that only the engine needs: it builds sets, writes FieldsV1 during
// walks, looks up paths in FieldsV1 of unstructured objects, and rewrites the first level of a set.
package fieldsets

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/internal/hooks"
	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/internal/plain"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Writer writes the FieldsV1 of a value during a walk, with the same bytes as [fieldpath.Set.AppendJSON], without
// building a set. Elements may come in any order. The zero value is ready to use; Reset keeps some of its memory.
//
//	level := w.Level()
//	w.Enter(e, head, isMember)
//	…                          what is below e, the same way
//	w.Leave(isMember)
//	…                          the siblings of e
//	w.Sort(level)
//
// A level whose members are in order is not copied. Any other level is copied once, so the writer copies at most the
// length of the text times the number of nested unordered levels. Therefore walks of maps sort entries first. The zero
// Element must not be written, and a text must be shorter than 4 GiB.
//
// Invariants:
//
//	text            the closed members, and the beginnings of the open members and of the whole object
//	members[level:] the members of the innermost open level, in the order in which they were entered
//	m.start < m.body < m.end    a member is text[m.start:m.end], including a comma before it, if any; the content
//	                            below it begins at m.body
type Writer struct {
	text    []byte
	members []textMember
	scratch []byte

	omitted omitted          // applies to the paths below the innermost open member
	outer   []omitted        // outer values of omitted, one for each open member with isOmitting
	filter  fieldpath.Filter // applied to the whole set, before except is removed; nil if there is none
	except  *fieldpath.Set
}

// textMember is a member of FieldsV1 in a text.
type textMember struct {
	elem             fieldpath.Element
	start, body, end uint32
	isOmitting       bool // Writer.outer has an element for it
}

// kind distinguishes kinds of elements.
type kind struct{ isField, isKey, isValue bool }

func kindAndText(m textMember) (kind, string) {
	return kind{m.elem.IsField(), m.elem.IsKey(), m.elem.IsValue()}, m.elem.Text()
}

func compareMembers(a, b textMember) int { return a.elem.Compare(b.elem) }

// omitted are paths that a [Writer] omits: the paths of except, and the paths of reset with all paths below them.
type omitted struct {
	except, reset     *fieldpath.Set
	isExcept, isReset bool // whether the path of the member itself is in except or reset
}

// marker is the member that says that the path of the object itself is in the set.
const marker = `".":{}`

// Omit makes the writer omit the paths that filter removes, and then the paths of except. It does not omit the paths
// below the paths of except. A nil argument omits nothing. Call it before anything is written.
func (w *Writer) Omit(except *fieldpath.Set, filter fieldpath.Filter) {
	w.omitted, w.filter, w.except = omitted{}, nil, nil
	switch f := filter.(type) {
	case nil:
		w.omitted.except = except
	case fieldpath.Excluding:
		w.omitted = omitted{except: except, reset: f.Set}
	default:
		w.filter, w.except = filter, except
	}
}

// Level begins a new level, and returns its first position.
func (w *Writer) Level() int { return len(w.members) }

// Add enters and leaves a member without content.
func (w *Writer) Add(e fieldpath.Element, head string) {
	if w.omitted.except != nil || w.omitted.reset != nil {
		w.Enter(e, head, true)
		w.Leave(true)
		return
	}
	start := w.begin(e, head)
	w.text = append(w.text, '}')
	end := uint32(len(w.text))
	w.members = append(w.members, textMember{elem: e, start: start, body: end - 1, end: end})
}

// begin writes the beginning of a member, up to its content, and returns its start.
func (w *Writer) begin(e fieldpath.Element, head string) (start uint32) {
	text := w.text
	if len(text) == 0 {
		text = append(text, '{')
	}
	start = uint32(len(text))
	if text[start-1] == '}' {
		text = append(text, ',')
	}
	if head == "" {
		w.text = AppendHead(text, e)
	} else {
		w.text = append(text, head...)
	}
	return start
}

// AppendHead appends the beginning of the member e in FieldsV1, up to its content, such as "f:spec":{.
func AppendHead(b []byte, e fieldpath.Element) []byte {
	kind := byte('i')
	switch {
	case e.IsField():
		kind = 'f'
	case e.IsKey():
		kind = 'k'
	case e.IsValue():
		kind = 'v'
	}
	b = plain.AppendEscaped(append(b, '"', kind, ':'), e.Text(), true)
	return append(b, `":{`...)
}

// Enter begins the member e. head is the result of [AppendHead], or empty if the caller does not have it. isMember says
// that the path that ends with e is in the set, whatever is below it.
func (w *Writer) Enter(e fieldpath.Element, head string, isMember bool) {
	m := textMember{elem: e}
	if o := w.omitted; o.except != nil || o.reset != nil {
		m.isOmitting = true
		w.outer = append(w.outer, o)
		w.omitted.isExcept, w.omitted.except = o.except.At(e)
		w.omitted.isReset, w.omitted.reset = o.reset.At(e)
		isMember = isMember && !w.omitted.isExcept
	}
	m.start = w.begin(e, head)
	m.body = uint32(len(w.text))
	if isMember {
		w.text = append(w.text, marker...)
	}
	w.members = append(w.members, m)
}

// Leave ends the innermost member. If nothing is below the member, isMember says whether the member's path is in the
// set, and overrides the isMember of Enter. Otherwise isMember must be the same as in Enter.
func (w *Writer) Leave(isMember bool) {
	last := len(w.members) - 1
	m := &w.members[last]
	isReset := false
	if m.isOmitting {
		isMember, isReset = isMember && !w.omitted.isExcept, w.omitted.isReset
		w.omitted, w.outer = w.outer[len(w.outer)-1], w.outer[:len(w.outer)-1]
	}
	below := len(w.text) - int(m.body)
	if below == len(marker) && w.text[m.body+1] == '.' {
		w.text, below = w.text[:m.body], 0 // {} is short for the marker alone
	}
	if below == 0 && !isMember || isReset {
		w.text, w.members = w.text[:m.start], w.members[:last]
		return
	}
	w.text = append(w.text, '}')
	m.end = uint32(len(w.text))
}

// Close ends a level whose members were entered in order, each only once.
func (w *Writer) Close(level int) { w.members = w.members[:level] }

// Sort ends a level and sorts its members. If an element was entered n times, with n > 1, the set has the element
// without its content, and the result has the element n-1 times.
func (w *Writer) Sort(level int) (twice []fieldpath.Element) {
	members := w.members[level:]
	w.members = w.members[:level]
	if len(members) < 2 {
		return nil
	}
	start := members[0].start
	isFirst := w.text[start] != ',' // first member of the object, without a marker before it
	for i := 1; compareMembers(members[i-1], members[i]) < 0; i++ {
		if i == len(members)-1 {
			return nil // already in order
		}
	}
	plain.Sort(members, compareMembers, kind{isField: true}, kindAndText)
	out := w.scratch[:0]
	for i := 0; i < len(members); {
		m := &members[i]
		same := 1
		for ; i+same < len(members) && members[i+same].elem.Equal(m.elem); same++ {
			twice = append(twice, m.elem)
		}
		if i > 0 || !isFirst {
			out = append(out, ',')
		}
		from, to := m.start, m.end
		if w.text[from] == ',' {
			from++
		}
		if same > 1 {
			to = m.body
		}
		out = append(out, w.text[from:to]...)
		if same > 1 {
			out = append(out, '}')
		}
		i += same
	}
	w.text, w.scratch = append(w.text[:start], out...), out
	return twice
}

// Len returns the length of the text so far, in bytes.
func (w *Writer) Len() int { return len(w.text) }

// Truncate removes everything that was written after Len returned n. All levels in that part must have ended.
func (w *Writer) Truncate(n int) { w.text = w.text[:n] }

// FieldsV1 returns the written FieldsV1.
func (w *Writer) FieldsV1() *metav1.FieldsV1 {
	if w.filter != nil {
		return w.Set().FieldsV1()
	}
	out := &metav1.FieldsV1{}
	_ = out.UnmarshalJSON(w.json()) // copies the text; never returns an error
	return out
}

// json returns the text, which shares memory with w.text.
func (w *Writer) json() []byte {
	if len(w.text) == 0 {
		w.text = append(w.text, '{')
	}
	return append(w.text, '}')
}

// Set returns the written set.
func (w *Writer) Set() *fieldpath.Set {
	if len(w.text) == 0 {
		return nil
	}
	// These limits are higher than a walk's, because a walk may end one value beyond its limits.
	decoded, err := hooks.DecodeSet(string(w.json()), limits.MaxDepth+1, 2*limits.MaxMembers)
	if err != nil {
		panic("fieldsets: bug: a Writer wrote what can't be decoded: " + err.Error())
	}
	set := decoded.(*fieldpath.Set)
	if w.filter != nil {
		set = w.filter.Filter(set).Difference(w.except)
	}
	return set
}

// Reset removes all text, and keeps some memory for the next use.
func (w *Writer) Reset() {
	const mostMembers, largestBuffer = 256, 64 << 10 // the buffer in bytes
	if cap(w.members) > mostMembers {
		w.members = nil
	}
	clear(w.members[:cap(w.members)])
	w.text, w.members, w.scratch, w.outer = w.text[:0], w.members[:0], w.scratch[:0], nil
	w.Omit(nil, nil)
	if cap(w.text) > largestBuffer {
		w.text = nil
	}
	if cap(w.scratch) > largestBuffer {
		w.scratch = nil
	}
}
