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
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/typed"
)

// Template is an object of a chart.
type Template struct {
	Source string // the chart's file
	Tree   map[string]any
}

// String returns the name of the template for messages.
func (t *Template) String() string {
	kind, _ := t.Tree["kind"].(string)
	name := strings.ToLower(kind) + "/" + document.NameOf(t.Tree)
	if t.Source == "" { // another post-renderer may create objects
		return name
	}
	return t.Source + ": " + name
}

// Hook returns the events on which the template is run as a hook; "" if it is not a hook.
func (t *Template) Hook() string {
	return (&unstructured.Unstructured{Object: t.Tree}).GetAnnotations()["helm.sh/hook"]
}

// IsKept reports whether an annotation keeps Helm from deleting the object.
func IsKept(t *place.Target) bool {
	u := &unstructured.Unstructured{Object: t.Stored().Object} // with the annotations of a Secret
	return u.GetAnnotations()["helm.sh/resource-policy"] == "keep"
}

// sourceAnnotation is Helm's annotation with the file of a template during post-rendering.
const sourceAnnotation = "postrenderer.helm.sh/postrender-filename"

// Parse parses Helm's input for a post-renderer, or the stored manifest of a revision. Annotations in the input, and
// comments in the manifest, name the files of templates.
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

// parseDocument parses the objects of a YAML document, which may be empty.
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

// Format returns the templates in the format that Helm expects from a post-renderer. Helm rejects empty output.
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

// path is a path in a JSON value. Its elements are in printed form, such as .name and [0].
type path []string

func (p path) String() string { return strings.Join(p, "") }

// covers reports whether other is p, or a path below p.
func (p path) covers(other path) bool { return len(other) >= len(p) && slices.Equal(p, other[:len(p)]) }

// differences appends to out the paths at which two values differ, as deep as possible. Lists of different lengths
// differ as a whole.
func differences(prefix path, a, b any, out []path) []path {
	step := func(name string) path { return append(slices.Clone(prefix), name) }
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
		out = append(out, prefix)
	}
	return out
}

// Rendering is the result of rendering a chart, or the stored templates of a revision.
type Rendering struct {
	Release
	Templates []Template
	// Definitions are the objects in the chart's folder crds/. Helm creates them together with the first revision.
	Definitions []Template
	varying     [][]path // by template: paths of values that differ in each rendering
}

// compare returns, for each template, the paths of values that differ in another rendering of the chart. It returns an
// error if the number of objects of a file differs.
func (r *Rendering) compare(current []Template) (out [][]path, errs error) {
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
	others, counts := index(current), map[string]int{}
	for _, t := range r.Templates {
		position := place{t.Source, counts[t.Source]}
		counts[t.Source]++
		other, ok := others[position]
		if !ok {
			errs = errors.Join(errs, fmt.Errorf("%s: shown, but not rendered again", &t))
			continue
		}
		delete(others, position)
		out = append(out, differences(nil, t.Tree, other.Tree, nil))
	}
	for _, t := range current {
		if extra, ok := others[place{t.Source, counts[t.Source]}]; ok {
			counts[t.Source]++
			errs = errors.Join(errs, fmt.Errorf("%s: rendered now, but not shown", &extra))
		}
	}
	return out, errs
}

// Vary records the values that differ in another rendering with the same chart and values.
func (r *Rendering) Vary(again []Template) (err error) {
	r.varying, err = r.compare(again)
	return err
}

// Varying returns the names of the values that differ in each rendering, as recorded by Vary.
func (r *Rendering) Varying() (out []string) {
	for i, fields := range r.varying {
		for _, field := range fields {
			out = append(out, fmt.Sprintf("%s: %s", &r.Templates[i], field))
		}
	}
	return out
}

// Check compares a new rendering with r, which was shown to the user, and returns an error with the differences. It
// ignores values that differ in each rendering.
func (r *Rendering) Check(templates []Template) error {
	found, errs := r.compare(templates)
	if errs != nil {
		return errs
	}
	for i, fields := range found {
		for _, field := range fields {
			if !slices.ContainsFunc(r.varying[i], func(known path) bool { return known.covers(field) }) {
				errs = errors.Join(errs, fmt.Errorf("%s: %s differs from what was shown", &r.Templates[i], field))
			}
		}
	}
	return errs
}
