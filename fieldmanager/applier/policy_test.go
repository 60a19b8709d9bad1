package applier_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/conflicts/policy"
	"github.com/tenure-ssa/tenure/fieldmanager/applier"
	"github.com/tenure-ssa/tenure/internal/fieldsv1"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// readable is a server whose object can be read without the cache.
type readable struct {
	*server
	reads int
	// meanwhile is called after each read: it makes the writes of others before the next apply.
	meanwhile func()
}

func (r *readable) Get(context.Context, string, metav1.GetOptions, ...string) (*unstructured.Unstructured, error) {
	r.reads++
	live := r.live.DeepCopy()
	if r.meanwhile != nil {
		r.meanwhile()
	}
	return live, nil
}

func (s *server) mustApply(manager string, data map[string]any) {
	_, err := s.apply(configMap(data), manager, true)
	require.NoError(s.t, err)
}

// ownersOf returns the owners of a key of the data, in the order of the entries.
func ownersOf(t *testing.T, obj applier.Object, key string) (owners []string) {
	for _, e := range obj.GetManagedFields() {
		set, err := fieldpath.Parse(fieldsv1.Bytes(e.FieldsV1))
		require.NoError(t, err)
		if set.Has(fieldpath.NewPath("data", key)) {
			owners = append(owners, e.Manager)
		}
	}
	return owners
}

func TestResolve(t *testing.T) {
	for _, row := range []struct {
		name, why string
		rules     []policy.Rule
		want      map[string]any // the expected data of the stored object
		owners    map[string][]string
		conflict  bool
	}{
		{
			name: "give up", why: "the other keeps its value",
			rules:  []policy.Rule{{Decision: conflicts.GiveUp}},
			want:   map[string]any{"a": "theirs", "b": "theirs", "c": "mine"},
			owners: map[string][]string{"a": {"you"}, "b": {"you"}, "c": {"me"}},
		},
		{
			name: "force", why: "the field changes hands",
			rules:  []policy.Rule{{Decision: conflicts.Force}},
			want:   map[string]any{"a": "mine", "b": "mine", "c": "mine"},
			owners: map[string][]string{"a": {"me"}, "b": {"me"}, "c": {"me"}},
		},
		{
			name: "share", why: "both own the value of the other",
			rules:  []policy.Rule{{Decision: conflicts.Share}},
			want:   map[string]any{"a": "theirs", "b": "theirs", "c": "mine"},
			owners: map[string][]string{"a": {"me", "you"}, "b": {"me", "you"}, "c": {"me"}},
		},
		{
			name: "by path", why: "the first rule that is about a conflict decides it",
			rules: []policy.Rule{
				{Fields: []string{".data.a"}, Decision: conflicts.Force},
				{Fields: []string{".data"}, Managers: []string{"you"}, Decision: conflicts.GiveUp},
			},
			want:   map[string]any{"a": "mine", "b": "theirs", "c": "mine"},
			owners: map[string][]string{"a": {"me"}, "b": {"you"}, "c": {"me"}},
		},
		{
			name: "by another owner", why: "no rule is about the conflicts",
			rules:    []policy.Rule{{Managers: []string{"somebody"}, Decision: conflicts.Force}},
			want:     map[string]any{"a": "theirs", "b": "theirs"},
			conflict: true,
		},
		{
			name: "one of two", why: "what is not decided is for the server to answer, whole",
			rules:    []policy.Rule{{Fields: []string{".data.a"}, Decision: conflicts.Force}},
			want:     map[string]any{"a": "theirs", "b": "theirs"},
			conflict: true,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, isCached := range []bool{true, false} {
					s := &readable{server: &server{t: t}}
					s.mustApply("you", map[string]any{"a": "theirs", "b": "theirs"})
					var cached applier.Object
					if isCached {
						cached = s.live.DeepCopy()
					}
					rules := &policy.Policy{Rules: row.rules}
					resolve := func(o *metav1.PartialObjectMetadata, cs conflicts.Conflicts) []conflicts.Decision {
						require.Equal(t, "ConfigMap", o.Kind)
						return rules.Resolve(o, cs)
					}
					a := applier.New(fieldManager(t), applier.Options{Manager: "me", Resolve: resolve})
					intent := configMap(map[string]any{"a": "mine", "b": "mine", "c": "mine"})
					given := intent.DeepCopy()
					result, err := a.Apply(t.Context(), s, cached, intent)
					require.Equal(t, given, intent)
					require.Equal(t, row.want, s.live.Object["data"], row.why)
					if row.conflict {
						require.True(t, apierrors.IsConflict(err), row.why)
						require.EqualValues(t, 1, a.Stats().Conflicts)
						require.Zero(t, a.Stats().Resolved)
						continue
					}
					require.NoError(t, err)
					require.NotNil(t, result.Resolution)
					require.EqualValues(t, 1, a.Stats().Resolved)
					require.Contains(t, result.String(), "sent, changed: added .data.c")
					require.Equal(t, result.Resolution.Force, strings.HasSuffix(result.String(), ", forced"))
					for key, owners := range row.owners {
						require.Equal(t, owners, ownersOf(t, result.Object, key), row.why)
					}
					if isCached {
						require.Zero(t, s.reads, "the conflicts were known from the cache")
					}

					// The same intent has the same decisions, and needs no request once the server returned the same
					// object.
					for range 2 {
						result, err = a.Apply(t.Context(), s, s.live.DeepCopy(), intent)
						require.NoError(t, err)
						time.Sleep(2 * time.Second) // another applier wrote in the same second
					}
					requests := s.requests
					result, err = a.Apply(t.Context(), s, s.live.DeepCopy(), intent)
					require.NoError(t, err)
					require.True(t, result.Skipped)
					require.Equal(t, requests, s.requests)
				}
			})
		})
	}
}

// Other managers may write between the read and the apply: then the object is read again, at most three times.
func TestResolveAgain(t *testing.T) {
	rules := &policy.Policy{Rules: []policy.Rule{
		{Fields: []string{".data.a"}, Decision: conflicts.Force}, {Decision: conflicts.GiveUp},
	}}
	for _, row := range []struct {
		writes, reads int
		fails         bool
	}{{1, 2, false}, {2, 3, false}, {100, 3, true}} {
		s := &readable{server: &server{t: t}}
		s.mustApply("you", map[string]any{"a": "theirs", "b": "theirs"})
		left := row.writes
		s.meanwhile = func() {
			if left--; left >= 0 {
				s.live.SetResourceVersion(s.live.GetResourceVersion() + "0")
				s.mustApply("other", map[string]any{"c": "theirs"})
			}
		}
		// Some conflicts are forced and some are not, so the intent has live's resourceVersion, which this server
		// checks.
		checked := &checkedServer{s}
		a := applier.New(fieldManager(t), applier.Options{Manager: "me", Resolve: rules.Resolve})
		_, err := a.Apply(t.Context(), checked, nil, configMap(map[string]any{"a": "mine", "b": "mine"}))
		require.Equal(t, row.reads, s.reads)
		require.Equal(t, row.fails, apierrors.IsConflict(err), err)
	}
}

// checkedServer rejects an intent whose resourceVersion is not live's.
type checkedServer struct{ *readable }

func (s *checkedServer) Apply(
	ctx context.Context, name string, obj *unstructured.Unstructured, options metav1.ApplyOptions, sub ...string,
) (*unstructured.Unstructured, error) {
	if version := obj.GetResourceVersion(); version != "" && version != s.live.GetResourceVersion() {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, name, nil)
	}
	return s.readable.Apply(ctx, name, obj, options, sub...)
}

// If a policy can't be carried out, Apply returns an error and sends nothing.
func TestResolveThatCannotBe(t *testing.T) {
	s := &server{t: t}
	s.mustApply("you", map[string]any{"a": "theirs"})
	s.mustApply("they", map[string]any{"a": "theirs"})
	decisions := []conflicts.Decision{conflicts.Force, conflicts.GiveUp}
	a := applier.New(fieldManager(t), applier.Options{
		Manager: "me", Resolve: func(*metav1.PartialObjectMetadata, conflicts.Conflicts) []conflicts.Decision {
			return decisions
		},
	})
	requests := s.requests
	_, err := a.Apply(t.Context(), s, s.live, configMap(map[string]any{"a": "mine"}))
	require.ErrorContains(t, err, "resolve conflicts: ")
	require.Equal(t, requests, s.requests)
	require.EqualValues(t, 1, a.Stats().Failed)
	decisions = decisions[:1]
	_, err = a.Apply(t.Context(), s, s.live, configMap(map[string]any{"a": "mine"}))
	require.EqualError(t, err, "resolve conflicts: expected 2 decisions about conflicts, got 1")
}

// versioned is a server on which a manager owns .data.a at another version, so that no plan can find a conflict.
type versioned struct {
	*readable
	sent []*unstructured.Unstructured
}

func (s *versioned) Apply(
	ctx context.Context, name string, obj *unstructured.Unstructured, options metav1.ApplyOptions, sub ...string,
) (*unstructured.Unstructured, error) {
	s.sent = append(s.sent, obj)
	entries, err := managedfields.Read(s.live)
	require.NoError(s.t, err)
	for _, e := range entries {
		a := fieldpath.NewPath("data", "a")
		if _, has, _ := unstructured.NestedString(obj.Object, "data", "a"); has && e.APIVersion != "v1" && e.Owned().Has(a) {
			return nil, conflicts.Conflicts{{Path: a, Owner: e.Key, APIVersion: e.APIVersion}}
		}
	}
	return s.readable.Apply(ctx, name, obj, options, sub...)
}

// A conflict that the server found at another version is decided without asking the server again, as long as its owner
// owns the field. Conflicts at the version of the intent are not remembered, because a plan finds them.
func TestResolveOfOtherVersions(t *testing.T) {
	rules := &policy.Policy{Rules: []policy.Rule{{Fields: []string{".data.a"}, Decision: conflicts.GiveUp}}}
	intent := configMap(map[string]any{"a": "mine", "b": "mine"})
	for _, row := range []struct {
		name, version string
		meanwhile     func(*versioned)
		// sent has an element for each apply after the first: whether the intent contains a.
		sent []bool
	}{
		{"it owns it still", "v2", func(*versioned) {}, []bool{false}},
		{"it owns it at a third version", "v2", func(s *versioned) { s.own("you", "v3", "a") }, []bool{true, false}},
		{"it owns something else", "v2", func(s *versioned) { s.own("you", "v2", "c") }, []bool{true}},
		{"another one owns it", "v2", func(s *versioned) { s.own("they", "v2", "a") }, []bool{true, false}},
		{"another conflict at the version of the intent", "v1", func(s *versioned) {
			s.mustApply("they", map[string]any{"b": "theirs"})
		}, []bool{true}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := &versioned{readable: &readable{server: &server{t: t, live: configMap(map[string]any{"a": "theirs"})}}}
			s.own("you", row.version, "a")
			a := applier.New(fieldManager(t), applier.Options{Manager: "me", Resolve: rules.Resolve})
			_, err := a.Apply(t.Context(), s, nil, intent)
			require.NoError(t, err)
			require.Len(t, s.sent, 2)
			row.meanwhile(s)
			s.sent = nil
			_, err = a.Apply(t.Context(), s, s.live.DeepCopy(), intent)
			if row.version == "v1" {
				require.True(t, apierrors.IsConflict(err), "b is not decided")
			} else {
				require.NoError(t, err)
			}
			var sent []bool
			for _, obj := range s.sent {
				_, has, err := unstructured.NestedString(obj.Object, "data", "a")
				require.NoError(t, err)
				sent = append(sent, has)
			}
			require.Equal(t, row.sent, sent)
		})
	}
}

// own makes a manager own only one key of the data, at a version.
func (s *versioned) own(manager, version, key string) {
	s.live.SetUID("uid")
	s.live.SetResourceVersion(s.live.GetResourceVersion() + "9")
	fields := `{"f:data":{"f:` + key + `":{}}}`
	s.live.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: version, FieldsType: "FieldsV1",
		FieldsV1: fieldsv1.New(fields),
	}})
}
