package releases

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/internal/expansion"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/typed"
)

// Template is an object of a chart.
type Template struct {
	Source string // the file of the chart
	Tree   map[string]any
}

// String returns the name of the template for messages.
func (t *Template) String() string {
	kind, _ := t.Tree["kind"].(string)
	name := strings.ToLower(kind) + "/" + document.NameOf(t.Tree)
	if t.Source == "" { // of a post-renderer that makes objects
		return name
	}
	return t.Source + ": " + name
}

// Hook returns the events for which the template is a hook; "" if it is none.
func (t *Template) Hook() string {
	return (&unstructured.Unstructured{Object: t.Tree}).GetAnnotations()["helm.sh/hook"]
}

// isKept reports whether Helm does not delete the object.
func isKept(tree map[string]any) bool {
	return (&unstructured.Unstructured{Object: tree}).GetAnnotations()["helm.sh/resource-policy"] == "keep"
}

// sourceAnnotation has the file of a template while a post-renderer has it.
const sourceAnnotation = "postrenderer.helm.sh/postrender-filename"

// Parse reads what Helm gives to a post-renderer, with an annotation that names the file of each template, or what it
// stores of a revision, with a comment that does.
func Parse(text []byte) (out []Template, err error) {
	if err := expansion.Check(text); err != nil {
		return nil, err
	}
	for docs := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		first, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(string(doc)), "---\n"), "\n")
		source, isNamed := strings.CutPrefix(first, "# Source: ")
		if !isNamed {
			source = ""
		}
		read, err := parseDocument(source, doc)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", cmp.Or(source, "templates"), err)
		}
		out = append(out, read...)
	}
}

// parseDocument reads the objects of a document, which has none if it is empty.
func parseDocument(source string, text []byte) (out []Template, err error) {
	data, err := yaml.YAMLToJSON(text)
	if err != nil || string(data) == "null" {
		return nil, err
	}
	object, _, err := unstructured.UnstructuredJSONScheme.Decode(data, nil, nil)
	if err != nil {
		return nil, err
	}
	docs, errs := document.Flatten(source, "", object, nil, nil)
	for _, doc := range docs {
		u, t := &unstructured.Unstructured{Object: doc.Tree}, Template{source, doc.Tree}
		annotations := u.GetAnnotations()
		if file := annotations[sourceAnnotation]; file != "" {
			t.Source = file
			if delete(annotations, sourceAnnotation); len(annotations) == 0 {
				annotations = nil
			}
			u.SetAnnotations(annotations)
		}
		out = append(out, t)
	}
	return out, errors.Join(errs...)
}

// Format writes what Helm expects of a post-renderer. It does not accept nothing.
func Format(templates []Template) ([]byte, error) {
	out := []byte("# by tenure\n")
	for _, t := range templates {
		u := (&unstructured.Unstructured{Object: t.Tree}).DeepCopy()
		if t.Source != "" {
			u.SetAnnotations(labels.Merge(u.GetAnnotations(), labels.Set{sourceAnnotation: t.Source}))
		}
		text, err := yaml.Marshal(u.Object)
		if err != nil {
			return nil, err
		}
		out = append(append(out, "---\n"...), text...)
	}
	return out, nil
}

// path is a path in a JSON value, each step as it is printed.
type path []string

func (p path) String() string { return strings.Join(p, "") }

// covers reports whether another path is this one, or leads into its value.
func (p path) covers(other path) bool { return len(other) >= len(p) && slices.Equal(p, other[:len(p)]) }

// differences appends the paths of the smallest values in which two differ. Lists of different lengths differ as a
// whole.
func differences(at path, a, b any, out []path) []path {
	step := func(name string) path { return append(slices.Clone(at), name) }
	switch a := a.(type) {
	case map[string]any:
		if b, ok := b.(map[string]any); ok {
			names := slices.Concat(slices.Collect(maps.Keys(a)), slices.Collect(maps.Keys(b)))
			slices.Sort(names)
			for _, name := range slices.Compact(names) {
				x, inA := a[name]
				if y, inB := b[name]; inA != inB {
					out = append(out, step("."+name))
				} else {
					out = differences(step("."+name), x, y, out)
				}
			}
			return out
		}
	case []any:
		if b, ok := b.([]any); ok && len(a) == len(b) {
			for i := range a {
				out = differences(step(fmt.Sprintf("[%d]", i)), a[i], b[i], out)
			}
			return out
		}
	}
	if !typed.Equal(a, b) {
		out = append(out, at)
	}
	return out
}

// Rendering is a rendering of a chart, or the templates of a revision.
type Rendering struct {
	Release
	Templates []Template
	// Definitions are what is in the folder crds/ of the chart. Helm creates them with the first revision.
	Definitions []Template
	varying     [][]path // by template: the values that differ in each rendering
}

// compare returns by template in which values another rendering of the chart differs, in the order of the files and of
// what is in them. It is an error if the files do not have the same number of objects.
func (r *Rendering) compare(now []Template) (out [][]path, errs error) {
	type place struct {
		source string
		n      int
	}
	index := func(templates []Template) map[place]Template {
		counts, all := map[string]int{}, map[place]Template{}
		for _, t := range templates {
			all[place{t.Source, counts[t.Source]}] = t
			counts[t.Source]++
		}
		return all
	}
	others, counts := index(now), map[string]int{}
	for _, t := range r.Templates {
		at := place{t.Source, counts[t.Source]}
		counts[t.Source]++
		other, ok := others[at]
		if !ok {
			errs = errors.Join(errs, fmt.Errorf("%s: shown, but not rendered again", &t))
			continue
		}
		delete(others, at)
		out = append(out, differences(nil, t.Tree, other.Tree, nil))
	}
	for _, t := range now {
		if extra, ok := others[place{t.Source, counts[t.Source]}]; ok {
			counts[t.Source]++
			errs = errors.Join(errs, fmt.Errorf("%s: rendered now, but not shown", &extra))
		}
	}
	return out, errs
}

// Vary notes in which values another rendering of the same chart and values differs.
func (r *Rendering) Vary(again []Template) (err error) {
	r.varying, err = r.compare(again)
	return err
}

// Varying returns the names of the values that differ in each rendering.
func (r *Rendering) Varying() (out []string) {
	for i, fields := range r.varying {
		for _, field := range fields {
			out = append(out, fmt.Sprintf("%s: %s", &r.Templates[i], field))
		}
	}
	return out
}

// Check returns an error that says where a rendering differs from the one that was shown, except for the values that
// differ in each rendering.
func (r *Rendering) Check(now []Template) error {
	found, errs := r.compare(now)
	if errs != nil {
		return errs
	}
	for i, fields := range found {
		for _, field := range fields {
			if !slices.ContainsFunc(r.varying[i], func(known path) bool { return known.covers(field) }) {
				errs = errors.Join(errs, fmt.Errorf("%s: %s is not what was shown", &r.Templates[i], field))
			}
		}
	}
	return errs
}
