// Package manifest reads the objects of files, as kubectl does, and the fields that say what an object is.
package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/managedfields"
)

// Document is one object of an input, or the error that something could not be read.
type Document struct {
	Source string // the file as the user named it; empty if the error names it
	Tree   map[string]any
	Err    error
}

// Wrap adds the source of the document to an error.
func (d *Document) Wrap(err error) error {
	if err == nil || d.Source == "" {
		return err
	}
	return fmt.Errorf("%s: %w", d.Source, err)
}

// Inputs are where documents come from, as kubectl has them: files, folders, URLs, patterns, - for standard input, and
// a kustomization.
type Inputs struct{ resource.FilenameOptions }

// Empty reports whether there are no inputs.
func (in *Inputs) Empty() bool { return len(in.Filenames) == 0 && in.Kustomize == "" }

const standardInput = "standard input"

// Read reads all documents with the builder of kubectl. Items of lists are documents of their own. What could not be
// read is a document with an error; if there is nothing else, it is the error.
func (in *Inputs) Read(env *process.Env) (out []Document, err error) {
	if len(in.Filenames) > 0 && in.Kustomize != "" {
		return nil, errors.New("only one of -f or -k can be specified")
	}
	builder := resource.NewLocalBuilder().Unstructured().ContinueOnError().Flatten()
	for _, name := range in.Filenames {
		switch {
		case name == "":
			return nil, errors.New("the name of a file is empty")
		case name == "-" && env.Stdin != nil:
			var given bytes.Buffer
			builder.Stream(io.TeeReader(env.Stdin, &given), standardInput)
			defer func() { noteTwice(env.Stderr, standardInput, given.Bytes()) }()
			continue
		case !isURL(name) && name != "-":
			name = env.Path(name)
		}
		builder.FilenameParam(false, &resource.FilenameOptions{Filenames: []string{name}, Recursive: in.Recursive})
	}
	if in.Kustomize != "" {
		builder.FilenameParam(false, &resource.FilenameOptions{Kustomize: env.Path(in.Kustomize)})
	}
	infos, err := builder.Do().Infos()
	read := map[string]bool{}
	for _, info := range infos {
		if !read[info.Source] && in.Kustomize == "" {
			read[info.Source] = true
			if data, err := os.ReadFile(info.Source); err == nil { // not a URL
				noteTwice(env.Stderr, env.Relative(info.Source), data)
			}
		}
		if object, ok := info.Object.(*unstructured.Unstructured); ok {
			out = append(out, Document{Source: env.Relative(info.Source), Tree: object.Object})
		}
	}
	if err == nil || len(out) == 0 {
		return out, userError(env, err)
	}
	var several utilerrors.Aggregate
	if !errors.As(err, &several) {
		several = utilerrors.NewAggregate([]error{err})
	}
	for _, one := range several.Errors() {
		out = append(out, Document{Err: userError(env, one)})
	}
	return out, nil
}

// ReadFiles reads all documents of files, folders at any depth, URLs and - for standard input.
func ReadFiles(env *process.Env, names ...string) ([]Document, error) {
	in := Inputs{resource.FilenameOptions{Filenames: names, Recursive: true}}
	return in.Read(env)
}

func isURL(name string) bool {
	return strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://")
}

// quotes are what errors of the YAML parser quote of a document, which may be a Secret: anchors, scalars and keys.
var quotes = regexp.MustCompile("(?s)(anchor |cannot decode !!\\w+ |invalid map key: )('.*'|`.*`|.*)")

// userError returns an error of the builder with paths as the user wrote them, and without values.
func userError(env *process.Env, err error) error {
	if err == nil {
		return nil
	}
	return errors.New(quotes.ReplaceAllString(env.Relative(err.Error()), "${1}***"))
}

// Describe names the kind of a JSON value.
func Describe(v any) string {
	switch v.(type) {
	case nil:
		return "nothing"
	case string:
		return "a string"
	case bool:
		return "true or false"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return "a number"
}

// ManagedFields returns metadata.managedFields; nil if there are none.
func ManagedFields(tree map[string]any) any {
	list, _ := managedfields.Of(tree)
	return list
}

// GVKOf returns the kind of an object; an error names the invalid field.
func GVKOf(tree map[string]any) (schema.GroupVersionKind, error) {
	apiVersion, err := Text(tree, "", "apiVersion")
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	kind, err := Text(tree, "", "kind")
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || gv.Version == "" {
		return schema.GroupVersionKind{}, fmt.Errorf(".apiVersion: expected GROUP/VERSION or VERSION, got %q", apiVersion)
	}
	return gv.WithKind(kind), nil
}

// Text returns a required string.
func Text(tree map[string]any, parent, name string) (string, error) {
	s, err := OptionalText(tree, parent, name)
	if err == nil && s == "" {
		err = fmt.Errorf("%s.%s: missing", parent, name)
	}
	return s, err
}

// OptionalText returns a string; "" if it is missing.
func OptionalText(tree map[string]any, parent, name string) (string, error) {
	v := tree[name]
	s, ok := v.(string)
	if v != nil && !ok {
		return "", fmt.Errorf("%s.%s: expected a string, got %s", parent, name, Describe(v))
	}
	return s, nil
}

// NameOf returns metadata.name; "" if it is missing.
func NameOf(tree map[string]any) string { return TextAt(tree, "name") }

// TextAt returns a string of an object's metadata; "" if it is missing.
func TextAt(tree map[string]any, name string) string {
	metadata, _ := tree["metadata"].(map[string]any)
	s, _ := metadata[name].(string)
	return s
}

// noteTwice warns of duplicate keys in a YAML file: the last one counts, as in kubectl. Text that is not YAML is left
// to the reader, which reports it.
func noteTwice(w io.Writer, source string, data []byte) {
	for docs := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var doc yaml.Node
		if docs.Decode(&doc) != nil {
			return
		}
		eachTwice(&doc, "", func(path string, first, last int) {
			fmt.Fprintf(w, "warning: %s: %s stands in lines %d and %d: the last one counts\n",
				printable.Text(source), printable.Text(path), first, last)
		})
	}
}

// eachTwice calls found for each duplicate key, with its path and the lines of one occurrence and the next.
func eachTwice(n *yaml.Node, path string, found func(path string, first, last int)) {
	if n.Kind != yaml.MappingNode {
		for i, child := range n.Content {
			at := path
			if n.Kind == yaml.SequenceNode {
				at += fmt.Sprintf("[%d]", i)
			}
			eachTwice(child, at, found)
		}
		return
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		at := path + "." + strings.TrimSpace(key.Value)
		if first, ok := lines[key.Value]; ok {
			found(at, first, key.Line)
		}
		lines[key.Value] = key.Line
		eachTwice(n.Content[i+1], at, found)
	}
}
