package printable

import (
	"io"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

// Writer escapes what is written to it, as [Lines] does, and writes it to another writer.
// A program puts it in front of the terminal, so that no text is printed unescaped by
// mistake. It is safe for concurrent use.
type Writer struct {
	mu     sync.Mutex
	out    io.Writer
	colors bool
	rest   string // the start of a character or of a sequence, to be continued
}

// NewWriter returns a writer to out. With colors, the sequences that choose a color
// or a weight pass; no others do.
func NewWriter(out io.Writer, colors bool) *Writer { return &Writer{out: out, colors: colors} }

// Unwrap returns what the writer writes to.
func (w *Writer) Unwrap() io.Writer { return w.out }

// color matches the sequences that pass: reset, bold, faint and the 16 colors of the
// foreground. Others hide text (8) or reverse it (7).
var color = regexp.MustCompile(`^\x1b\[(?:(?:0|1|2|22|3[0-79]|9[0-7])(?:;|m)){1,4}`)

// maxSequence is how long a sequence that color matches can be, at most.
const maxSequence = 2 + 4*3

// Write writes p. A character, or a sequence, that p has only the start of is kept
// back until the next call, or Close.
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

// Close writes what was kept back. It leaves what the writer writes to open.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := w.rest
	w.rest = ""
	if rest == "" {
		return nil
	}
	_, err := io.WriteString(w.out, Lines(rest))
	return err
}

func (w *Writer) escape(text string) string {
	if !w.colors {
		return Lines(text)
	}
	var b strings.Builder
	for {
		i := strings.IndexByte(text, '\x1b')
		if i < 0 {
			b.WriteString(Lines(text))
			return b.String()
		}
		b.WriteString(Lines(text[:i]))
		sequence := color.FindString(text[i:])
		if !strings.HasSuffix(sequence, "m") {
			sequence = ""
			b.WriteString(Lines(text[i : i+1]))
			i++
		}
		b.WriteString(sequence)
		text = text[i+len(sequence):]
	}
}

// unfinished returns how many bytes at the end of text may be the start of something
// that the next bytes end.
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
