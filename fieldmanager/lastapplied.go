package fieldmanager

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// LastAppliedAnnotation is where client-side apply keeps the intent that it
// applied last, as JSON.
const LastAppliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration"

// kubectl is the manager that is treated as the successor of client-side apply.
const kubectl = "kubectl"

// lastApplied returns the intent that client-side apply left in an object, or
// "" for none.
func lastApplied(tree map[string]any) string {
	metadata, _ := tree["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	for _, v := range annotations {
		if _, ok := v.(string); !ok {
			return ""
		}
	}
	text, _ := annotations[LastAppliedAnnotation].(string)
	return text
}

// clientSideApplied returns the fields of live that client-side apply set and nobody changed since; none if the
// annotation can't be compared with live (spec rule 9.1).
func (m *FieldManager) clientSideApplied(live object) *fieldpath.Set {
	text := lastApplied(live.tree)
	if text == "" {
		return nil
	}
	tree, err := parseIntent(text)
	if err != nil || tree["apiVersion"] != any(m.version) {
		return nil
	}
	// With duplicates in live it is unclear which item the annotation means.
	if m.typ.Validate(tree, typed.Rules{}) != nil || m.typ.Validate(live.tree, typed.Rules{Unknown: true}) != nil {
		return nil
	}
	c := m.typ.Compare(tree, live.tree)
	return m.typ.FieldSet(tree).Difference(c.Modified).Difference(c.Added).Difference(c.Removed)
}

var errNoKind = errors.New("expected an object with a kind")

func parseIntent(text string) (map[string]any, error) {
	var tree map[string]any
	if err := utiljson.Unmarshal([]byte(text), &tree); err != nil {
		return nil, err
	}
	if kind, _ := tree["kind"].(string); kind == "" {
		return nil, errNoKind
	}
	return tree, nil
}

// without returns the conflicts over fields that are not in set.
func without(c conflicts.Conflicts, set *fieldpath.Set) (rest conflicts.Conflicts) {
	for _, conflict := range c {
		if !set.Has(conflict.Path) {
			rest = append(rest, conflict)
		}
	}
	return rest
}

// keepLastApplied returns tree with the intent in the annotation of client-side apply, if it has one. It removes the
// annotation if it would be too large (spec rule 9.2).
func keepLastApplied(tree, intent map[string]any) (map[string]any, error) {
	if lastApplied(tree) == "" {
		return tree, nil
	}
	text, err := encodeIntent(intent)
	if err != nil {
		return nil, err
	}
	metadata := maps.Clone(tree["metadata"].(map[string]any))
	annotations := maps.Clone(metadata["annotations"].(map[string]any))
	annotations[LastAppliedAnnotation] = text
	size := 0
	for k, v := range annotations {
		size += len(k) + len(v.(string))
	}
	if size > limits.MaxAnnotations {
		delete(annotations, LastAppliedAnnotation)
	}
	metadata["annotations"] = annotations
	out := maps.Clone(tree)
	out["metadata"] = metadata
	return out, nil
}

// encodeIntent returns the intent as the annotation holds it: without the
// annotation itself, on one line that ends with a newline.
func encodeIntent(intent map[string]any) (string, error) {
	if metadata, ok := intent["metadata"].(map[string]any); ok {
		if annotations, ok := metadata["annotations"].(map[string]any); ok {
			annotations = maps.Clone(annotations)
			delete(annotations, LastAppliedAnnotation)
			metadata = maps.Clone(metadata)
			metadata["annotations"] = annotations
			intent = maps.Clone(intent)
			intent["metadata"] = metadata
		}
	}
	b, err := json.Marshal(intent)
	if err != nil {
		return "", fmt.Errorf("annotation %s: %w", LastAppliedAnnotation, err)
	}
	return string(b) + "\n", nil
}
