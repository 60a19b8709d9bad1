package upgrade

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// MaxAnnotations is the largest size of an object's annotations that a server accepts, in bytes of names and values.
const MaxAnnotations = 256 << 10

const annotation = fieldmanager.LastAppliedAnnotation

var annotationPath = fieldpath.Fields("metadata", "annotations", annotation)

// LastApplied returns a copy of the intent that client-side apply stored in obj. The error is ErrNoLastApplied if
// there is none, and a LastAppliedError if it is not the JSON of an object.
func LastApplied(obj runtime.Object) (map[string]any, error) {
	o, err := read(obj)
	if err != nil {
		return nil, err
	}
	return o.lastApplied()
}

func (o object) lastApplied() (map[string]any, error) {
	text, ok, err := o.lastAppliedText()
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, ErrNoLastApplied
	}
	var v any
	if err := utiljson.Unmarshal([]byte(text), &v); err != nil {
		return nil, &LastAppliedError{err}
	}
	tree, ok := v.(map[string]any)
	if !ok {
		return nil, &LastAppliedError{fmt.Errorf("expected an object, got %T", v)}
	}
	if err := typed.Deduced().Validate(tree, typed.Rules{}); err != nil {
		return nil, &LastAppliedError{err}
	}
	return tree, nil
}

// lastAppliedText returns the text of the annotation. kubectl and servers ignore an empty one.
func (o object) lastAppliedText() (string, bool, error) {
	v, ok := o.annotations()[annotation]
	if !ok || v == nil {
		return "", false, nil
	}
	text, ok := v.(string)
	if !ok {
		return "", false, &LastAppliedError{fmt.Errorf("expected a string, got %T", v)}
	}
	return text, text != "", nil
}

// Format is an output format of ViewLastApplied.
type Format string

// The formats of kubectl apply view-last-applied.
const (
	YAML Format = "yaml"
	JSON Format = "json"
)

// ViewLastApplied returns the annotation of client-side apply in the same bytes as kubectl apply view-last-applied.
// Errors are those of LastApplied.
func ViewLastApplied(obj runtime.Object, format Format) ([]byte, error) {
	o, err := read(obj)
	if err != nil {
		return nil, err
	}
	if _, err := o.lastApplied(); err != nil {
		return nil, err
	}
	text, _, _ := o.lastAppliedText()
	switch format {
	case YAML:
		out, err := yaml.JSONToYAML([]byte(text))
		if err != nil {
			return nil, &LastAppliedError{err}
		}
		return out, nil
	case JSON:
		// lastApplied has parsed it, so this can't fail.
		var out bytes.Buffer
		if err := json.Indent(&out, []byte(text), "", "  "); err != nil {
			return nil, &LastAppliedError{err}
		}
		return out.Bytes(), nil
	}
	return nil, fmt.Errorf("format: expected %s or %s, got %q", YAML, JSON, format)
}

// SetLastApplied returns obj with the annotation of a client-side apply of intent, as kubectl apply set-last-applied
// does. The error is ErrNoLastApplied if obj has no annotation yet and create is false; SizeError if the annotations
// would be too large; ErrOtherObject if intent is for another object.
//
// The result has obj's Go type and shares memory with it.
func SetLastApplied(obj, intent runtime.Object, create bool) (runtime.Object, error) {
	o, err := read(obj)
	if err != nil {
		return nil, err
	}
	i, err := read(intent)
	if err != nil {
		return nil, fmt.Errorf("intent: %w", err)
	}
	if err := sameObject(o, i); err != nil {
		return nil, err
	}
	if _, ok, err := o.lastAppliedText(); !create && err == nil && !ok {
		return nil, ErrNoLastApplied
	}
	text, err := encodeIntent(i.tree)
	if err != nil {
		return nil, err
	}
	annotations, err := o.annotated(text)
	if err != nil {
		return nil, err
	}
	out, err := o.with(map[string]any{"annotations": annotations})
	return out.given, err
}

// CheckAnnotations returns a SizeError if the annotations of obj are larger than a server accepts.
func CheckAnnotations(obj runtime.Object) error {
	o, err := read(obj)
	if err != nil {
		return err
	}
	return checkSize(o.annotations())
}

func checkSize(annotations map[string]any) error {
	size := 0
	for name, v := range annotations {
		text, _ := v.(string)
		size += len(name) + len(text)
	}
	if size > MaxAnnotations {
		return &SizeError{size, MaxAnnotations}
	}
	return nil
}

// annotated returns the annotations of o with the one of client-side apply.
func (o object) annotated(text string) (map[string]any, error) {
	annotations := maps.Clone(o.annotations())
	if annotations == nil {
		annotations = map[string]any{}
	}
	annotations[annotation] = text
	return annotations, checkSize(annotations)
}

// encodeIntent returns an intent in the form that kubectl writes: on one line, without the annotation itself, but
// with annotations.
func encodeIntent(intent map[string]any) (string, error) {
	b, err := json.Marshal(withoutAnnotation(intent))
	if err != nil {
		return "", fmt.Errorf("intent: %w", err)
	}
	return string(b) + "\n", nil
}

// withoutAnnotation returns a tree without the annotation of client-side apply, but with annotations, even if they
// are empty.
func withoutAnnotation(tree map[string]any) map[string]any {
	metadata, _ := tree["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	rest := map[string]any{}
	maps.Copy(rest, annotations)
	delete(rest, annotation)
	return withAnnotations(tree, rest)
}

func withAnnotations(tree, annotations map[string]any) map[string]any {
	metadata, _ := tree["metadata"].(map[string]any)
	copied := map[string]any{}
	maps.Copy(copied, metadata)
	copied["annotations"] = annotations
	out := maps.Clone(tree)
	out["metadata"] = copied
	return out
}

// sameObject returns ErrOtherObject if intent is for another object than o. An intent without a namespace has o's.
func sameObject(o, intent object) error {
	for _, c := range []struct{ what, want, got string }{
		{"apiVersion", o.version(), intent.version()},
		{"kind", o.kind(), intent.kind()},
		{"metadata.name", o.meta("name"), intent.meta("name")},
		{"metadata.namespace", o.meta("namespace"), intent.meta("namespace")},
	} {
		if c.got != c.want && !(c.got == "" && c.what == "metadata.namespace") {
			return fmt.Errorf("%w: %s: expected %q, got %q", ErrOtherObject, c.what, c.want, c.got)
		}
	}
	return nil
}

// lastAppliedOrNone is lastApplied, with nil if there is no annotation.
func (o object) lastAppliedOrNone() (map[string]any, error) {
	tree, err := o.lastApplied()
	if errors.Is(err, ErrNoLastApplied) {
		return nil, nil
	}
	return tree, err
}
