package plain

import (
	"cmp"
	"strconv"
	"strings"
)

// Compare orders the canonical texts of two JSON values as upstream orders the values: numbers by size, then strings,
// booleans (false first), lists, maps, null. Keys of list items are maps, which are ordered by the names and values of
// their fields in turn. Compare decodes nothing and allocates nothing.
//
// Equal values have equal texts, and the fields of a map are sorted. So the first character or number in which the
// texts differ decides:
//
//	{"name":"a","port":80}    {"name":"a","port":443}    80 < 443
//	"é\n"                     "é\u003c"                  a line feed is before <
//	{"name":"a"}              {"name":"a","port":80}     the text that ends first sorts first
//
// It costs O(length of the common prefix).
func Compare(a, b string) int {
	i, start, isString := differ(a, b)
	if isString {
		return compareCharacters(a[i:], b[i:])
	}
	x, y := scalar(a[start:]), scalar(b[start:])
	switch {
	case x == y && i < len(a) && i < len(b): // one of the containers ends; the other has a comma, and more content
		return cmp.Compare(b[i], a[i])
	case x == "" || y == "":
		return len(x) - len(y)
	case rank(x) != rank(y):
		return rank(x) - rank(y)
	case rank(x) == 0:
		return compareNumbers(x, y)
	}
	return strings.Compare(x, y) // false and true
}

// differ returns where two texts differ: i is the end of the common prefix, or the start of the escape that contains
// it. isString reports whether i is in a string. start is the start of the name or value that contains i. If i is
// between values, start is the start of the last name or value before i.
func differ(a, b string) (i, start int, isString bool) {
	for ; i < len(a) && i < len(b) && a[i] == b[i]; i++ {
		switch c := a[i]; {
		case c == '"':
			isString = !isString
		case c == '\\':
			n := len(`\n`)
			if a[i+1] == 'u' {
				n = len(`\u0000`)
			}
			if !strings.HasPrefix(b[i:], a[i:i+n]) {
				return i, start, isString
			}
			i += n - 1
		case !isString && (c == '{' || c == '[' || c == ':' || c == ','):
			start = i + 1
		}
	}
	return i, start, isString
}

// compareCharacters orders two texts by their first characters, which differ. A quote is the end of a string.
func compareCharacters(a, b string) int {
	switch {
	case a[0] == '"':
		return -1
	case b[0] == '"':
		return 1
	}
	// Characters sort like their UTF-8 bytes. The first bytes may be equal.
	return cmp.Or(cmp.Compare(first(a), first(b)), cmp.Compare(a[0], b[0]))
}

// first returns the first character of a text inside a string.
func first(text string) rune {
	r, _, _, _ := strconv.UnquoteChar(text, '"')
	return r
}

// scalar returns the beginning of a text up to the end of a scalar.
func scalar(text string) string {
	for i := range len(text) {
		if c := text[i]; c == ',' || c == ']' || c == '}' {
			return text[:i]
		}
	}
	return text
}

// rank orders values of different types by the first characters of their texts.
func rank(text string) int {
	switch text[0] {
	case '"':
		return 1
	case 'f', 't':
		return 2
	case '[':
		return 3
	case '{':
		return 4
	case 'n':
		return 5
	}
	return 0
}

func compareNumbers(a, b string) int {
	switch isNegative := a[0] == '-'; {
	case isNegative != (b[0] == '-'):
		if isNegative {
			return -1
		}
		return 1
	case isNegative:
		return compareNumbers(b[1:], a[1:])
	case strings.IndexByte(a, 'e') >= 0 || strings.IndexByte(b, 'e') >= 0: // beyond all integers, or close to 0
		x, _ := strconv.ParseFloat(a, 64)
		y, _ := strconv.ParseFloat(b, 64)
		return cmp.Compare(x, y)
	}
	// Neither number has leading zeros.
	return cmp.Or(wholeDigits(a)-wholeDigits(b), strings.Compare(a, b))
}

// wholeDigits returns the number of digits before the fraction.
func wholeDigits(text string) int {
	if n := strings.IndexByte(text, '.'); n >= 0 {
		return n
	}
	return len(text)
}
