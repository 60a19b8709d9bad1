package printable

import (
	"strings"
	"unicode/utf8"
)

// Cell is a cell of a table.
type Cell struct {
	Text string
	// Style decorates the text, for example with a color; nil for none. Decorations must have no width.
	Style func(string) string
}

// Table returns rows with aligned columns, each after an indent. It escapes the text of cells. No row ends in spaces.
func Table(indent string, rows [][]Cell) string {
	var widths []int
	for _, row := range rows {
		for i := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			row[i].Text = Text(row[i].Text)
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i].Text))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		b.WriteString(indent)
		gap := 0
		for i, cell := range row {
			if cell.Text != "" {
				b.WriteString(strings.Repeat(" ", gap))
				gap = 0
				b.WriteString(cell.String())
			}
			gap += widths[i] - utf8.RuneCountInString(cell.Text) + 2
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// String returns the printable text in its style.
func (c Cell) String() string {
	if c.Style == nil {
		return Text(c.Text)
	}
	return c.Style(Text(c.Text))
}
