// Command count prints how large the tree is, and how it is made up: lines, packages,
// exported identifiers, what a write runs through, comments, the longest function and the
// size of the binary.
//
//	cd internal/tools && GOWORK=off go run ./count [-binary] [DIR...]
//
// Each DIR is the root of a tree of the project; the default is the tree that the command is
// in. With two trees, such as a checkout of an older commit and this one, it prints the
// columns side by side.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "count:", err)
		os.Exit(1)
	}
}

// run prints a Markdown table with one column for each tree.
func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("count", flag.ContinueOnError)
	withBinary := flags.Bool("binary", false, "build cmd/tenure and print its size")
	if err := flags.Parse(args); err != nil {
		return err
	}
	roots := flags.Args()
	if len(roots) == 0 {
		roots = []string{"../.."}
	}
	columns := make([][]row, len(roots))
	for i, root := range roots {
		rows, err := countTree(root, *withBinary)
		if err != nil {
			return fmt.Errorf("%s: %w", root, err)
		}
		columns[i] = rows
	}
	return printTable(out, roots, columns)
}

// row is one line of the table.
type row struct{ name, value string }

// countTree makes the rows of one tree.
func countTree(root string, withBinary bool) ([]row, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	files, err := parseTree(root)
	if err != nil {
		return nil, err
	}
	rows := files.rows()
	writes, err := closureRows(root)
	if err != nil {
		return nil, err
	}
	rows = append(rows, writes...)
	if withBinary {
		size, err := binarySize(root)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row{"binary of `cmd/tenure`, stripped, MB", fmt.Sprintf("%.1f", float64(size)/1e6)})
	}
	return rows, nil
}

func printTable(out io.Writer, roots []string, columns [][]row) error {
	var b strings.Builder
	b.WriteString("| |")
	for _, root := range roots {
		fmt.Fprintf(&b, " %s |", filepath.Base(root))
	}
	b.WriteString("\n| --- |" + strings.Repeat(" ---: |", len(roots)) + "\n")
	for i, first := range columns[0] {
		fmt.Fprintf(&b, "| %s |", first.name)
		for _, rows := range columns {
			fmt.Fprintf(&b, " %s |", rows[i].value)
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(out, b.String())
	return err
}
