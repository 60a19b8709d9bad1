package printable

import (
	"io"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

// Writer is an [io.Writer] that escapes text as [Lines] does. A program writes to a terminal only through a Writer,
// so it prints no text unescaped by mistake. It is safe for concurrent use.
type Writer struct {
	mu     sync.Mutex
	out    io.Writer
	colors bool
	rest   string // an incomplete character or sequence
}

// NewWriter returns a writer to out. If colors is true, it keeps the sequences that set a color or a weight; it escapes
// all other sequences.
func NewWriter(out io.Writer, colors bool) *Writer { return &Writer{out: out, colors: colors} }

// Unwrap returns the underlying writer.
func (w *Writer) Unwrap() io.Writer { return w.out }

// color matches the sequences that are kept: reset, bold, faint and the 16 foreground colors. Other sequences hide text
// (8) or reverse it (7).
var color = regexp.MustCompile(`\x1b\[(?:(?:0|1|2|22|3[0-79]|9[0-7]);){0,3}(?:0|1|2|22|3[0-79]|9[0-7])m`)

// maxSequence is the length of the longest sequence that color matches.
const maxSequence = 2 + 4*3

// Write writes p. It keeps an incomplete character or sequence at the end of p until the next Write, or Close.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := w.rest + string(p)
	end := len(text) - unfinished(text, w.colors)
	w.rest = text[end:]
	if _, err := io.WriteString(w.out, w.escape(text[:end])); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close writes what Write kept. It does not close the underlying writer.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := w.rest
	w.rest = ""
	if rest == "" {
		return nil // an empty write may mean something to the underlying writer
	}
	_, err := io.WriteString(w.out, Lines(rest))
	return err
}

func (w *Writer) escape(text string) string {
	var b strings.Builder
	for w.colors {
		found := color.FindStringIndex(text)
		if found == nil {
			break
		}
		b.WriteString(Lines(text[:found[0]]))
		b.WriteString(text[found[0]:found[1]])
		text = text[found[1]:]
	}
	b.WriteString(Lines(text))
	return b.String()
}

// unfinished returns the number of bytes at the end of text that may continue in the next bytes.
func unfinished(text string, colors bool) int {
	if i := strings.LastIndexByte(text, '\x1b'); colors && i >= 0 && len(text)-i < maxSequence &&
		strings.Trim(text[i+1:], "[;0123456789") == "" {
		return len(text) - i
	}
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if tail := text[len(text)-n:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRuneInString(tail) {
				return n
			}
			break
		}
	}
	return 0
}
