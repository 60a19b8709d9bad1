package plans

import (
	"github.com/tenure-ssa/tenure/internal/resetfields"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// serverFields are the fields of an object that only a server sets: the fields that are never owned (spec rule 2.7),
// and two fields of an object that is being deleted.
var serverFields = managedfields.Unowned().Union(fieldpath.NewSet(
	fieldpath.NewPath("metadata", "deletionTimestamp"), fieldpath.NewPath("metadata", "deletionGracePeriodSeconds")))

// putBack returns the merged object with live's values in all fields that the write must not change: the fields that it
// resets (spec rule 2.9), and serverFields. live is nil for a create.
func (w write) putBack(t *typed.Type, live, merged map[string]any) (map[string]any, error) {
	reset := w.options.ResetFields[w.version]
	if fields, ok := reset.(fieldpath.Excluding); ok {
		// Most filters exclude a few fields with their whole content.
		merged = resetfields.Restore(live, merged, fields.Set)
	}
	if live != nil {
		merged = resetfields.Restore(live, merged, serverFields)
	}
	if reset == nil {
		return merged, nil
	}
	return putBackFiltered(t, live, merged, reset)
}

// putBackFiltered restores live's values at the changed paths that the filter excludes. After [resetfields.Restore],
// such paths remain only if the filter is not a set, or if a path of the set has elements other than fields.
func putBackFiltered(t *typed.Type, live, merged map[string]any, reset fieldpath.Filter) (map[string]any, error) {
	c := t.Compare(live, merged).Map(func(s *fieldpath.Set) *fieldpath.Set { return s.Difference(reset.Filter(s)) })
	if c.IsUnchanged() {
		return merged, nil
	}
	tree := t.Remove(merged, c.AddedOrModified())
	if missing := c.Modified.Union(c.Removed); !missing.IsEmpty() {
		part := t.Extract(live, missing.Leaves(), true)
		merged, err := t.Merge(tree, part, typed.Rules{AllowDuplicates: true, AllowUnknown: true})
		if err != nil {
			return nil, err
		}
		tree = merged.Value
	}
	out, _ := tree.(map[string]any)
	return out, nil
}
