package view

import (
	"io"
	"strings"
)

// Lines is an output format for lists: one line of JSON for each item.
const Lines = "ndjson"

// List writes the items of a list one by one, and keeps none of them. It writes them as part of a document or, in the
// format [Lines], as one line of JSON for each item.
type List struct {
	W      io.Writer
	Format string
	// Frame returns the document with the given items. In the document, no other list may precede the items. Close
	// calls Frame again; the fields after the items have the values that this last call returns.
	Frame func(items []any) any
	begun bool
}

// Add writes an item.
func (l *List) Add(item any) error {
	if l.Format == Lines {
		return Encode(l.W, Lines, item)
	}
	head, tail, err := l.around()
	if err != nil {
		return err
	}
	var whole strings.Builder
	if err := Encode(&whole, l.Format, l.Frame([]any{item})); err != nil {
		return err
	}
	text := strings.TrimSuffix(whole.String(), tail)
	if l.Format == "json" {
		text = strings.TrimSuffix(text, "\n  ]")
	}
	if l.begun {
		text = strings.TrimPrefix(text[len(head):], "[")
		if l.Format == "json" {
			text = "," + text
		}
	}
	l.begun = true
	_, err = io.WriteString(l.W, text)
	return err
}

// Close writes the end of the document. If there were no items, it writes a document with an empty list.
func (l *List) Close() error {
	if l.Format == Lines {
		return nil
	}
	head, tail, err := l.around()
	switch {
	case err != nil:
		return err
	case !l.begun && l.Format == "json":
		tail = head + "[]" + tail
	case !l.begun:
		tail = head + " []" + tail
	case l.Format == "json":
		tail = "\n  ]" + tail
	}
	_, err = io.WriteString(l.W, tail)
	return err
}

// around returns the text of the document before and after the items.
func (l *List) around() (head, tail string, err error) {
	var whole strings.Builder
	err = Encode(&whole, l.Format, l.Frame([]any{}))
	head, tail, _ = strings.Cut(whole.String(), "[]")
	if l.Format != "json" {
		head = strings.TrimSuffix(head, " ") // each item starts on its own line
	}
	return head, tail, err
}
