package plain

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
)

// fewTexts is the number of texts up to which comparing them is faster than to make numbers of them.
const fewTexts = 16

// Sort sorts members as compare does: by the kinds of their elements, and elements of one kind by their texts: names of
// fields in the order of their bytes, other kinds as canonical texts in the order of [Compare]. It costs O(n log n)
// comparisons of numbers for n members of one kind, where comparisons of texts begin at their first bytes again and
// again: what all texts begin with is skipped once, and what follows becomes a number.
//
// For example, of the keys {"name":"a-17","port":80} and {"name":"a-9","port":80}, the numbers are the bytes 17 and 9,
// with zeros for the end of the string. Where two are the same, as of names that differ later, compare decides.
func Sort[T any, K comparable](members []T, compare func(a, b T) int, names K, element func(T) (K, string)) {
	if len(members) <= fewTexts {
		slices.SortFunc(members, compare)
		return
	}
	kind, text := element(members[0])
	other, common := text, len(text) // of all, other has the fewest first bytes in common with text: so many
	for _, m := range members {
		k, t := element(m)
		if k != kind {
			slices.SortFunc(members, compare)
			return
		}
		if n := commonStart(text, t); n < common {
			other, common = t, n
		}
	}
	numberOf := func(name string) uint64 { return firstBytes(name[common:], false) }
	if kind != names {
		numberOf = numberer(text, other)
	}
	type place struct {
		number uint64
		from   int
	}
	places := make([]place, len(members))
	for i := range members {
		_, t := element(members[i])
		places[i] = place{numberOf(t), i}
	}
	slices.SortFunc(places, func(a, b place) int {
		if a.number != b.number {
			return cmp.Compare(a.number, b.number)
		}
		return compare(members[a.from], members[b.from])
	})
	sorted := make([]T, len(members))
	for i, p := range places {
		sorted[i] = members[p.from]
	}
	copy(members, sorted)
}

// commonStart returns how many bytes two texts have in common at their start.
func commonStart(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// numberer returns a function that makes a number of a text that begins with what a and b have in common. The number of
// a text that sorts first is never the larger one.
func numberer(a, b string) func(text string) uint64 {
	i, start, isString := differ(a, b)
	if isString {
		return func(text string) uint64 { return firstBytes(text[i:], true) }
	}
	return func(text string) uint64 { return scalarNumber(scalar(text[start:])) }
}

// firstBytes returns the first eight bytes of a text as a number, filled up with zeros. If isString, the text is the
// inside of a JSON string: it ends at a quote, and its escapes are decoded.
func firstBytes(text string, isString bool) uint64 {
	var first [8]byte
	b := first[:0]
	for len(text) > 0 && len(b) < len(first) {
		switch c := text[0]; {
		case isString && c == '"':
			text = ""
		case isString && c == '\\':
			r, _, rest, _ := strconv.UnquoteChar(text, '"')
			b, text = append(b, string(r)...), rest
		default:
			b, text = append(b, c), text[1:]
		}
	}
	copy(first[:], b) // an escape may have made it longer
	return binary.BigEndian.Uint64(first[:])
}

// scalarNumber returns a number of what scalar returns: by rank and, of numbers, by size. Nothing sorts first.
func scalarNumber(text string) uint64 {
	if text == "" {
		return 0
	}
	const bits = 60
	number := uint64(1+rank(text)) << bits
	if rank(text) == 0 {
		f, _ := strconv.ParseFloat(text, 64)
		size := math.Float64bits(f)
		if f < 0 {
			size = ^size
		} else {
			size |= 1 << 63
		}
		number += size >> (64 - bits)
	}
	return number
}
