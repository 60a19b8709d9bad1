package smdv4_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v4fieldpath "sigs.k8s.io/structured-merge-diff/v4/fieldpath"

	"github.com/tenure-ssa/tenure/compat/smdv4"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// setOf decodes FieldsV1, or returns nil.
func setOf(fields string) *v4fieldpath.Set {
	set := &v4fieldpath.Set{}
	if err := set.FromJSON(strings.NewReader(fields)); err != nil {
		return nil
	}
	return set
}

// keepAll is a filter that v4 did not make.
type keepAll struct{}

func (keepAll) Filter(set *v4fieldpath.Set) *v4fieldpath.Set { return set }

// holdsSet is a filter with another meaning that has the same structure as v4's.
type holdsSet struct{ set *v4fieldpath.Set }

func (f holdsSet) Filter(set *v4fieldpath.Set) *v4fieldpath.Set { return set.Intersection(f.set) }

// funcFilter is a filter that can't be compared.
type funcFilter struct {
	f func(*v4fieldpath.Set) *v4fieldpath.Set
}

func (f funcFilter) Filter(set *v4fieldpath.Set) *v4fieldpath.Set { return f.f(set) }

const filtered = `{"f:metadata":{"f:labels":{".":{},"f:a":{}}},
	"f:spec":{"f:list":{"k:{\"name\":\"x\"}":{".":{},"f:name":{},"f:port":{}},"v:1":{}},"f:replicas":{}},"f:status":{".":{},"f:ready":{}}}`

func TestFilters(t *testing.T) {
	status := v4fieldpath.NewSet(v4fieldpath.MakePathOrDie("status"), v4fieldpath.MakePathOrDie("spec", "list"))
	for _, row := range []struct {
		name, why string
		filter    v4fieldpath.Filter
		excludes  bool
	}{
		{"excluding", "the engine has a set for it, so that it is never called",
			v4fieldpath.NewExcludeSetFilter(status), true},
		{"excluding nothing", "", v4fieldpath.NewExcludeSetFilter(v4fieldpath.NewSet()), true},
		{"of a map", "resources have maps of sets",
			v4fieldpath.NewExcludeFilterSetMap(map[v4fieldpath.APIVersion]*v4fieldpath.Set{"v1": status})["v1"], true},
		{"including", "it is called", v4fieldpath.NewIncludeMatcherFilter(v4fieldpath.MakePrefixMatcherOrDie(
			"spec", "list", v4fieldpath.MatchAnyPathElement(), "port")), false},
		{"including everything", "", v4fieldpath.NewIncludeMatcherFilter(), false},
		{"of the host", "it is called", keepAll{}, false},
		{"made alike", "a struct of one set need not exclude it", holdsSet{status}, false},
		{"not comparable", "",
			funcFilter{func(s *v4fieldpath.Set) *v4fieldpath.Set { return s.RecursiveDifference(status) }}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			ours, err := smdv4.FromFilter(row.filter)
			require.NoError(t, err)
			_, excludes := ours.(fieldpath.Excluding)
			require.Equal(t, row.excludes, excludes, row.why)
			requireSameFilter(t, row.filter, ours, setOf(filtered))
		})
	}
	none, err := smdv4.FromFilter(nil)
	require.NoError(t, err)
	require.Nil(t, none)
	none, err = smdv4.FromFilter(v4fieldpath.NewExcludeSetFilter(nil))
	require.NoError(t, err)
	require.Equal(t, fieldpath.Excluding{Set: nil}, none, "no set leaves out nothing; v4 panics")
}

// requireSameFilter requires that both filters keep the same paths.
func requireSameFilter(t *testing.T, theirs v4fieldpath.Filter, ours fieldpath.Filter, set *v4fieldpath.Set) {
	t.Helper()
	want, err := smdv4.FromSet(theirs.Filter(set))
	require.NoError(t, err)
	all, err := smdv4.FromSet(set)
	require.NoError(t, err)
	got := ours.Filter(all)
	require.Equal(t, string(want.AppendJSON(nil)), string(got.AppendJSON(nil)))
}

func TestFiltersByVersion(t *testing.T) {
	status := v4fieldpath.NewSet(v4fieldpath.MakePathOrDie("status"))
	filters, err := smdv4.FromSets(map[v4fieldpath.APIVersion]*v4fieldpath.Set{"v1": status})
	require.NoError(t, err)
	require.Equal(
		t, map[string]fieldpath.Filter{"v1": fieldpath.Excluding{Set: fieldpath.NewSet(fieldpath.NewPath("status"))}}, filters,
	)
	filters, err = smdv4.FromFilters(map[v4fieldpath.APIVersion]v4fieldpath.Filter{"v1": nil})
	require.NoError(t, err)
	require.Empty(t, filters)
	nothing := v4fieldpath.NewSet(v4fieldpath.Path{{}})
	_, err = smdv4.FromSets(map[v4fieldpath.APIVersion]*v4fieldpath.Set{"v1": nothing})
	require.EqualError(t, err, `filter of "v1": the path element selects nothing, want a field, key, value or index`)
}

// FuzzFilters: a filter of v4 and its conversion keep the same paths of a set.
func FuzzFilters(f *testing.F) {
	f.Add(filtered, `{"f:spec":{"f:list":{}},"f:status":{}}`, uint8(0))
	f.Add(filtered, `{"f:spec":{"f:list":{"k:{\"name\":\"x\"}":{"f:port":{}}}}}`, uint8(0b100))
	f.Add(`{"f:a":{"v:1":{},"v:1.5":{},"i:0":{"f:b":{}}}}`, `{"f:a":{"v:1":{},"i:0":{}}}`, uint8(1))
	f.Fuzz(func(t *testing.T, fields, pattern string, wildcards uint8) {
		set, ex := setOf(fields), setOf(pattern)
		if set == nil || ex == nil {
			return
		}
		if _, err := smdv4.FromSet(set); err != nil {
			return
		}
		excluding := v4fieldpath.NewExcludeSetFilter(ex)
		ours, err := smdv4.FromFilter(excluding)
		if err != nil {
			return
		}
		_, ok := ours.(fieldpath.Excluding)
		require.True(t, ok)
		requireSameFilter(t, excluding, ours, set)

		var matchers []*v4fieldpath.SetMatcher
		ex.Iterate(func(p v4fieldpath.Path) {
			var parts []any
			for i, e := range p {
				if wildcards>>(i%8)&1 != 0 {
					parts = append(parts, v4fieldpath.MatchAnyPathElement())
				} else {
					parts = append(parts, e)
				}
			}
			matchers = append(matchers, v4fieldpath.MakePrefixMatcherOrDie(parts...))
		})
		including := v4fieldpath.NewIncludeMatcherFilter(matchers...)
		ours, err = smdv4.FromFilter(including)
		require.NoError(t, err)
		requireSameFilter(t, including, ours, set)
	})
}
