//lint:file-ignore SA1019 values are made that validation would refuse

package smdv4_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v4fieldpath "sigs.k8s.io/structured-merge-diff/v4/fieldpath"
	v4typed "sigs.k8s.io/structured-merge-diff/v4/typed"
	"sigs.k8s.io/structured-merge-diff/v4/value"

	"github.com/tenure-ssa/tenure/compat/smdv4"
)

func yaml(t *testing.T, text v4typed.YAMLObject) *v4typed.TypedValue {
	t.Helper()
	v, err := thing(t, "thing").FromYAML(text)
	require.NoError(t, err)
	return v
}

func entry(version v4fieldpath.APIVersion, applied bool, fields ...string) v4fieldpath.VersionedSet {
	set := v4fieldpath.NewSet()
	for _, f := range fields {
		set.Insert(v4fieldpath.MakePathOrDie(f))
	}
	return v4fieldpath.NewVersionedSet(set, version, applied)
}

func TestUpdaterErrors(t *testing.T) {
	ok := yaml(t, `{s: x}`)
	broken := v4typed.AsTypedUnvalidated(value.NewValueInterface(make(chan int)), ok.Schema(), ok.TypeRef())
	noType := v4typed.AsTypedUnvalidated(value.NewValueInterface(nil), ok.Schema(), thingParser.Type("nothing").TypeRef)
	other, err := thing(t, "anything").FromYAML(`x`)
	require.NoError(t, err)
	oddSet := v4fieldpath.NewSet(v4fieldpath.Path{{}})
	odd := v4fieldpath.ManagedFields{"m": v4fieldpath.NewVersionedSet(oddSet, "v1", true)}
	plain := &smdv4.Updater{Converter: same{}}
	for _, row := range []struct {
		name, why    string
		u            *smdv4.Updater
		live, object *v4typed.TypedValue
		managers     v4fieldpath.ManagedFields
		want         string
	}{
		{"both filters", "as with v4",
			&smdv4.Updater{IgnoreFilter: map[v4fieldpath.APIVersion]v4fieldpath.Filter{},
				IgnoredFields: map[v4fieldpath.APIVersion]*v4fieldpath.Set{}},
			ok, ok, nil, "IgnoreFilter and IgnoredFields may not both be set"},
		{"types", "both objects are of one type", plain, ok, other, nil, "expected objects of one type of one schema"},
		{"live", "", plain, broken, ok, nil, "live object: expected a JSON value, got a Go chan int"},
		{"object", "", plain, ok, broken, nil, "new object: expected a JSON value, got a Go chan int"},
		{"type", "", plain, noType, noType, nil, `live object: no type called "nothing" in the schema`},
		{"managers", "", plain, ok, ok, odd,
			`manager "m": the path element selects nothing, want a field, key, value or index`},
		{"ignored fields", "", &smdv4.Updater{IgnoredFields: map[v4fieldpath.APIVersion]*v4fieldpath.Set{"v1": oddSet}},
			yaml(t, `{}`), ok, nil, "the path element selects nothing"},
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
	u := &smdv4.Updater{Converter: same{}, IgnoreFilter: map[v4fieldpath.APIVersion]v4fieldpath.Filter{
		"v1": v4fieldpath.NewExcludeSetFilter(v4fieldpath.NewSet(v4fieldpath.MakePathOrDie("num"))),
	}}
	_, managers, err := u.Apply(yaml(t, `null`), yaml(t, `{s: x, num: 1}`), "v1", nil, "a", false)
	require.NoError(t, err)
	require.Equal(t, ".s", managers["a"].Set().String())
	_, managers, err = u.Update(yaml(t, `{s: x, num: 1}`), yaml(t, `{s: x, num: 2}`), "v1", managers, "b")
	require.NoError(t, err)
	require.NotContains(t, managers, "b", "nobody owns what is ignored")
}

func TestNoop(t *testing.T) {
	u := &smdv4.Updater{Converter: same{}}
	live := yaml(t, `{s: x}`)
	managers := v4fieldpath.ManagedFields{"b": entry("v1", true, "s")}
	object, after, err := u.Apply(live, yaml(t, `{s: x}`), "v1", managers, "a", false)
	require.NoError(t, err)
	require.Nil(t, object, "an object that equals live is none")
	require.Len(t, after, 2, "but the managers count")
	require.Len(t, managers, 1, "what is given stays as it is")
	require.Equal(t, managers["b"], after["b"], "an entry that did not change is the same")
}

// TestWarn: entries to whose version the object can't be converted are kept, and Warn is called.
func TestWarn(t *testing.T) {
	var told []string
	u := &smdv4.Updater{Converter: same{}, Warn: func(manager string, version v4fieldpath.APIVersion, err error) {
		told = append(told, manager+" at "+string(version)+": "+err.Error())
	}}
	managers := v4fieldpath.ManagedFields{"old": entry("gone", true, "num"), "other": entry("down", false, "num")}
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
	tree, err := smdv4.Tree(object)
	require.NoError(t, err)
	require.Contains(t, tree, "num", "and nothing is removed")
}

// flaky converts n times and then fails.
type flaky struct{ n *int }

func (f flaky) Convert(v *v4typed.TypedValue, _ v4fieldpath.APIVersion) (*v4typed.TypedValue, error) {
	if *f.n--; *f.n < 0 {
		return nil, errGone
	}
	return v, nil
}

func (f flaky) IsMissingVersionError(error) bool { return false }

// TestConversionsThatFail: whichever conversion fails, the write succeeds: either dropped fields are removed, or
// nothing is.
func TestConversionsThatFail(t *testing.T) {
	removed := 0
	for n := range 20 {
		left := n
		u := &smdv4.Updater{Converter: flaky{&left}, ReturnInputOnNoop: true}
		managers := v4fieldpath.ManagedFields{
			"a": entry("v2", true, "num"), "b": entry("v3", false, "s"), "c": entry("v2", false, "s"),
		}
		object, after, err := u.Apply(yaml(t, `{num: 1, s: x}`), yaml(t, `{labels: {a: b}}`), "v1", managers, "a", false)
		require.NoError(t, err)
		require.Contains(t, after, "b")
		tree, err := smdv4.Tree(object)
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
	u := &smdv4.Updater{Converter: same{}}
	ok := yaml(t, `{s: x}`)
	managers := v4fieldpath.ManagedFields{"a": entry("v2", true, "s")}
	_, _, err := u.ExtractApply(ok, ok, "v1", managers, "a")
	require.EqualError(t, err, `manager "a": its entry is of version "v2", want "v1"`)
	odd := v4fieldpath.ManagedFields{
		"a": v4fieldpath.NewVersionedSet(v4fieldpath.NewSet(v4fieldpath.Path{{}}), "v1", true),
	}
	_, _, err = u.ExtractApply(ok, ok, "v1", odd, "a")
	require.ErrorContains(t, err, "selects nothing")
	_, after, err := u.ExtractApply(yaml(t, `null`), ok, "v1", nil, "a")
	require.NoError(t, err)
	require.Contains(t, after, "a", "without an entry it is an apply")
	noType := v4typed.AsTypedUnvalidated(value.NewValueInterface(nil), ok.Schema(), thingParser.Type("nothing").TypeRef)
	_, err = u.ExtractItems(noType, v4fieldpath.NewSet(), false)
	require.ErrorContains(t, err, "no type called")
	_, _, err = u.ExtractApply(ok, noType, "v1", v4fieldpath.ManagedFields{"a": entry("v1", true, "s")}, "a")
	require.ErrorContains(t, err, "no type called")
}
