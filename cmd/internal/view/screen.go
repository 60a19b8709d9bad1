package view

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/rivo/uniseg"
	"golang.org/x/term"
)

// Screen is a place on a terminal where text is drawn over the text before.
type Screen struct {
	out     io.Writer
	lines   int // that were drawn
	columns int // of the terminal, at that time
}

// NewScreen returns a screen on a stream that may be guarded. It draws around the guard, which lets no movement of the
// cursor through.
func NewScreen(out io.Writer) *Screen { return &Screen{out: out} }

// Draw draws the part of a text that fits. A whole text that does not fit would be wrapped and scrolled, and the next
// could not be drawn over it.
func (s *Screen) Draw(text string) error {
	columns, rows := s.size()
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	if more := len(lines) - (rows - 2); rows > 3 && more > 1 { // the last line is the sum, below it is the cursor
		lines = append(lines[:rows-3:rows-3], fmt.Sprintf("and %d more lines\n", more), lines[len(lines)-1])
	}
	for i, line := range lines {
		lines[i] = cut(strings.TrimSuffix(line, "\n"), columns) + "\n"
	}
	return s.draw(strings.Join(lines, ""), len(lines), columns)
}

// Finish draws a whole text, the last one.
func (s *Screen) Finish(text string) error {
	columns, _ := s.size()
	return s.draw(text, 0, columns)
}

func (s *Screen) draw(text string, lines, columns int) error {
	erase := ""
	switch {
	case s.lines == 0:
	case s.columns != columns: // terminals differ in what they do to lines that do not fit any more
		erase = "\x1b[H\x1b[2J"
	default:
		erase = fmt.Sprintf("\x1b[%dA\x1b[J", s.lines)
	}
	s.lines, s.columns = lines, columns
	if _, err := io.WriteString(underlying(s.out), erase); err != nil {
		return err
	}
	_, err := io.WriteString(s.out, text)
	return err
}

// size returns the size of the terminal; zeros if it is not known.
func (s *Screen) size() (columns, rows int) {
	if file, ok := underlying(s.out).(*os.File); ok {
		columns, rows, _ = term.GetSize(int(file.Fd()))
	}
	return columns, rows
}

// cut returns the part of a line that fits into some columns; all of it for 0.
func cut(line string, columns int) string {
	if columns == 0 || uniseg.StringWidth(line) <= columns {
		return line
	}
	end, width := 0, 0
	for graphemes := uniseg.NewGraphemes(line); graphemes.Next(); {
		if width += graphemes.Width(); width >= columns {
			break
		}
		_, end = graphemes.Positions()
	}
	return line[:end] + "…"
}
