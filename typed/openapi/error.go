package openapi

import (
	"cmp"
	"errors"
	"slices"
)

// SchemaError describes a fault at one place of a model. The compile functions return all faults, joined, in the
// order of models and fields.
type SchemaError struct {
	// Model is the name of the model, or of the CustomResourceDefinition.
	Model string
	// Path is the path from the model to the fault, such as properties.spec.items.x-kubernetes-list-type; empty for the
	// model itself.
	Path string
	// Reason states what was found and what was expected.
	Reason string
}

// Error returns "model: path: reason".
func (e *SchemaError) Error() string {
	if e.Path == "" {
		return e.Model + ": " + e.Reason
	}
	return e.Model + ": " + e.Path + ": " + e.Reason
}

// joined returns errs as one error in a stable order, or nil.
func joined(errs []*SchemaError) error {
	slices.SortStableFunc(errs, func(a, b *SchemaError) int { return cmp.Compare(a.Model, b.Model) })
	all := make([]error, len(errs))
	for i, e := range errs {
		all[i] = e
	}
	return errors.Join(all...)
}
