// Code generated from package smdv4 by TestTwins; DO NOT EDIT.

package smdv6_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v6fieldpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/tenure-ssa/tenure/compat/smdv6"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// setOf decodes FieldsV1, or returns nil.
func setOf(fields string) *v6fieldpath.Set {
	set := &v6fieldpath.Set{}
	if err := set.FromJSON(strings.NewReader(fields)); err != nil {
		return nil
	}
	return set
}

// keepAll is a filter that v6 did not make.
type keepAll struct{}

func (keepAll) Filter(set *v6fieldpath.Set) *v6fieldpath.Set { return set }

// holdsSet is a filter of another meaning that is made like v6's.
type holdsSet struct{ set *v6fieldpath.Set }

func (f holdsSet) Filter(set *v6fieldpath.Set) *v6fieldpath.Set { return set.Intersection(f.set) }

// funcFilter can't be compared.
type funcFilter struct {
	f func(*v6fieldpath.Set) *v6fieldpath.Set
}

func (f funcFilter) Filter(set *v6fieldpath.Set) *v6fieldpath.Set { return f.f(set) }

const filtered = `{"f:metadata":{"f:labels":{".":{},"f:a":{}}},
	"f:spec":{"f:list":{"k:{\"name\":\"x\"}":{".":{},"f:name":{},"f:port":{}},"v:1":{}},"f:replicas":{}},"f:status":{".":{},"f:ready":{}}}`

func TestFilters(t *testing.T) {
	status := v6fieldpath.NewSet(v6fieldpath.MakePathOrDie("status"), v6fieldpath.MakePathOrDie("spec", "list"))
	for _, row := range []struct {
		name, why string
		filter    v6fieldpath.Filter
		excludes  bool
	}{
		{"excluding", "the engine has a set for it, so that it is never called", v6fieldpath.NewExcludeSetFilter(status), true},
		{"excluding nothing", "", v6fieldpath.NewExcludeSetFilter(v6fieldpath.NewSet()), true},
		{"of a map", "resources have maps of sets",
			v6fieldpath.NewExcludeFilterSetMap(map[v6fieldpath.APIVersion]*v6fieldpath.Set{"v1": status})["v1"], true},
		{"including", "it is called", v6fieldpath.NewIncludeMatcherFilter(v6fieldpath.MakePrefixMatcherOrDie(
			"spec", "list", v6fieldpath.MatchAnyPathElement(), "port")), false},
		{"including everything", "", v6fieldpath.NewIncludeMatcherFilter(), false},
		{"of the host", "it is called", keepAll{}, false},
		{"made alike", "a struct of one set need not exclude it", holdsSet{status}, false},
		{"not comparable", "", funcFilter{func(s *v6fieldpath.Set) *v6fieldpath.Set { return s.RecursiveDifference(status) }}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			ours, err := smdv6.FromFilter(row.filter)
			require.NoError(t, err)
			_, excludes := fieldpath.Excluded(ours)
			require.Equal(t, row.excludes, excludes, row.why)
			requireSameFilter(t, row.filter, ours, setOf(filtered))
			requireSameFilter(t, smdv6.Filter(ours), ours, setOf(filtered))
			again, err := smdv6.FromFilter(smdv6.Filter(ours))
			require.NoError(t, err)
			if row.excludes {
				require.Equal(t, ours, again, "what came from Tenure is unpacked")
			}
		})
	}
	none, err := smdv6.FromFilter(nil)
	require.NoError(t, err)
	require.Nil(t, none)
	none, err = smdv6.FromFilter(v6fieldpath.NewExcludeSetFilter(nil))
	require.NoError(t, err)
	require.Equal(t, fieldpath.Excluding(nil), none, "no set leaves out nothing; v6 panics")
}

// requireSameFilter requires that both filters keep the same paths.
func requireSameFilter(t *testing.T, theirs v6fieldpath.Filter, ours fieldpath.Filter, set *v6fieldpath.Set) {
	t.Helper()
	want, err := smdv6.FromSet(theirs.Filter(set))
	require.NoError(t, err)
	all, err := smdv6.FromSet(set)
	require.NoError(t, err)
	got := ours.Filter(all)
	require.Equal(t, string(want.AppendJSON(nil)), string(got.AppendJSON(nil)))
}

func TestFiltersByVersion(t *testing.T) {
	status := v6fieldpath.NewSet(v6fieldpath.MakePathOrDie("status"))
	filters, err := smdv6.FromSets(map[v6fieldpath.APIVersion]*v6fieldpath.Set{"v1": status})
	require.NoError(t, err)
	require.Equal(
		t, map[string]fieldpath.Filter{"v1": fieldpath.Excluding(fieldpath.NewSet(fieldpath.Fields("status")))}, filters,
	)
	filters, err = smdv6.FromFilters(map[v6fieldpath.APIVersion]v6fieldpath.Filter{"v1": nil})
	require.NoError(t, err)
	require.Empty(t, filters)
	nothing := v6fieldpath.NewSet(v6fieldpath.Path{{}})
	_, err = smdv6.FromSets(map[v6fieldpath.APIVersion]*v6fieldpath.Set{"v1": nothing})
	require.EqualError(t, err, `filter of "v1": the path element selects nothing, want a field, key, value or index`)
}

// FuzzFilters has filters of v6, and what they are converted to, filter the same sets.
func FuzzFilters(f *testing.F) {
	f.Add(filtered, `{"f:spec":{"f:list":{}},"f:status":{}}`, uint8(0))
	f.Add(filtered, `{"f:spec":{"f:list":{"k:{\"name\":\"x\"}":{"f:port":{}}}}}`, uint8(0b100))
	f.Add(`{"f:a":{"v:1":{},"v:1.5":{},"i:0":{"f:b":{}}}}`, `{"f:a":{"v:1":{},"i:0":{}}}`, uint8(1))
	f.Fuzz(func(t *testing.T, fields, pattern string, wildcards uint8) {
		set, ex := setOf(fields), setOf(pattern)
		if set == nil || ex == nil {
			return
		}
		if _, err := smdv6.FromSet(set); err != nil {
			return
		}
		excluding := v6fieldpath.NewExcludeSetFilter(ex)
		ours, err := smdv6.FromFilter(excluding)
		if err != nil {
			return
		}
		_, ok := fieldpath.Excluded(ours)
		require.True(t, ok)
		requireSameFilter(t, excluding, ours, set)

		var matchers []*v6fieldpath.SetMatcher
		ex.Iterate(func(p v6fieldpath.Path) {
			var parts []any
			for i, e := range p {
				if wildcards>>(i%8)&1 != 0 {
					parts = append(parts, v6fieldpath.MatchAnyPathElement())
				} else {
					parts = append(parts, e)
				}
			}
			matchers = append(matchers, v6fieldpath.MakePrefixMatcherOrDie(parts...))
		})
		including := v6fieldpath.NewIncludeMatcherFilter(matchers...)
		ours, err = smdv6.FromFilter(including)
		require.NoError(t, err)
		requireSameFilter(t, including, ours, set)
	})
}
