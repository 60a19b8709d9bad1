package plain

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"
)

// fewTexts is the number of texts up to which comparing them is faster than to make numbers of them.
const fewTexts = 16

// Sort sorts members as compare does: by the kinds of their elements, and those of one kind by their texts, which are
// names of fields in the order of their bytes, if the kind is names, and canonical texts in the order of [Compare]
// otherwise. It costs O(n log n) comparisons of numbers for n members of one kind, where comparisons of texts begin at
// their first bytes again and again: what all texts begin with is skipped once, and what follows becomes a number.
//
// For example, of the keys {"name":"a-17","port":80} and {"name":"a-9","port":80}, the numbers are the bytes 17 and 9,
// with zeros for the end of the string. Where two are the same, as of names that differ later, compare decides.
func Sort[T any, K comparable](members []T, compare func(a, b T) int, names K, element func(T) (K, string)) {
	if len(members) <= fewTexts {
		slices.SortFunc(members, compare)
		return
	}
	kind, common := element(members[0])
	for _, m := range members {
		k, text := element(m)
		if k != kind {
			slices.SortFunc(members, compare)
			return
		}
		common = commonStart(common, text)
	}
	type place struct {
		number uint64
		from   int
	}
	numberOf := numberer(common, kind == names)
	places := make([]place, len(members))
	for i := range members {
		_, text := element(members[i])
		places[i] = place{numberOf(text), i}
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

func commonStart(a, b string) string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

// numberer returns a function that makes a number of a text that begins with common. The number of a text that sorts
// first is never the larger one.
func numberer(common string, isName bool) func(text string) uint64 {
	if isName {
		return func(text string) uint64 { return firstBytes(text[len(common):], false) }
	}
	i, start, isString := 0, 0, false // as in Compare
	for ; i < len(common); i++ {
		switch c := common[i]; {
		case c == '"':
			isString = !isString
		case c == '\\':
			n := len(`\n`)
			if strings.HasPrefix(common[i+1:], "u") {
				n = len(`\u0000`)
			}
			if i+n > len(common) { // the escapes differ
				return func(text string) uint64 { return firstBytes(text[i:], true) }
			}
			i += n - 1
		case !isString && (c == '{' || c == '[' || c == ':' || c == ','):
			start = i + 1
		}
	}
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
