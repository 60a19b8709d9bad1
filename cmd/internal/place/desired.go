package place

import (
	"encoding/json"
	"maps"

	"github.com/tenure-ssa/tenure/apiserver/defaults"
	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
)

// Desired is an intent of a manager for one object.
type Desired struct {
	*Target
	Where   string // the place of the document
	Given   map[string]any
	Tree    map[string]any
	Manager string
	Fields  *fieldmanager.FieldManager
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
	data, err := json.Marshal(w.Tree)
	if err == nil {
		err = json.Unmarshal(data, obj)
	}
	return err
}
