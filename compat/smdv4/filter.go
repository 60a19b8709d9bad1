package smdv4

import (
	"reflect"

	v4fieldpath "sigs.k8s.io/structured-merge-diff/v4/fieldpath"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// FromFilter converts f to a filter of Tenure; a nil filter removes nothing. A filter from NewExcludeSetFilter becomes
// a [fieldpath.Excluding], which the engine never has to call. Any other filter is called, and each set is converted to
// v4 and back, so a call costs O(n log n) for n paths. FromFilter returns the same errors as [FromSet].
func FromFilter(f v4fieldpath.Filter) (fieldpath.Filter, error) {
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
// v4. excludedBy assumes that a struct with a single field, a pointer to a set, is such a filter, and compares it with
// a filter that v4 makes of this set: they are equal only if their types are the same. So if v4 changes, filters become
// slower, but never wrong.
func excludedBy(f v4fieldpath.Filter) (*v4fieldpath.Set, bool) {
	v := reflect.ValueOf(f)
	if v.Kind() != reflect.Struct || v.NumField() != 1 || v.Field(0).Type() != reflect.TypeFor[*v4fieldpath.Set]() {
		return nil, false
	}
	set := (*v4fieldpath.Set)(v.Field(0).UnsafePointer())
	return set, v.Comparable() && f == v4fieldpath.NewExcludeSetFilter(set)
}

// converting calls a filter of v4.
type converting struct{ v4 v4fieldpath.Filter }

func (c converting) Filter(set *fieldpath.Set) *fieldpath.Set {
	kept, err := FromSet(c.v4.Filter(Set(set)))
	if err != nil {
		return set // the filter returned a path that no object can have
	}
	return kept
}

// FromFilters converts filters by version, for the options of package fieldmanager; see
// [FromFilter].
func FromFilters(filters map[v4fieldpath.APIVersion]v4fieldpath.Filter) (map[string]fieldpath.Filter, error) {
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
func FromSets(sets map[v4fieldpath.APIVersion]*v4fieldpath.Set) (map[string]fieldpath.Filter, error) {
	return FromFilters(v4fieldpath.NewExcludeFilterSetMap(sets))
}
