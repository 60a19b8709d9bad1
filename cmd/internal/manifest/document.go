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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
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
				noteTwice(env.Stderr, relative(env, info.Source), data)
			}
		}
		if object, ok := info.Object.(*unstructured.Unstructured); ok {
			out = append(out, Document{Source: relative(env, info.Source), Tree: object.Object})
		}
	}
	if err == nil || len(out) == 0 {
		return out, userError(env, err)
	}
	for _, one := range errorsOf(err) {
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

func errorsOf(err error) []error {
	var several utilerrors.Aggregate
	if errors.As(err, &several) {
		return several.Errors()
	}
	return []error{err}
}

// relative returns a text of the builder with paths as the user wrote them.
func relative(env *process.Env, text string) string {
	if env.Dir == "" {
		return text
	}
	return strings.ReplaceAll(text, env.Dir+"/", "")
}

// quotes are what errors of the YAML parser quote of a document, which may be a Secret: anchors, scalars and keys.
var quotes = regexp.MustCompile("(?s)(anchor |cannot decode !!\\w+ |invalid map key: )('.*'|`.*`|.*)")

// userError returns an error of the builder with paths as the user wrote them, and without values.
func userError(env *process.Env, err error) error {
	if err == nil {
		return nil
	}
	return errors.New(quotes.ReplaceAllString(relative(env, err.Error()), "${1}***"))
}
