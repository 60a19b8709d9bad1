// Package manifest reads the objects in files, as kubectl does.
package manifest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/internal/expansion"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/printable"
)

// Inputs are the sources of documents. As in kubectl, they are files, folders, URLs, patterns, standard input (-), and
// a kustomization.
type Inputs struct{ resource.FilenameOptions }

// Empty reports whether there are no inputs.
func (in *Inputs) Empty() bool { return len(in.Filenames) == 0 && in.Kustomize == "" }

const standardInput = "standard input"

// Read returns all documents that Each finds. Input that could not be read becomes a document with an error. If there
// are no other documents, Read returns the error instead.
func (in *Inputs) Read(env *process.Env) (out []document.Document, err error) {
	err = in.Each(env, func(doc document.Document) { out = append(out, doc) })
	return out, err
}

// Each calls see for all documents, which kubectl's builder reads one by one. Items of lists are separate documents.
// Input that could not be read becomes a document with an error. If there are no other documents, Each returns the
// error instead.
func (in *Inputs) Each(env *process.Env, see func(document.Document)) error {
	if len(in.Filenames) > 0 && in.Kustomize != "" {
		return errors.New("only one of -f or -k can be specified")
	}
	builder := resource.NewLocalBuilder().Unstructured().ContinueOnError()
	r := &reader{env: env, texts: map[string][]byte{}, wrong: map[string][]position{}}
	for _, name := range in.Filenames {
		switch {
		case name == "":
			return errors.New("the name of a file is empty")
		case name == "-" && env.Stdin != nil:
			given, err := io.ReadAll(env.Stdin)
			if err == nil {
				err = expansion.Check(given)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", standardInput, err)
			}
			r.texts[standardInput] = given
			builder.Stream(bytes.NewReader(given), standardInput)
			continue
		case !isURL(name) && name != "-":
			name = env.Path(name)
			if err := checkFiles(env, name, in.Recursive); err != nil {
				return err
			}
			if isStream(name) {
				given, err := readFile(env, name)
				if err != nil {
					return err
				}
				r.texts[name] = given
				builder.Stream(bytes.NewReader(given), name)
				continue
			}
		}
		builder.FilenameParam(false, &resource.FilenameOptions{Filenames: []string{name}, Recursive: in.Recursive})
	}
	if in.Kustomize != "" {
		text, err := build(env, in.Kustomize)
		if err != nil {
			return err
		}
		builder.Stream(bytes.NewReader(text), env.Path(in.Kustomize))
	}
	var errs []error
	read, noted, found := 0, map[string]bool{}, map[string]bool{}
	err := builder.Do().Visit(func(info *resource.Info, err error) error {
		if err != nil {
			return err
		}
		source := env.Relative(info.Source)
		if !noted[info.Source] && in.Kustomize == "" {
			noted[info.Source] = true
			text := r.open(info.Source)
			noteTwice(env.Stderr, source, text)
			_ = text.Close()
		}
		var docs []document.Document
		docs, errs = document.Flatten(source, "", info.Object, nil, errs)
		read += len(docs)
		for _, doc := range docs {
			found[doc.Source] = true
			see(doc)
		}
		return nil
	})
	for _, err := range Several(err) {
		errs = append(errs, r.userError(err))
	}
	if read == 0 {
		return errors.Join(errs...)
	}
	for _, err := range errs {
		see(document.Document{Err: err})
	}
	for _, name := range in.Filenames {
		source := env.Relative(env.Path(name))
		info, err := os.Stat(env.Path(name))
		if name == "-" {
			source, err = standardInput, nil
		}
		isFile := err == nil && (info == nil || !info.IsDir())
		isNamed := func(err error) bool {
			return strings.Contains(err.Error(), source+":") || strings.Contains(err.Error(), source+`":`)
		}
		if isFile && !found[source] && !slices.ContainsFunc(errs, isNamed) {
			fmt.Fprintf(env.Stderr, "note: %s: no objects found\n", printable.Text(source))
		}
	}
	return nil
}

// Several returns the errors that are joined in an error.
func Several(err error) []error {
	var all utilerrors.Aggregate
	switch {
	case err == nil:
		return nil
	case errors.As(err, &all):
		return all.Errors()
	}
	return []error{err}
}

// ReadFiles returns all documents from files, folders of any depth, URLs, and standard input (-).
func ReadFiles(env *process.Env, names ...string) ([]document.Document, error) {
	in := Inputs{resource.FilenameOptions{Filenames: names, Recursive: true}}
	return in.Read(env)
}

func isURL(name string) bool {
	return strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://")
}

// noteTwice warns of duplicate keys in a YAML file; as in kubectl, the last value is used. It ignores text that is not
// YAML, because the reader reports that.
func noteTwice(w io.Writer, source string, text io.Reader) {
	for docs := yaml.NewDecoder(bufio.NewReaderSize(text, 64<<10)); ; {
		var doc yaml.Node
		if docs.Decode(&doc) != nil {
			return
		}
		eachTwice(&doc, "", func(path string, first, last int) {
			fmt.Fprintf(w, "warning: %s: %s is set in lines %d and %d; the last value is used\n",
				printable.Text(source), printable.Text(path), first, last)
		})
	}
}

// eachTwice calls found for each duplicate key, with its path and the lines of two successive occurrences.
func eachTwice(n *yaml.Node, path string, found func(path string, first, last int)) {
	if n.Kind != yaml.MappingNode {
		for i, child := range n.Content {
			itemPath := path
			if n.Kind == yaml.SequenceNode {
				itemPath += fmt.Sprintf("[%d]", i)
			}
			eachTwice(child, itemPath, found)
		}
		return
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		valuePath := path + "." + strings.TrimSpace(key.Value)
		if first, ok := lines[key.Value]; ok {
			found(valuePath, first, key.Line)
		}
		lines[key.Value] = key.Line
		eachTwice(n.Content[i+1], valuePath, found)
	}
}
