package e2e

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenure-ssa/tenure/controllerruntime"
)

// TestDryRunsAtRandom sends random writes to objects of each built-in kind and of a custom resource, all through a
// wrapped client. It sends each dry run through the wrapped client and through a plain client, even if the cache lags
// behind the writes. Both must return the same object or error. E2E_DURATION sets the duration.
func TestDryRunsAtRandom(t *testing.T) {
	documents := documentsBut(t, "Namespace", "CustomResourceDefinition")
	documents = append(documents, widget("w", map[string]any{"color": "red"}).Object)
	w := newWrapped(t, controllerruntime.Options{})
	dynamicClient, err := dynamic.NewForConfig(w.config)
	require.NoError(t, err)
	defineWidgets(t, dynamicClient)
	random := rand.New(rand.NewPCG(1, 2))
	rounds := 0
	for end := time.Now().Add(duration(t)); rounds < len(documents) || time.Now().Before(end); rounds++ {
		s := steps{t: t, w: w, document: documents[rounds%len(documents)]}
		s.do(0, 0)
		for range 24 {
			// Documents with few variants are written repeatedly, so that some dry runs are skipped.
			s.do(byte(random.IntN(32)), byte(random.IntN(40)*random.IntN(2)*random.IntN(2)))
		}
		s.remove()
		require.Zero(t, w.differences(t), "%s", s.document["kind"])
	}
	results := w.results(t)
	require.Positive(t, results["skipped"])
	t.Logf("%d rounds: %v", rounds, results)
}

// steps are the steps of a run, with one object.
type steps struct {
	t        *testing.T
	w        *wrapped
	document map[string]any
}

func (s steps) do(op, variant byte) {
	ctx, manager := s.t.Context(), client.FieldOwner([]string{"me", "other"}[int(op)/8%2])
	obj := s.variant(variant)
	switch op % 8 {
	case 0: // both clients return the same errors
		_ = s.w.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), manager, client.ForceOwnership)
	case 1:
		_ = s.w.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), manager)
	case 2:
		s.dryRun(variant, op/16%2 == 1)
	case 3:
		s.wait()
	case 4:
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"patched":"`+
			strings.Repeat("x", int(variant)%3)+`"}}}`))
		_ = s.w.Patch(ctx, obj, patch)
	case 5:
		live := s.named()
		if s.w.plain.Get(ctx, client.ObjectKeyFromObject(live), live) == nil {
			live.SetAnnotations(map[string]string{"updated": string('a' + rune(variant%3))})
			_ = s.w.Update(ctx, live)
		}
	case 6:
		s.remove()
	case 7:
		_ = s.w.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), statusOwner)
	}
}

var statusOwner = &client.SubResourceApplyOptions{ApplyOptions: client.ApplyOptions{FieldManager: "me"}}

// dryRun compares a dry run with both clients.
func (s steps) dryRun(variant byte, force bool) {
	for _, form := range []string{"apply", "patch"} {
		var objects []*unstructured.Unstructured
		var errs []error
		for _, c := range []client.Client{s.w, s.w.plain} {
			obj := s.variant(variant)
			options := []applyOption{client.DryRunAll, client.FieldOwner("me")}
			if force {
				options = append(options, client.ForceOwnership)
			}
			var err error
			if form == "apply" {
				err = c.Apply(s.t.Context(), client.ApplyConfigurationFromUnstructured(obj), applyOptions(options)...)
			} else {
				//lint:ignore SA1019 it is what is wrapped
				err = c.Patch(s.t.Context(), obj, client.Apply, patchOptions(options)...)
			}
			objects, errs = append(objects, timeless(obj)), append(errs, err)
		}
		require.Equal(s.t, message(errs[1]), message(errs[0]), "%s of %s", form, s.document["kind"])
		require.Equal(s.t, objects[1], objects[0], "%s of %s", form, s.document["kind"])
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// timeless returns an object without times, which differ between two responses. It returns nil for an object that would
// be created, because it has other generated values too.
func timeless(obj *unstructured.Unstructured) *unstructured.Unstructured {
	if obj.GetResourceVersion() == "" {
		return nil
	}
	entries := obj.GetManagedFields()
	for i := range entries {
		entries[i].Time = nil
	}
	slices.SortFunc(entries, func(a, b metav1.ManagedFieldsEntry) int { // they were sorted by time
		return strings.Compare(a.String(), b.String())
	})
	obj.SetManagedFields(entries)
	return obj
}

// wait waits until the cache has the current object. A controller of the server may write the object in the meantime.
func (s steps) wait() {
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		live := s.named()
		err := s.w.plain.Get(s.t.Context(), client.ObjectKeyFromObject(live), live)
		var cached client.Object = s.named()
		if known, err := scheme.Scheme.New(cached.GetObjectKind().GroupVersionKind()); err == nil {
			cached = known.(client.Object)
		}
		cachedErr := s.w.options.Cache.Get(s.t.Context(), client.ObjectKeyFromObject(live), cached)
		if (err == nil) == (cachedErr == nil) && cached.GetResourceVersion() == live.GetResourceVersion() {
			return
		}
		require.True(s.t, time.Now().Before(end), "%s: stored %q (%v), cached %q (%v)", s.document["kind"],
			live.GetResourceVersion(), err, cached.GetResourceVersion(), cachedErr)
	}
}

// remove deletes the object and its finalizers.
func (s steps) remove() {
	for range 3 {
		obj := s.named()
		if s.w.Delete(s.t.Context(), obj, client.GracePeriodSeconds(0)) != nil {
			return
		}
		_ = s.w.Patch(s.t.Context(), obj, client.RawPatch(types.MergePatchType,
			[]byte(`{"metadata":{"finalizers":null}}`)))
	}
}

// variant returns the document with another value at the place with this number; 0 returns the document itself.
func (s steps) variant(number byte) *unstructured.Unstructured {
	obj := s.named()
	obj.Object = runtime.DeepCopyJSON(s.document)
	obj.SetNamespace(s.namespace())
	if number == 0 {
		return obj
	}
	remaining := int(number)
	var visit func(value any, set func(any))
	visit = func(value any, set func(any)) {
		switch v := value.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				if name != "apiVersion" && name != "kind" && name != "name" && name != "namespace" {
					visit(v[name], func(other any) { v[name] = other })
				}
			}
			return
		case []any:
			for i := range v {
				visit(v[i], func(other any) { v[i] = other })
			}
			return
		case string:
			value = v + "x"
		case int64:
			value = v + 1
		case bool:
			value = !v
		}
		if remaining--; remaining == 0 {
			set(value)
		}
	}
	visit(obj.Object, func(any) {})
	return obj
}

func (s steps) named() *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	whole := &unstructured.Unstructured{Object: s.document}
	obj.SetGroupVersionKind(whole.GroupVersionKind())
	obj.SetName(whole.GetName())
	obj.SetNamespace(s.namespace())
	return obj
}

func (s steps) namespace() string {
	kind := (&unstructured.Unstructured{Object: s.document}).GroupVersionKind()
	mapping, err := s.w.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	require.NoError(s.t, err)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return metav1.NamespaceDefault
	}
	return ""
}
