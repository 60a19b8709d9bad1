package applier_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/applier"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
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

// server keeps one object, as a real server does.
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

func TestApplier(t *testing.T) {
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
	require.Nil(t, r.Plan, "there is nothing to plan on")
	require.Equal(t, "101", r.Object.GetResourceVersion())
	first := r.Object

	r = apply(first, one)
	require.True(t, r.Skipped)
	require.Same(t, first, r.Object)
	require.Equal(t, plans.Unchanged, r.Plan.Outcome)
	require.Equal(t, applier.Stats{Planned: 1, Skipped: 1, Applied: 1}, a.Stats())

	r = apply(first, two)
	require.False(t, r.Skipped)
	require.Equal(t, plans.Changed, r.Plan.Outcome)
	second := r.Object

	// The cache still has the first object, on which this would change nothing.
	r = apply(first, one)
	require.False(t, r.Skipped, "the write that the cache has not seen is undone")
	require.Nil(t, r.Plan)
	third := r.Object
	require.Equal(t, "103", third.GetResourceVersion())
	r = apply(second, one)
	require.False(t, r.Skipped, "the cache is still behind")
	require.Equal(t, uint64(2), a.Stats().Behind)

	require.True(t, apply(third, one).Skipped)
	// Somebody else's write is newer than ours.
	_, err := s.apply(configMap(map[string]any{"other": "x"}), "you", false)
	require.NoError(t, err)
	require.True(t, apply(s.live.DeepCopy(), one).Skipped)
	require.Equal(t, applier.Stats{Planned: 4, Skipped: 3, Applied: 4, Behind: 2}, a.Stats())
	require.Equal(t, 4, s.requests)
}

// What can't be planned, or is in conflict, is for the server to answer.
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
	require.Equal(t, applier.Stats{Planned: 1, Applied: 2, Conflicts: 1, Failed: 1}, a.Stats())
	_, err = a.Apply(ctx, s, nil, nil)
	require.EqualError(t, err, "no intent")

	s.err = errors.New("down")
	_, err = a.Apply(ctx, s, s.live, configMap(map[string]any{"z": "2"}))
	require.EqualError(t, err, "down")
	s.err = nil
	r, err := a.Apply(ctx, s, s.live, configMap(map[string]any{"k": "1"}))
	require.NoError(t, err)
	require.Equal(t, plans.OwnershipOnly, r.Plan.Outcome, "a change of owners is written")
	require.False(t, r.Skipped)
}

func TestSubresource(t *testing.T) {
	s := &server{t: t}
	a := applier.New(fieldManager(t), applier.Options{Manager: "me", Subresource: "status"})
	_, err := a.Apply(context.Background(), s, nil, configMap(nil))
	require.NoError(t, err)
	require.Equal(t, []string{"status"}, s.sub)
}

// late answers with the resourceVersions of writes of which the answers overtook
// each other.
type late struct{ versions []string }

func (l *late) Apply(_ context.Context, _ string, obj *unstructured.Unstructured, _ metav1.ApplyOptions,
	_ ...string) (*unstructured.Unstructured, error) {
	obj.SetResourceVersion(l.versions[0])
	l.versions = l.versions[1:]
	return obj, nil
}

// The answer of a write that comes late does not make the cache look younger than it is.
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

// TestWritesAreForgotten: objects that are never applied again take no memory for ever, and the last writes are
// remembered.
func TestWritesAreForgotten(t *testing.T) {
	a := applier.New(nil, applier.Options{Manager: "m"})
	write := func(i int) *unstructured.Unstructured {
		intent := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		intent.SetName(fmt.Sprint(i))
		result, err := a.Apply(context.Background(), &late{versions: []string{"5"}}, nil, intent)
		require.NoError(t, err)
		return result.Object.(*unstructured.Unstructured)
	}
	var last *unstructured.Unstructured
	for i := range 3 * applier.MaxWritten {
		last = write(i)
		require.LessOrEqual(t, a.Remembered(), 2*applier.MaxWritten)
	}
	for _, row := range []struct {
		version string
		behind  uint64
	}{{"4", 1}, {"5", 1}, {"4", 1}} {
		cached := last.DeepCopy()
		cached.SetResourceVersion(row.version)
		_, err := a.Apply(context.Background(), &late{versions: []string{""}}, cached, last)
		require.NoError(t, err)
		require.Equal(t, row.behind, a.Stats().Behind, "of %s", row.version)
	}
}

// sink answers every apply with what it was sent.
type sink struct{}

func (sink) Apply(_ context.Context, _ string, obj *unstructured.Unstructured, _ metav1.ApplyOptions,
	_ ...string) (*unstructured.Unstructured, error) {
	return obj, nil
}

// An intent that was made in Go has an int easily, which a client sends as it is.
func TestNumbersOfGo(t *testing.T) {
	intent := configMap(map[string]any{"k": []any{map[string]any{"n": 3}}})
	r, err := applier.New(fieldManager(t), applier.Options{Manager: "me"}).Apply(context.Background(), sink{}, nil, intent)
	require.NoError(t, err)
	require.Equal(t, intent, r.Object)
	r.Object.(*unstructured.Unstructured).Object["data"].(map[string]any)["k"].([]any)[0].(map[string]any)["n"] = 4
	require.Equal(t, configMap(map[string]any{"k": []any{map[string]any{"n": 3}}}), intent, "what is sent is a copy")
}
