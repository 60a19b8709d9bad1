package fieldpath

import (
	"slices"
	"strings"
)

// Path names a place in an object. Each element selects a child of the value that the elements before it select. The
// empty path names the object itself, and is in no set.
type Path []Element

// String returns p as a text that [ParsePath] reads, such as .spec.containers[name="a"].image or .data["tls.crt"]. The
// text is unique to p, and contains only printable characters.
func (p Path) String() string { return p.text(pathText) }

// CauseText returns p as kube-apiserver writes it in the causes of conflicts, such as .data.tls.crt (spec rule 15.2).
// Several paths may have the same text; [Set.Find] returns all paths of a set that have it.
func (p Path) CauseText() string { return p.text(causeText) }

func (p Path) text(s style) string {
	var space [128]byte
	b := space[:0]
	for _, e := range p {
		b = e.appendText(b, s)
	}
	return string(b)
}

// MarshalText returns the text of [Path.String].
func (p Path) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads p with [ParsePath].
func (p *Path) UnmarshalText(text []byte) (err error) {
	*p, err = ParsePath(string(text))
	return err
}

// shortPath is the longest path in an error, in bytes.
const shortPath = 512

// Short returns [Path.String] with the middle of a long text replaced by an ellipsis, so that hostile paths can't make
// errors expensive.
func (p Path) Short() string {
	size := 0
	for i := 0; i < len(p) && size <= shortPath; i++ {
		size += len(p[i].text) + 1
	}
	if size <= shortPath {
		return p.String()
	}
	var head, tail []byte
	for i := 0; i < len(p) && len(head) < shortPath/2; i++ {
		head = p[i].appendText(head, pathText)
	}
	for i := len(p) - 1; i >= 0 && len(tail) < shortPath/2; i-- {
		tail = append(p[i].appendText(nil, pathText), tail...)
	}
	head = head[:min(len(head), shortPath/2)]
	tail = tail[max(0, len(tail)-shortPath/2):]
	return strings.ToValidUTF8(string(head)+" … "+string(tail), "")
}

// Equal reports whether p and o name the same place.
func (p Path) Equal(o Path) bool { return slices.Equal(p, o) }

// Compare orders paths by their elements, starting with the first; a path sorts before the paths below it.
func (p Path) Compare(o Path) int { return slices.CompareFunc(p, o, Element.Compare) }

// NewPath returns a path of fields, such as NewPath("spec", "replicas").
func NewPath(names ...string) Path {
	p := make(Path, len(names))
	for i, name := range names {
		p[i] = FieldElement(name)
	}
	return p
}
