package transcode

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// Patterns of eight bytes, to look at eight bytes of a string at once.
const (
	ones      = 0x0101010101010101
	highs     = 0x8080808080808080
	quotes    = ones * '"'
	slashes   = ones * '\\'
	spaces    = ones * ' '
	wordBytes = 8
)

// specialsOf marks the bytes of a word that are a quotation mark, a backslash, a control character or not ASCII, by
// their highest bit. The lowest mark is right; what is above may be wrong.
func specialsOf(word uint64) uint64 {
	quote, slash := word^quotes, word^slashes
	return ((quote-ones)&^quote | (slash-ones)&^slash | (word-spaces)&^word | word) & highs
}

// scan skips a string, and returns what is between its quotation marks. plain is whether there are no escapes in it. ok
// is false if it is no string, or not UTF-8.
func (e *encoder) scan() (content []byte, plain, ok bool) {
	if !e.take('"') {
		return nil, false, false
	}
	start, at := e.at, e.at
	plain = true
	isASCII := true
	for {
		for at+wordBytes <= len(e.in) {
			found := specialsOf(binary.LittleEndian.Uint64(e.in[at:]))
			if found != 0 {
				at += bits.TrailingZeros64(found) / 8
				break
			}
			at += wordBytes
		}
		if at >= len(e.in) {
			return nil, false, false
		}
		switch c := e.in[at]; {
		case c == '"':
			e.at = at + 1
			content = e.in[start:at]
			return content, plain, isASCII || utf8.Valid(content)
		case c == '\\':
			plain = false
			at++ // and what it escapes
		case c < ' ':
			return nil, false, false
		case c >= utf8.RuneSelf:
			isASCII = false
		}
		at++
	}
}

// text encodes a string, with its size.
func (e *encoder) text() bool {
	content, plain, ok := e.scan()
	if !ok {
		return false
	}
	if plain {
		e.bytes(content)
		return true
	}
	at := e.open()
	if e.out, ok = appendUnescaped(e.out, content); !ok {
		return false
	}
	e.close(at)
	return true
}

// appendUnescaped appends a string without its escapes.
func appendUnescaped(to, content []byte) (out []byte, ok bool) {
	for i := 0; i < len(content); i++ {
		c := content[i]
		if c != '\\' {
			to = append(to, c)
			continue
		}
		if i++; i == len(content) {
			return to, false
		}
		switch c := content[i]; c {
		case '"', '\\', '/':
			to = append(to, c)
		case 'b':
			to = append(to, '\b')
		case 'f':
			to = append(to, '\f')
		case 'n':
			to = append(to, '\n')
		case 'r':
			to = append(to, '\r')
		case 't':
			to = append(to, '\t')
		case 'u':
			r, ok := hex(content[i+1:])
			if !ok {
				return to, false
			}
			i += 4
			if utf16.IsSurrogate(r) {
				// Both halves of a pair are escaped.
				if len(content) < i+3 || content[i+1] != '\\' || content[i+2] != 'u' {
					return to, false
				}
				low, ok := hex(content[i+3:])
				if r = utf16.DecodeRune(r, low); !ok || r == utf8.RuneError {
					return to, false
				}
				i += 6
			}
			to = utf8.AppendRune(to, r)
		default:
			return to, false
		}
	}
	return to, true
}

// hex returns the rune of four hexadecimal digits.
func hex(digits []byte) (r rune, ok bool) {
	if len(digits) < 4 {
		return 0, false
	}
	for _, c := range digits[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
