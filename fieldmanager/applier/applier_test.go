package applier_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/applier"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

func fieldManager(t testing.TB) *fieldmanager.FieldManager {
	m, err := fieldmanager.New(
		schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
		openapi.Builtin(),
		fieldmanager.Options{},
	)
	require.NoError(t, err)
	return m
}

func configMap(data map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "a", "namespace": "default"}, "data": data}}
}

// server stores one object, like a real server.
type server struct {
	t        testing.TB
	mu       sync.Mutex
	live     *unstructured.Unstructured
	requests int
	sub      []string
	err      error
}

func (s *server) Apply(_ context.Context, name string, obj *unstructured.Unstructured, options metav1.ApplyOptions,
	sub ...string) (*unstructured.Unstructured, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	s.sub = sub
	if s.err != nil {
		return nil, s.err
	}
	require.Equal(s.t, "a", name)
	return s.apply(obj, options.FieldManager, options.Force)
}

func (s *server) apply(obj *unstructured.Unstructured, manager string, force bool) (*unstructured.Unstructured, error) {
	var live runtime.Object
	if s.live != nil {
		live = s.live
	}
	m := fieldManager(s.t)
	plan, err := plans.New(context.Background(), m, live, obj, plans.Options{Manager: manager, Force: force})
	if err != nil {
		return nil, err
	}
	switch plan.Outcome {
	case plans.Conflict:
		return nil, plan.Conflicts
	case plans.Unchanged:
		return s.live.DeepCopy(), nil
	}
	version := 100
	if s.live != nil {
		version, _ = strconv.Atoi(s.live.GetResourceVersion())
	}
	s.live = plan.Object.(*unstructured.Unstructured).DeepCopy()
	s.live.SetUID("uid")
	s.live.SetResourceVersion(strconv.Itoa(version + 1))
	return s.live.DeepCopy(), nil
}

func TestApplier(t *testing.T) { synctest.Test(t, testApplier) }

func testApplier(t *testing.T) {
	ctx := context.Background()
	s := &server{t: t}
	a := applier.New(fieldManager(t), applier.Options{Manager: "me", Force: true})
	apply := func(cached applier.Object, intent *unstructured.Unstructured) applier.Result {
		given := intent.DeepCopy()
		r, err := a.Apply(ctx, s, cached, intent)
		require.NoError(t, err)
		require.Equal(t, given, intent)
		return r
	}
	one, two := configMap(map[string]any{"k": "1"}), configMap(map[string]any{"k": "2"})

	r := apply(nil, one)
	require.False(t, r.Skipped)
	require.Equal(t, "101", r.Object.GetResourceVersion())
	first := r.Object

	// The server returned another object than this one for the intent.
	require.False(t, apply(first, one).Skipped)
	r = apply(first, one)
	require.True(t, r.Skipped)
	require.Equal(t, "skipped", r.String())
	require.Same(t, first, r.Object)
	require.Equal(t, applier.Stats{Skipped: 1, Sent: 2}, a.Stats())

	r = apply(first, two)
	require.False(t, r.Skipped)
	require.Equal(t, "sent", r.String())
	second := r.Object

	// The cache still has the first object, which this intent would not change.
	r = apply(first, one)
	require.False(t, r.Skipped, "the write that the cache has not seen is undone")
	third := r.Object
	require.Equal(t, "103", third.GetResourceVersion())
	r = apply(second, one)
	require.False(t, r.Skipped, "the cache is still behind")

	require.True(t, apply(third, one).Skipped, "the same object as the first, but for its resourceVersion")
	// A write by another manager results in another object.
	_, err := s.apply(configMap(map[string]any{"other": "x"}), "you", false)
	require.NoError(t, err)
	require.False(t, apply(s.live.DeepCopy(), one).Skipped)
	time.Sleep(2 * time.Second) // another applier wrote in the same second
	require.False(t, apply(s.live.DeepCopy(), one).Skipped)
	require.True(t, apply(s.live.DeepCopy(), one).Skipped)
	// An object that was deleted and created again has the same name but is another object.
	again := s.live.DeepCopy()
	again.SetUID("other")
	require.False(t, apply(again, one).Skipped)
	require.False(t, apply(s.live.DeepCopy(), two).Skipped)
	a.SetFieldManager(fieldManager(t))
	before := s.live.DeepCopy()
	require.False(t, apply(before, two).Skipped)
	require.True(t, apply(before, two).Skipped)
	a.SetFieldManager(fieldManager(t))
	require.False(t, apply(before, two).Skipped, "of another definition")
}

// Applies that can't be planned, or are in conflict, are sent, and the server returns the error.
func TestWhatIsForTheServer(t *testing.T) {
	ctx := context.Background()
	s := &server{t: t}
	_, err := s.apply(configMap(map[string]any{"k": "1"}), "you", false)
	require.NoError(t, err)
	a := applier.New(fieldManager(t), applier.Options{Manager: "me"})

	_, err = a.Apply(ctx, s, s.live, configMap(map[string]any{"k": "2"}))
	require.True(t, apierrors.IsConflict(err))
	_, err = a.Apply(ctx, s, s.live, configMap(map[string]any{"k": int64(2)}))
	require.ErrorContains(t, err, "expected string")
	require.Equal(t, 2, s.requests)
	require.Equal(t, applier.Stats{Sent: 2, Conflicts: 1, Failed: 1}, a.Stats())
	_, err = a.Apply(ctx, s, nil, nil)
	require.EqualError(t, err, "expected an intent, got nil")
	_, err = applier.New(fieldManager(t), applier.Options{}).Apply(ctx, s, nil, configMap(nil))
	require.EqualError(t, err, "options: expected the name of a field manager")
	for _, none := range []applier.Object{(*unstructured.Unstructured)(nil), (*metav1.PartialObjectMetadata)(nil)} {
		_, err = a.Apply(ctx, s, none, configMap(map[string]any{"k": "2"}))
		require.True(t, apierrors.IsConflict(err), "%T is no object", none)
	}

	s.err = errors.New("down")
	_, err = a.Apply(ctx, s, s.live, configMap(map[string]any{"z": "2"}))
	require.EqualError(t, err, "down")
	s.err = nil
	r, err := a.Apply(ctx, s, s.live, configMap(map[string]any{"k": "1"}))
	require.NoError(t, err)
	require.False(t, r.Skipped, "a change of owners is written")
}

func TestSubresource(t *testing.T) {
	s := &server{t: t}
	a := applier.New(fieldManager(t), applier.Options{Manager: "me", Subresource: "status"})
	_, err := a.Apply(context.Background(), s, nil, configMap(nil))
	require.NoError(t, err)
	require.Equal(t, []string{"status"}, s.sub)
}

// TestStatusOfOthers: an apply that does not change the status is skipped, whatever the status of the object; an apply
// to the status subresource is sent.
func TestStatusOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for subresource, reset := range map[string]string{"": "status", "status": "data"} {
			m, err := fieldmanager.New(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, openapi.Builtin(),
				fieldmanager.Options{ResetFields: map[string]fieldpath.Filter{
					"v1": fieldpath.Excluding{Set: fieldpath.NewSet(fieldpath.NewPath(reset))},
				}})
			require.NoError(t, err)
			s := &server{t: t}
			a := applier.New(m, applier.Options{Manager: "me", Subresource: subresource})
			intent := configMap(map[string]any{"k": "v"})
			var cached *unstructured.Unstructured
			for range 3 {
				_, err := a.Apply(t.Context(), s, cached, intent)
				require.NoError(t, err)
				cached = s.live.DeepCopy()
				time.Sleep(2 * time.Second)
			}
			cached.Object["status"] = map[string]any{"ready": true}
			r, err := a.Apply(t.Context(), s, cached, intent)
			require.NoError(t, err)
			require.Equal(t, subresource == "", r.Skipped, "through %q", subresource)
		}
	})
}

// late is a server whose responses arrive in another order than their writes; versions are their resourceVersions.
type late struct{ versions []string }

func (l *late) Apply(_ context.Context, _ string, obj *unstructured.Unstructured, _ metav1.ApplyOptions,
	_ ...string) (*unstructured.Unstructured, error) {
	obj.SetResourceVersion(l.versions[0])
	l.versions = l.versions[1:]
	return obj, nil
}

// The late response of an older write does not make an older cached object seem current.
func TestAnswersThatComeLate(t *testing.T) {
	ctx := context.Background()
	s := &server{t: t}
	a := applier.New(fieldManager(t), applier.Options{Manager: "me"})
	intent := configMap(map[string]any{"k": "1"})
	r, err := a.Apply(ctx, s, nil, intent)
	require.NoError(t, err)
	cached := r.Object
	l := &late{versions: []string{"107", "105"}}
	for range 2 {
		_, err = a.Apply(ctx, l, nil, intent)
		require.NoError(t, err)
	}
	cached.SetResourceVersion("106")
	r, err = a.Apply(ctx, s, cached, intent)
	require.NoError(t, err)
	require.False(t, r.Skipped, "the cache lacks the write that came to 107")
}

// sink is a server that returns each intent as the stored object.
type sink struct{}

func (sink) Apply(_ context.Context, _ string, obj *unstructured.Unstructured, _ metav1.ApplyOptions,
	_ ...string) (*unstructured.Unstructured, error) {
	return obj, nil
}

// An intent that is written in Go may contain an int; a client sends it unchanged.
func TestNumbersOfGo(t *testing.T) {
	intent := configMap(map[string]any{"k": []any{map[string]any{"n": 3}}})
	r, err := applier.New(fieldManager(t), applier.Options{Manager: "me"}).Apply(context.Background(), sink{}, nil, intent)
	require.NoError(t, err)
	require.Equal(t, intent, r.Object)
	r.Object.(*unstructured.Unstructured).Object["data"].(map[string]any)["k"].([]any)[0].(map[string]any)["n"] = 4
	require.Equal(t, configMap(map[string]any{"k": []any{map[string]any{"n": 3}}}), intent, "what is sent is a copy")
}
