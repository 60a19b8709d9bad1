package excess

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/conflicts/policy"
	"github.com/tenure-ssa/tenure/internal/gostruct"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/internal/secrets"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership/internal/items"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Before is the state of a field before a manager owned it.
type Before struct {
	// Value is the JSON value of the field; nil if it was absent. Values of Secrets are replaced.
	Value any `json:"value,omitempty"`
	// Owners are the managers that owned the field.
	Owners []policy.Owner `json:"owners,omitempty"`
}

// String returns the value as JSON, and the owners' names.
func (b Before) String() string {
	text := "absent"
	if b.Value != nil {
		data, _ := json.Marshal(b.Value) // no error: the value comes from JSON
		text = printable.Text(string(data))
	}
	owners := make([]string, len(b.Owners))
	for i, o := range b.Owners {
		owners[i] = ownerText(o)
	}
	if len(owners) > 0 {
		text += " of " + strings.Join(owners, " and ")
	}
	return text
}

// FindTaken returns the fields that Find returns for after, except fields that the same manager already owned in
// before. before is an earlier version of the object; nil if after is the first version. Before of each returned field
// is the field's state in that version. FindTaken does not change the objects.
func FindTaken(p *policy.Policy, before, after runtime.Object) ([]Field, error) {
	found, err := Find(p, after)
	if err != nil || before == nil || len(found) == 0 {
		return found, err
	}
	entries, err := managedfields.Read(before)
	if err != nil {
		return nil, err
	}
	tree, err := gostruct.Tree(before)
	if err != nil {
		return nil, err
	}
	gvk := after.GetObjectKind().GroupVersionKind()
	isSecret := gvk.Group == "" && gvk.Kind == "Secret"
	if isSecret {
		tree = maps.Clone(tree)
		tree["apiVersion"], tree["kind"] = "v1", "Secret" // decoded Go structs lack both
		tree = secrets.Shown(tree)
	}
	var taken []Field
	for _, f := range found {
		f.Before = &Before{Value: valueAt(tree, f.Path)}
		if isSecret {
			f.Before.Value = secrets.Replace(f.Before.Value, nil, secrets.Hidden)
		}
		for i := range entries {
			// An entry that can't be decoded owns no known fields.
			if set, err := entries[i].FieldSet(); err == nil && set.Has(f.Path) {
				e := &entries[i]
				owner := policy.Owner{Manager: e.Manager, Operation: e.Operation, Subresource: e.Subresource}
				f.Before.Owners = append(f.Before.Owners, owner)
			}
		}
		if !slices.Contains(f.Before.Owners, f.Owner) {
			taken = append(taken, f)
		}
	}
	return taken, nil
}

// valueAt returns the value at a path; nil if there is none.
func valueAt(value any, path fieldpath.Path) any {
	for _, e := range path {
		switch parent := value.(type) {
		case map[string]any:
			name, _ := e.Field()
			value = parent[name]
		case []any:
			found := items.New(parent, nil).Find(e)
			if len(found) == 0 {
				return nil
			}
			value = parent[found[0]]
		default:
			return nil
		}
	}
	return value
}
