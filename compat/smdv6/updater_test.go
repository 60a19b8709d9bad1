// Code generated from package smdv4 by TestTwins; DO NOT EDIT.

//lint:file-ignore SA1019 values are made that validation would refuse

package smdv6_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v6fieldpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	v6typed "sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/tenure-ssa/tenure/compat/smdv6"
)

func yaml(t *testing.T, text v6typed.YAMLObject) *v6typed.TypedValue {
	t.Helper()
	v, err := thing(t, "thing").FromYAML(text)
	require.NoError(t, err)
	return v
}

func entry(version v6fieldpath.APIVersion, applied bool, fields ...string) v6fieldpath.VersionedSet {
	set := v6fieldpath.NewSet()
	for _, f := range fields {
		set.Insert(v6fieldpath.MakePathOrDie(f))
	}
	return v6fieldpath.NewVersionedSet(set, version, applied)
}

func TestUpdaterErrors(t *testing.T) {
	ok := yaml(t, `{s: x}`)
	broken := v6typed.AsTypedUnvalidated(value.NewValueInterface(make(chan int)), ok.Schema(), ok.TypeRef())
	noType := v6typed.AsTypedUnvalidated(value.NewValueInterface(nil), ok.Schema(), thingParser.Type("nothing").TypeRef)
	other, err := thing(t, "anything").FromYAML(`x`)
	require.NoError(t, err)
	oddSet := v6fieldpath.NewSet(v6fieldpath.Path{{}})
	odd := v6fieldpath.ManagedFields{"m": v6fieldpath.NewVersionedSet(oddSet, "v1", true)}
	plain := &smdv6.Updater{Converter: same{}}
	for _, row := range []struct {
		name, why    string
		u            *smdv6.Updater
		live, object *v6typed.TypedValue
		managers     v6fieldpath.ManagedFields
		want         string
	}{
		{"both filters", "as with v6", &smdv6.Updater{IgnoreFilter: map[v6fieldpath.APIVersion]v6fieldpath.Filter{}, IgnoredFields: map[v6fieldpath.APIVersion]*v6fieldpath.Set{}},
			ok, ok, nil, "IgnoreFilter and IgnoredFields may not both be set"},
		{"types", "both objects are of one type", plain, ok, other, nil, "expected objects of one type of one schema"},
		{"live", "", plain, broken, ok, nil, "live object: expected a JSON value, got a Go chan int"},
		{"object", "", plain, ok, broken, nil, "new object: expected a JSON value, got a Go chan int"},
		{"type", "", plain, noType, noType, nil, `live object: no type called "nothing" in the schema`},
		{"managers", "", plain, ok, ok, odd, `manager "m": the path element selects nothing, want a field, key, value or index`},
		{"ignored fields", "", &smdv6.Updater{IgnoredFields: map[v6fieldpath.APIVersion]*v6fieldpath.Set{"v1": oddSet}}, yaml(t, `{}`), ok, nil, "the path element selects nothing"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, _, err := row.u.Apply(row.live, row.object, "v1", row.managers, "a", false)
			require.ErrorContains(t, err, row.want, row.why)
			_, _, err = row.u.Update(row.live, row.object, "v1", row.managers, "a")
			require.ErrorContains(t, err, row.want)
		})
	}
}

func TestIgnoreFilter(t *testing.T) {
	u := &smdv6.Updater{Converter: same{}, IgnoreFilter: map[v6fieldpath.APIVersion]v6fieldpath.Filter{
		"v1": v6fieldpath.NewExcludeSetFilter(v6fieldpath.NewSet(v6fieldpath.MakePathOrDie("num"))),
	}}
	_, managers, err := u.Apply(yaml(t, `null`), yaml(t, `{s: x, num: 1}`), "v1", nil, "a", false)
	require.NoError(t, err)
	require.Equal(t, ".s", managers["a"].Set().String())
	_, managers, err = u.Update(yaml(t, `{s: x, num: 1}`), yaml(t, `{s: x, num: 2}`), "v1", managers, "b")
	require.NoError(t, err)
	require.NotContains(t, managers, "b", "nobody owns what is ignored")
}

func TestNoop(t *testing.T) {
	u := &smdv6.Updater{Converter: same{}}
	live := yaml(t, `{s: x}`)
	managers := v6fieldpath.ManagedFields{"b": entry("v1", true, "s")}
	object, after, err := u.Apply(live, yaml(t, `{s: x}`), "v1", managers, "a", false)
	require.NoError(t, err)
	require.Nil(t, object, "an object that equals live is none")
	require.Len(t, after, 2, "but the managers count")
	require.Len(t, managers, 1, "what is given stays as it is")
	require.Equal(t, managers["b"], after["b"], "an entry that did not change is the same")
}

// Entries that can't be converted to are kept, and the host is told.
func TestWarn(t *testing.T) {
	var told []string
	u := &smdv6.Updater{Converter: same{}, Warn: func(manager string, version v6fieldpath.APIVersion, err error) {
		told = append(told, manager+" at "+string(version)+": "+err.Error())
	}}
	managers := v6fieldpath.ManagedFields{"old": entry("gone", true, "num"), "other": entry("down", false, "num")}
	_, after, err := u.Update(yaml(t, `{num: 1}`), yaml(t, `{num: 2}`), "v1", managers, "a")
	require.NoError(t, err)
	require.Len(t, after, 3)
	require.Equal(t, []string{"old at gone: no such version", "other at down: the webhook is down"}, told)

	_, after, err = u.Update(yaml(t, `{num: 1}`), yaml(t, `{num: 1, s: x}`), "v1", managers, "old")
	require.NoError(t, err)
	require.Equal(t, ".s", after["old"].Set().String(), "paths of a version that is gone are not those of another")
	object, after, err := u.Apply(yaml(t, `{num: 1}`), yaml(t, `{s: x}`), "v1", managers, "old", false)
	require.NoError(t, err)
	require.Equal(t, ".s", after["old"].Set().String())
	tree, err := smdv6.Tree(object)
	require.NoError(t, err)
	require.Contains(t, tree, "num", "and nothing is removed")
}

// flaky converts until it has done so n times.
type flaky struct{ n *int }

func (f flaky) Convert(v *v6typed.TypedValue, _ v6fieldpath.APIVersion) (*v6typed.TypedValue, error) {
	if *f.n--; *f.n < 0 {
		return nil, errGone
	}
	return v, nil
}

func (f flaky) IsMissingVersionError(error) bool { return false }

// Wherever a conversion fails on the way, the write goes on: either what was
// dropped is removed, or nothing is.
func TestConversionsThatFail(t *testing.T) {
	removed := 0
	for n := range 20 {
		left := n
		u := &smdv6.Updater{Converter: flaky{&left}, ReturnInputOnNoop: true}
		managers := v6fieldpath.ManagedFields{
			"a": entry("v2", true, "num"), "b": entry("v3", false, "s"), "c": entry("v2", false, "s"),
		}
		object, after, err := u.Apply(yaml(t, `{num: 1, s: x}`), yaml(t, `{labels: {a: b}}`), "v1", managers, "a", false)
		require.NoError(t, err)
		require.Contains(t, after, "b")
		tree, err := smdv6.Tree(object)
		require.NoError(t, err)
		require.Contains(t, tree, "s", "what another manager owns stays")
		if _, ok := tree.(map[string]any)["num"]; !ok {
			removed++
		}
	}
	require.Positive(t, removed)
	require.Less(t, removed, 20)
}

func TestExtractApplyErrors(t *testing.T) {
	u := &smdv6.Updater{Converter: same{}}
	ok := yaml(t, `{s: x}`)
	managers := v6fieldpath.ManagedFields{"a": entry("v2", true, "s")}
	_, _, err := u.ExtractApply(ok, ok, "v1", managers, "a")
	require.EqualError(t, err, `manager "a": its entry is of version "v2", want "v1"`)
	odd := v6fieldpath.ManagedFields{
		"a": v6fieldpath.NewVersionedSet(v6fieldpath.NewSet(v6fieldpath.Path{{}}), "v1", true),
	}
	_, _, err = u.ExtractApply(ok, ok, "v1", odd, "a")
	require.ErrorContains(t, err, "selects nothing")
	_, after, err := u.ExtractApply(yaml(t, `null`), ok, "v1", nil, "a")
	require.NoError(t, err)
	require.Contains(t, after, "a", "without an entry it is an apply")
	noType := v6typed.AsTypedUnvalidated(value.NewValueInterface(nil), ok.Schema(), thingParser.Type("nothing").TypeRef)
	_, err = u.ExtractItems(noType, v6fieldpath.NewSet(), false)
	require.ErrorContains(t, err, "no type called")
	_, _, err = u.ExtractApply(ok, noType, "v1", v6fieldpath.ManagedFields{"a": entry("v1", true, "s")}, "a")
	require.ErrorContains(t, err, "no type called")
}
