package fieldmanager

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tenure-ssa/tenure/internal/lastapplied"
	"github.com/tenure-ssa/tenure/internal/trees"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// LastAppliedAnnotation is the annotation in which client-side apply stores its last applied intent, as JSON.
const LastAppliedAnnotation = lastapplied.Annotation

// kubectl is the manager whose applies update the annotation.
const kubectl = lastapplied.Manager

// annotationsOf returns the annotations of an object as a Go struct would have them: a null becomes an empty string. If
// any other value is not a string, it returns none.
func annotationsOf(tree map[string]any) map[string]string {
	metadata, _ := tree["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	out := make(map[string]string, len(annotations))
	for name, v := range annotations {
		text, isText := v.(string)
		if !isText && v != nil {
			return nil
		}
		out[name] = text
	}
	return out
}

// lastApplied returns the intent that client-side apply stored in an object; "" if there is none.
func lastApplied(tree map[string]any) string { return annotationsOf(tree)[LastAppliedAnnotation] }

// clientSideApplied returns the fields of live that still have the values set by client-side apply. The set is empty if
// the annotation can't be compared with live (spec rule 9.1).
func (m *FieldManager) clientSideApplied(live object) *fieldpath.Set {
	text := lastApplied(live.tree)
	if text == "" {
		return nil
	}
	var tree map[string]any
	if err := utiljson.Unmarshal([]byte(text), &tree); err != nil {
		return nil
	}
	if kind, _ := tree["kind"].(string); kind == "" || tree["apiVersion"] != any(m.version) {
		return nil
	}
	// If live has duplicates, it is unclear which item the annotation is about.
	if m.typ.Validate(tree, typed.Rules{}) != nil || m.typ.Validate(live.tree, typed.Rules{AllowUnknown: true}) != nil {
		return nil
	}
	c := m.typ.Compare(tree, live.tree)
	return m.typ.FieldSet(tree).Difference(c.Modified).Difference(c.Added).Difference(c.Removed)
}

// keepLastApplied updates the annotation of client-side apply in a tree that has it. It returns tree itself if the
// annotation does not change. It removes the annotation if the annotations would be too large (spec rule 9.2). Like
// upstream, it replaces a null among the other annotations by an empty string.
func (w *applyWrite) keepLastApplied(tree map[string]any) (map[string]any, error) {
	annotations := annotationsOf(tree)
	if annotations[LastAppliedAnnotation] == "" {
		return tree, nil
	}
	text, err := w.encodeIntent()
	if err != nil {
		return nil, fmt.Errorf("annotation %s: %w", LastAppliedAnnotation, err)
	}
	annotations[LastAppliedAnnotation] = text
	if _, ok := lastapplied.IsWithin(annotations); !ok {
		delete(annotations, LastAppliedAnnotation)
	}
	out := &unstructured.Unstructured{Object: maps.Clone(tree)}
	out.Object["metadata"] = maps.Clone(tree["metadata"].(map[string]any))
	if out.SetAnnotations(annotations); typed.Equal(tree["metadata"], out.Object["metadata"]) {
		return tree, nil
	}
	return out.Object, nil
}

// encodeIntent returns the intent in the form of the annotation.
func (w *applyWrite) encodeIntent() (string, error) {
	var intent runtime.Object = &unstructured.Unstructured{Object: trees.Copy(w.intent.tree).(map[string]any)}
	if !isUnstructured(w.applied) {
		intent = w.applied.DeepCopyObject()
	}
	return lastapplied.Text(intent)
}
