// Code generated from package smdv4 by TestTwins; DO NOT EDIT.

package smdv6

import (
	"reflect"

	v6fieldpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// FromFilter converts f to a filter of Tenure; a nil filter removes nothing. A filter from NewExcludeSetFilter becomes
// a [fieldpath.Excluding], which the engine never has to call. Any other filter is called, and each set is converted to
// v6 and back, so a call costs O(n log n) for n paths. FromFilter returns the same errors as [FromSet].
func FromFilter(f v6fieldpath.Filter) (fieldpath.Filter, error) {
	if f == nil {
		return nil, nil
	}
	if excluded, ok := excludedBy(f); ok {
		set, err := FromSet(excluded)
		if err != nil {
			return nil, err
		}
		return fieldpath.Excluding{Set: set}, nil
	}
	return converting{f}, nil
}

// excludedBy returns the set that a filter from NewExcludeSetFilter excludes. The type of such filters is private to
// v6. excludedBy assumes that a struct with a single field, a pointer to a set, is such a filter, and compares it with
// a filter that v6 makes of this set: they are equal only if their types are the same. So if v6 changes, filters become
// slower, but never wrong.
func excludedBy(f v6fieldpath.Filter) (*v6fieldpath.Set, bool) {
	v := reflect.ValueOf(f)
	if v.Kind() != reflect.Struct || v.NumField() != 1 || v.Field(0).Type() != reflect.TypeFor[*v6fieldpath.Set]() {
		return nil, false
	}
	set := (*v6fieldpath.Set)(v.Field(0).UnsafePointer())
	return set, v.Comparable() && f == v6fieldpath.NewExcludeSetFilter(set)
}

// converting calls a filter of v6.
type converting struct{ v6 v6fieldpath.Filter }

func (c converting) Filter(set *fieldpath.Set) *fieldpath.Set {
	kept, err := FromSet(c.v6.Filter(Set(set)))
	if err != nil {
		return set // the filter returned a path that no object can have
	}
	return kept
}

// FromFilters converts filters by version, for the options of package fieldmanager; see
// [FromFilter].
func FromFilters(filters map[v6fieldpath.APIVersion]v6fieldpath.Filter) (map[string]fieldpath.Filter, error) {
	out := make(map[string]fieldpath.Filter, len(filters))
	for version, f := range filters {
		ours, err := FromFilter(f)
		if err != nil {
			return nil, below("filter of "+quoted(string(version))+": ", err)
		}
		if ours != nil {
			out[string(version)] = ours
		}
	}
	return out, nil
}

// FromSets returns filters that exclude sets, by version; see [FromFilters].
func FromSets(sets map[v6fieldpath.APIVersion]*v6fieldpath.Set) (map[string]fieldpath.Filter, error) {
	return FromFilters(v6fieldpath.NewExcludeFilterSetMap(sets))
}
