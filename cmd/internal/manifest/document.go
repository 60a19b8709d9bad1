package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"

	"github.com/tenure-ssa/tenure/cmd/internal/parallel"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/internal/folder"
)

// MaxInput is how large a file may be, in bytes.
const MaxInput = 64 << 20

// Document is one object of an input, or the error that it could not be read.
type Document struct {
	source string // the file as the user named it
	number int    // from 1, in the file
	line   int    // where it starts, from 1
	item   string // place in a List, such as .items[0]; "" outside of one
	// Tree is the object. Entries of its managed fields may share maps, which nobody must
	// change. Those of ReadForBlame have fieldsV1 as a *metav1.FieldsV1.
	Tree map[string]any
	Err  error
}

// Where names the document for an error.
func (d Document) Where() string {
	s := fmt.Sprintf("%s: document %d (line %d)", d.source, d.number, d.line)
	if d.item != "" {
		s += ": " + d.item
	}
	return s
}

// extensions are the files that are read of a folder.
var extensions = []string{".json", ".yaml", ".yml"}

// ReadDocuments reads all documents of files, folders, URLs and - for stdin. The error
// says that an input is not there; what is wrong with a document is in its Err.
func ReadDocuments(e *process.Env, inputs []string) (out []Document, err error) {
	return readDocuments(e, inputs, false, decode)
}

// ReadForBlame is [ReadDocuments] for [blame.New]: fieldsV1 that many entries have is left as text.
func ReadForBlame(e *process.Env, inputs []string) (out []Document, err error) {
	return readDocuments(e, inputs, false, decodeForBlame)
}

// decoder decodes one JSON value that is known to be valid.
type decoder func(data []byte) (tree any, err error)

// readDocuments is ReadDocuments with a decoder; flat leaves out the folders in folders.
func readDocuments(e *process.Env, inputs []string, flat bool, decode decoder) (out []Document, err error) {
	for _, input := range inputs {
		files, err := filesOf(e, input, flat)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			data, err := readFile(e, file)
			if err != nil {
				return nil, err
			}
			name := file
			if file == "-" {
				name = "standard input"
			}
			out = append(out, split(name, data, decode)...)
		}
	}
	return out, nil
}

// files returns input itself, or the files in it, sorted, when it is a folder.
func filesOf(e *process.Env, input string, flat bool) (out []string, err error) {
	if input == "-" || isURL(input) {
		return []string{input}, nil
	}
	if input == "" {
		return nil, errors.New("the name of a file is empty")
	}
	root := e.Path(input)
	info, err := os.Stat(root)
	if err != nil {
		return nil, renamed(err, input)
	}
	if !info.IsDir() {
		return []string{input}, nil
	}
	found, err := folder.Files(root, func(name string) bool { return slices.Contains(extensions, filepath.Ext(name)) })
	if err != nil {
		return nil, fmt.Errorf("%s: %w", input, err)
	}
	for _, name := range found {
		if flat && strings.ContainsRune(name, filepath.Separator) {
			continue
		}
		out = append(out, filepath.Join(input, name))
	}
	return out, nil
}

// renamed returns err with the path as the user gave it.
func renamed(err error, input string) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		err = pathErr.Err
	}
	return fmt.Errorf("%s: %w", input, err)
}

func readFile(e *process.Env, name string) ([]byte, error) {
	if isURL(name) {
		return readURL(e, name)
	}
	in := e.Stdin
	if name == "-" && in == nil {
		return nil, nil
	}
	if name != "-" {
		f, err := os.Open(e.Path(name))
		if err != nil {
			return nil, renamed(err, name)
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, MaxInput+1))
	if err != nil {
		return nil, renamed(err, name)
	}
	if len(data) > MaxInput {
		return nil, fmt.Errorf("%s: larger than %d MiB", name, MaxInput>>20)
	}
	return data, nil
}

// Split reads every document of a file: YAML documents between lines of ---, or
// JSON values one after the other, also between such lines. A document that is
// malformed does not spoil the others.
func Split(source string, data []byte) (out []Document) { return split(source, data, decode) }

func split(source string, data []byte, decode decoder) (out []Document) {
	text := strings.TrimPrefix(string(data), "\ufeff")
	number := 0
	add := func(line int, tree any, err error) {
		number++
		out = append(out, Document{source: source, number: number, line: line}.expand(tree, err)...)
	}
	all := chunks(text)
	decoded := decodeYAML(all, decode)
	for i, c := range all {
		if !c.isJSON() {
			add(c.line, decoded[i].tree, decoded[i].err)
			continue
		}
		first := true
		c.values(decode, func(line int, tree any, err error) {
			if syntax := new(json.SyntaxError); first && errors.As(err, &syntax) {
				// YAML in flow style begins like JSON. What is JSON is not read
				// again: YAML would take a number that is too large for a string.
				if flow, yamlErr := c.yaml(decode); yamlErr == nil {
					tree, err = flow, nil
				}
			}
			first = false
			add(line, tree, err)
		})
	}
	return out
}

// chunk is a part of a file, with the number of its first line.
type chunk struct {
	text string
	line int
}

// chunks takes a file apart at the markers of YAML. A marker is never at the
// start of a line inside a document, whatever the quoting.
func chunks(text string) (out []chunk) {
	var b strings.Builder
	start, filled := 1, false
	end := func(next int) {
		if filled {
			out = append(out, chunk{b.String(), start})
		}
		b.Reset()
		start, filled = next, false
	}
	line := 0
	for rest := range strings.SplitAfterSeq(text, "\n") {
		line++
		content := rest
		if marker := len(rest) >= 3 && (rest[:3] == "---" || rest[:3] == "..."); marker &&
			(len(rest) == 3 || strings.ContainsRune(" \t\r\n", rune(rest[3]))) {
			end(line)
			// What follows a marker belongs to the document.
			content = "   " + rest[3:]
		}
		trimmed := strings.TrimSpace(content)
		if !filled && (trimmed == "" || trimmed[0] == '#' || trimmed[0] == '%') {
			start = line + 1
			b.Reset()
			continue
		}
		filled = true
		b.WriteString(content)
	}
	end(line)
	return out
}

// isJSON reports whether a chunk begins as JSON does; YAML in flow style does too.
func (c chunk) isJSON() bool {
	body := strings.TrimLeft(c.text, " \t\r\n")
	return strings.HasPrefix(body, "{") || strings.HasPrefix(body, "[")
}

// decodedYAML is what one YAML document has.
type decodedYAML struct {
	tree any
	err  error
}

// decodeYAML decodes the chunks that are not JSON, on all cores: YAML takes longer than all else that a
// plan does.
func decodeYAML(all []chunk, decode decoder) []decodedYAML {
	out := make([]decodedYAML, len(all))
	parallel.Do(parallel.Cores(), len(all), func(i int) {
		if !all[i].isJSON() {
			out[i].tree, out[i].err = all[i].yaml(decode)
		}
	})
	return out
}

// values decodes a chunk that is JSON values one after the other. It ends at the
// first that is malformed: where the next one begins can't be told.
func (c chunk) values(decode decoder, yield func(line int, tree any, err error)) {
	values := json.NewDecoder(strings.NewReader(c.text))
	line, counted := c.line, 0 // of the text until there
	for {
		before := int(values.InputOffset())
		before += len(c.text[before:]) - len(strings.TrimLeft(c.text[before:], " \t\r\n"))
		line += strings.Count(c.text[counted:before], "\n")
		counted = before
		var raw json.RawMessage
		err := values.Decode(&raw)
		var syntax *json.SyntaxError
		switch {
		case errors.Is(err, io.EOF):
			return
		case errors.As(err, &syntax):
			offset := min(int(syntax.Offset), len(c.text))
			at := c.line + strings.Count(c.text[:offset], "\n")
			yield(line, nil, fmt.Errorf("not JSON: line %d: %w", at, err))
			return
		case err != nil:
			yield(line, nil, fmt.Errorf("not JSON: %w", err))
			return
		}
		tree, err := decode(raw)
		yield(line, tree, err)
	}
}

// decode decodes one JSON value that is known to be valid, with whole numbers as int64. A
// field that is there twice is an error: one of the two would be lost.
func decode(data []byte) (tree any, err error) {
	if tree, ok := decodeShared(data, false); ok {
		return tree, nil
	}
	return decodeWhole(data)
}

func decodeForBlame(data []byte) (tree any, err error) {
	if tree, ok := decodeShared(data, true); ok {
		return tree, nil
	}
	return decodeWhole(data)
}

// DecodeJSON decodes a JSON document as a file's is decoded. Entries of managed fields may share maps, which
// nobody must change.
func DecodeJSON(data []byte) (any, error) {
	if !json.Valid(data) {
		return decodeWhole(data) // for its error
	}
	return decode(data)
}

// decodeWhole is decode without sharing.
func decodeWhole(data []byte) (tree any, err error) {
	strict, err := kjson.UnmarshalStrict(bytes.TrimSpace(data), &tree, kjson.DisallowDuplicateFields)
	if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	return tree, errors.Join(strict...)
}

// expand returns the document of a tree, or one for every item of a list, and of
// the lists in it. A list that is not whole is not applied in part.
func (d Document) expand(tree any, err error) []Document {
	d.Err = err
	if err != nil {
		return []Document{d}
	}
	var ok bool
	if d.Tree, ok = tree.(map[string]any); !ok {
		d.Err = fmt.Errorf("expected an object, got %s", Describe(tree))
		return []Document{d}
	}
	items, ok, err := d.listItems()
	if !ok {
		d.Err = err
		return []Document{d}
	}
	var out []Document
	for i, item := range items {
		one := d
		one.item = fmt.Sprintf("%s.items[%d]", d.item, i)
		if tree, ok := item.(map[string]any); ok {
			inherit(tree, d.Tree)
		}
		for _, one := range one.expand(item, nil) {
			if one.Err != nil {
				return []Document{one}
			}
			out = append(out, one)
		}
	}
	return out
}

// listItems returns the items of a v1 List or of a list of one kind. An object
// whose kind merely ends in List has a name. The error says that a List is none.
func (d Document) listItems() (items []any, ok bool, err error) {
	kind, _ := d.Tree["kind"].(string)
	items, ok = d.Tree["items"].([]any)
	metadata, _ := d.Tree["metadata"].(map[string]any)
	_, named := metadata["name"]
	if !strings.HasSuffix(kind, "List") || named {
		return nil, false, nil
	}
	if kind == "List" && !ok && d.Tree["items"] != nil {
		return nil, false, fmt.Errorf(".items: expected a list, got %s", Describe(d.Tree["items"]))
	}
	return items, ok || kind == "List", nil
}

// inherit gives an item of a PodList the kind that the server left out of it, in
// place.
func inherit(item, list map[string]any) {
	kind, _ := list["kind"].(string)
	if kind = strings.TrimSuffix(kind, "List"); kind == "" || item["kind"] != nil || item["apiVersion"] != nil {
		return
	}
	item["kind"], item["apiVersion"] = kind, list["apiVersion"]
}
