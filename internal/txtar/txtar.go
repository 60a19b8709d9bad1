// Package txtar reads and writes the txtar format: a comment, and files, each after a line with its name, such as
//
//	-- name --
//
// golang.org/x/tools/txtar defines the format. This module does not require golang.org/x/tools, because every user of
// the library would then require it too.
package txtar

import (
	"bytes"
	"fmt"
)

// Archive is a comment with files.
type Archive struct {
	Comment []byte
	Files   []File
}

// File is a file of an archive.
type File struct {
	Name string
	Data []byte
}

// Parse reads an archive. The result shares no memory with the text. If the last line has no line break, Parse adds
// one.
func Parse(text []byte) *Archive {
	out := &Archive{}
	data := &out.Comment
	text = withLineBreak(text)
	for line := range bytes.Lines(text) {
		if name, ok := marker(line); ok {
			out.Files = append(out.Files, File{Name: name})
			data = &out.Files[len(out.Files)-1].Data
			continue
		}
		*data = append(*data, line...)
	}
	return out
}

// marker returns the name in a line that starts a file.
func marker(line []byte) (name string, ok bool) {
	line, isBegun := bytes.CutPrefix(bytes.TrimRight(line, "\r\n"), []byte("-- "))
	line, isEnded := bytes.CutSuffix(line, []byte(" --"))
	line = bytes.TrimSpace(line)
	return string(line), isBegun && isEnded && len(line) > 0
}

// Format writes an archive. Data that does not end with a line break gets one.
func Format(a *Archive) []byte {
	var out bytes.Buffer
	out.Write(withLineBreak(a.Comment))
	for _, f := range a.Files {
		fmt.Fprintf(&out, "-- %s --\n", f.Name)
		out.Write(withLineBreak(f.Data))
	}
	return out.Bytes()
}

func withLineBreak(data []byte) []byte {
	if len(data) == 0 || bytes.HasSuffix(data, []byte("\n")) {
		return data
	}
	return append(bytes.Clone(data), '\n')
}
