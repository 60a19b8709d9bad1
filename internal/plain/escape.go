package plain

// HexDigits are the digits of escapes.
const HexDigits = "0123456789abcdef"

// AppendEscaped appends s in the way that FieldsV1 writes member names.
func AppendEscaped(b []byte, s string) []byte {
	for s != "" {
		n := UnescapedBytes(s)
		b = append(b, s[:n]...)
		if n == len(s) {
			break
		}
		b = AppendEscape(b, s[n])
		s = s[n+1:]
	}
	return b
}

// UnescapedBytes returns the number of bytes of s before the first that must be escaped in a member name.
func UnescapedBytes(s string) int {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' {
			return i
		}
	}
	return len(s)
}

// AppendEscape appends the escape of c in a JSON string.
func AppendEscape(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	}
	return append(b, '\\', 'u', '0', '0', HexDigits[c>>4], HexDigits[c&0xf])
}
