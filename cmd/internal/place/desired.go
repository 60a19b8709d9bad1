package place

import (
	"context"
	"encoding/json"
	"maps"

	"github.com/tenure-ssa/tenure/apiserver/defaults"
	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/secrets"
)

// Desired is an intent of a manager for one object.
type Desired struct {
	*Target
	Where string         // the place of the document
	Given map[string]any // what is in the document
	// Tree is what may be shown of the intent, see [secrets.Shown], with its namespace.
	Tree    map[string]any
	sent    map[string]any // with the values of a Secret
	Manager string
	Fields  *fieldmanager.FieldManager
}

// Read reads the live object of the document.
func (w *Desired) Read(ctx context.Context, p Place) (err error) {
	w.Target, w.sent, err = p.Live(ctx, w.Given)
	w.Tree = secrets.Shown(w.sent)
	return err
}

// Stored returns the intent and its live object with the values of a Secret, as [Target.Stored] does.
func (w *Desired) Stored() *Desired {
	if !secrets.Is(w.sent) {
		return w
	}
	with := *w
	with.Target, with.Tree = w.Target.Stored(), w.sent
	return &with
}

// With returns another intent of the manager for the object: of a Secret, with its values.
func (w *Desired) With(intent map[string]any) *Desired {
	with := *w
	with.sent, with.Tree = intent, secrets.Shown(intent)
	return &with
}

// WithManagedFields returns the intent for the live object with the managed fields of another one.
func (w *Desired) WithManagedFields(of map[string]any) *Desired {
	with, target := *w, *w.Target
	list := manifest.ManagedFields(of)
	for _, tree := range []*map[string]any{&target.Object, &target.stored} {
		if *tree == nil {
			continue
		}
		metadata, _ := (*tree)["metadata"].(map[string]any)
		metadata, *tree = maps.Clone(metadata), maps.Clone(*tree)
		metadata["managedFields"] = list
		(*tree)["metadata"] = metadata
	}
	with.Target = &target
	return &with
}

// Manifest returns an intent without a namespace that the document did not have.
func (w *Desired) Manifest(intent map[string]any) map[string]any {
	metadata, ok := intent["metadata"].(map[string]any)
	if !ok || manifest.TextAt(w.Given, "namespace") != "" {
		return intent
	}
	metadata, intent = maps.Clone(metadata), maps.Clone(intent)
	delete(metadata, "namespace")
	intent["metadata"] = metadata
	return intent
}

// PlanOptions returns the options of a plan for the intent's manager, as [Target.PlanOptions] does.
func (w *Desired) PlanOptions(plain bool) plans.Options {
	options := w.Target.PlanOptions(plain)
	options.Manager = w.Manager
	return options
}

// CheckDecodes returns an error if a server can't decode the intent. Such an intent is planned as unchanged if its
// mistake is in fields that the write resets.
func (w *Desired) CheckDecodes() error {
	obj, ok := defaults.New(w.Kind.GroupVersionKind)
	if !ok {
		return nil
	}
	data, err := json.Marshal(w.Stored().Tree)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, obj)
}
