package view

import (
	"io"
	"strings"
)

// Lines is the format of a list with a line of JSON for each item.
const Lines = "ndjson"

// List writes a list item by item, and keeps no item: in a document, or a line for each with [Lines].
type List struct {
	W      io.Writer
	Format string
	// Frame returns the document with items. No list is before theirs in it. What follows them may differ in the end.
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

// Close writes what follows the items; without any, the document with an empty list.
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

// around returns the text of the document before and after the list.
func (l *List) around() (head, tail string, err error) {
	var whole strings.Builder
	err = Encode(&whole, l.Format, l.Frame([]any{}))
	head, tail, _ = strings.Cut(whole.String(), "[]")
	if l.Format != "json" {
		head = strings.TrimSuffix(head, " ") // items are in lines of their own
	}
	return head, tail, err
}
