package webpage

import "strings"

var htmlEscapes = strings.NewReplacer(
	"\x00", "\ufffd", `"`, "&#34;", "&", "&amp;", "'", "&#39;", "+", "&#43;", "<", "&lt;", ">", "&gt;")

// Escape escapes text for the content of an element and for an attribute in quotes, as
// html/template does.
func Escape(text string) string { return htmlEscapes.Replace(text) }

// EscapeFragment escapes text for the fragment of an address, as html/template does: what is
// not unreserved (RFC 3986, 2.3) by the numbers of its bytes. Nothing is left to escape as
// HTML.
func EscapeFragment(text string) string {
	const hex = "0123456789abcdef"
	var b strings.Builder
	for i := range len(text) {
		switch c := text[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-._~", c) >= 0:
			b.WriteByte(c)
		default:
			b.WriteString(string([]byte{'%', hex[c>>4], hex[c&15]}))
		}
	}
	return b.String()
}
