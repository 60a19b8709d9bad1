// Package fieldsets has what the engine does with sets of paths, and nobody else: it builds them, writes FieldsV1
// during walks, looks paths up in FieldsV1 that is maps, and rewrites levels.
package fieldsets

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/internal/hooks"
	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/internal/plain"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Writer writes the FieldsV1 of a value during a walk, in the bytes of [fieldpath.Set.AppendJSON], without a set in
// between. Elements come in any order. The zero value is ready to use; Reset keeps its memory.
//
//	level := w.Level()
//	w.Enter(e, head, isMember)
//	…                          what is below e, the same way
//	w.Leave(isMember)
//	…                          the siblings of e
//	w.Sort(level)
//
// A level that is in order is not copied. Any other is copied once, so that a text costs its length times the depth of
// what is not in order at most: walks of maps sort first. The zero Element must not be written, and a text must be
// shorter than 4 GiB.
//
// Invariants:
//
//	text            the members that are closed, and the beginnings of those that are open and of the whole
//	members[level:] the members of the innermost open level, in the order in which they were entered
//	m.start < m.body < m.end    a member is text[m.start:m.end], with the comma before it if there is one, and what
//	                            is below it begins at m.body
type Writer struct {
	text    []byte
	members []textMember
	scratch []byte

	omitted omitted          // of the paths below the innermost open member
	outer   []omitted        // the same outside of the open members that isOmitting marks
	filter  fieldpath.Filter // is applied to the whole set, and then except is removed; nil for none
	except  *fieldpath.Set
}

// textMember is a member of FieldsV1 that is part of a text.
type textMember struct {
	elem             fieldpath.Element
	start, body, end uint32
	isOmitting       bool // Writer.outer has an element for it
}

// kind is what tells elements of two kinds apart.
type kind struct{ isField, isKey, isValue bool }

func kindAndText(m textMember) (kind, string) {
	return kind{m.elem.IsField(), m.elem.IsKey(), m.elem.IsValue()}, m.elem.Text()
}

func compareMembers(a, b textMember) int { return a.elem.Compare(b.elem) }

// omitted are paths that a [Writer] omits: the paths of except, and the paths of reset with all paths below them.
type omitted struct {
	except, reset     *fieldpath.Set
	isExcept, isReset bool // the path of the member itself
}

// marker says that the path of an object with members is in the set itself.
const marker = `".":{}`

// Omit leaves out what filter removes, and then the paths of except, but not those below them; nil is none. It is
// called before anything is written.
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

// Level returns where the level begins that is entered next.
func (w *Writer) Level() int { return len(w.members) }

// Add is Enter and Leave of a member with nothing below it.
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

// begin writes a member, up to what is below it, and returns where it begins.
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

// AppendHead appends what the member e of FieldsV1 begins with, up to what is below it, such as "f:spec":{.
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

// Enter begins the member e. head is what [AppendHead] appends, or empty if the caller does not keep it.
// isMember says that the path that ends with e is in the set, whatever is below it.
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

// Leave ends the innermost member. If nothing is below it, isMember says whether the path that ends with it is in the
// set; otherwise it must be as for Enter.
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
		w.text, below = w.text[:m.body], 0 // {} is short for a marker alone
	}
	if below == 0 && !isMember || isReset {
		w.text, w.members = w.text[:m.start], w.members[:last]
		return
	}
	w.text = append(w.text, '}')
	m.end = uint32(len(w.text))
}

// Close ends a level whose members were entered in order, each once.
func (w *Writer) Close(level int) { w.members = w.members[:level] }

// Sort ends a level, and brings its members into order. An element that was entered more than once is in the set
// without what is below it, and in twice once for each time but the first.
func (w *Writer) Sort(level int) (twice []fieldpath.Element) {
	members := w.members[level:]
	w.members = w.members[:level]
	if len(members) < 2 {
		return nil
	}
	start := members[0].start
	isFirst := w.text[start] != ',' // of the object: no marker is before it
	for i := 1; compareMembers(members[i-1], members[i]) < 0; i++ {
		if i == len(members)-1 {
			return nil // they are in order
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

// Truncate removes what was written since Len returned n. The levels in it must have ended.
func (w *Writer) Truncate(n int) { w.text = w.text[:n] }

// FieldsV1 returns what was written.
func (w *Writer) FieldsV1() *metav1.FieldsV1 {
	if w.filter != nil {
		return w.Set().FieldsV1()
	}
	out := &metav1.FieldsV1{}
	_ = out.UnmarshalJSON(w.json()) // copies it; it has no errors
	return out
}

// json returns the text; w.text shares its memory.
func (w *Writer) json() []byte {
	if len(w.text) == 0 {
		w.text = append(w.text, '{')
	}
	return append(w.text, '}')
}

// Set returns the set of what was written.
func (w *Writer) Set() *fieldpath.Set {
	if len(w.text) == 0 {
		return nil
	}
	// A walk may end one value after a limit, and this one depends on none.
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

// Reset removes all that was written, but keeps some memory for what is written next.
func (w *Writer) Reset() {
	const mostMembers, largestBuffer = 256, 64 << 10 // bytes
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
