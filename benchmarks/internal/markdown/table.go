// Package markdown prints tables.
package markdown

import (
	"io"
	"strings"
)

// Table prints a table, whose first row is the header; its columns line up for those
// who read it as text. The first column is aligned to the left, the others to the
// right.
func Table(w io.Writer, rows [][]string) error {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	var out strings.Builder
	for n, row := range rows {
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-len([]rune(cell)))
			if i == 0 {
				out.WriteString("| " + cell + pad + " |")
			} else {
				out.WriteString(" " + pad + cell + " |")
			}
		}
		out.WriteString("\n")
		if n == 0 {
			for i, width := range widths {
				switch i {
				case 0:
					out.WriteString("| " + strings.Repeat("-", width) + " |")
				default:
					out.WriteString(" " + strings.Repeat("-", width-1) + ": |")
				}
			}
			out.WriteString("\n")
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}
