package plain

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
)

// fewTexts is the maximum number of texts for which direct comparisons are faster than converting texts to numbers.
const fewTexts = 16

// Sort sorts members as compare does: by the kinds of their elements and, within a kind, by the texts of the elements.
// Names of fields are in the order of their bytes; other texts are canonical and in the order of [Compare]. Sort costs
// O(n log n) comparisons of numbers for n members of one kind. Comparing texts would start at their first bytes each
// time; instead, the common prefix of all texts is skipped once, and the bytes after it become a number.
//
// For example, for the keys {"name":"a-17","port":80} and {"name":"a-9","port":80}, the numbers consist of the bytes 17
// and 9, padded with zeros. If two numbers are equal, for example because the names differ later, compare decides.
func Sort[T any, K comparable](members []T, compare func(a, b T) int, names K, element func(T) (K, string)) {
	if len(members) <= fewTexts {
		slices.SortFunc(members, compare)
		return
	}
	kind, text := element(members[0])
	other, common := text, len(text) // length of the common prefix of all texts; other shares only this with text
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

// commonStart returns the length of the common prefix of two texts.
func commonStart(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// numberer returns a function that converts a text to a number. The text must begin with the common prefix of a and b.
// If a text sorts before another, its number is not larger.
func numberer(a, b string) func(text string) uint64 {
	i, start, isString := differ(a, b)
	if isString {
		return func(text string) uint64 { return firstBytes(text[i:], true) }
	}
	return func(text string) uint64 { return scalarNumber(scalar(text[start:])) }
}

// firstBytes returns the first eight bytes of a text as a number, padded with zeros. If isString is true, the text is
// the inside of a JSON string, so it ends at a quote, and its escapes are decoded.
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

// scalarNumber returns a number for a result of the function scalar: by rank and, for numbers, by size. An empty text
// sorts first.
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
