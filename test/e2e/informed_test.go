package e2e

import (
	"context"
	"fmt"
	"maps"
	"path"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// informed contains the events that an informer of ConfigMaps passes to its handler.
type informed struct {
	store cache.Store

	lock   sync.Mutex
	events []seen
	faults []string
}

// inform starts an informer, and returns when it has listed the objects. Nobody may write during that time.
func inform(t *testing.T, config *rest.Config) *informed {
	set, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	factory := informers.NewSharedInformerFactoryWithOptions(set, 0, informers.WithNamespace(metav1.NamespaceDefault))
	informer := factory.Core().V1().ConfigMaps().Informer()
	i := &informed{store: informer.GetStore()}
	handler, err := informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(obj any, isInInitialList bool) { i.add(watch.Added, obj, isInInitialList) },
		UpdateFunc: func(_, obj any) { i.add(watch.Modified, obj, false) },
		DeleteFunc: func(obj any) { i.add(watch.Deleted, obj, false) },
	})
	require.NoError(t, err)
	factory.Start(ctx.Done())
	t.Cleanup(factory.Shutdown)
	t.Cleanup(cancel)
	require.True(t, cache.WaitForCacheSync(t.Context().Done(), handler.HasSynced))
	return i
}

func (i *informed) add(kind watch.EventType, obj any, isFirst bool) {
	i.lock.Lock()
	defer i.lock.Unlock()
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	m, ok := obj.(*corev1.ConfigMap)
	if !ok {
		i.faults = append(i.faults, fmt.Sprintf("%s of a %T", kind, obj))
		return
	}
	e := seen{version: number(m.ResourceVersion), kind: kind, object: m.Name}
	for member, value := range m.Data {
		e.sum ^= sumOf(member, value)
	}
	if !isFirst {
		i.events = append(i.events, e)
	}
}

// requireState waits until the informer has the final objects of the history. An informer whose server is killed in the
// middle of an event lists again, skips events, and may report an unchanged object again. But it must not report an
// older version of an object, or an event that did not happen.
func (i *informed) requireState(t *testing.T, want *history) {
	require.Eventually(t, func() bool {
		held := 0
		for _, obj := range i.store.List() {
			if m := obj.(*corev1.ConfigMap); maps.Equal(want.objects[m.Name], m.Data) {
				held++
			}
		}
		return held == len(want.objects) && want.holds(i.store.ListKeys())
	}, patience, tick, "the informer holds what is stored")
	i.lock.Lock()
	defer i.lock.Unlock()
	require.Empty(t, i.faults)
	latest := map[string]int64{}
	for _, e := range i.events {
		if e.kind == watch.Deleted {
			delete(latest, e.object)
			continue
		}
		require.GreaterOrEqual(t, e.version, latest[e.object], "the informer goes back: %v", e)
		latest[e.object] = e.version
		is, ok := want.at(strconv.FormatInt(e.version, 10))
		require.True(t, ok, "the informer tells %v", e)
		require.Equal(t, is.object, e.object)
		require.Equal(t, is.sum, e.sum, "%v of the informer is %v", e, is)
	}
}

// holds reports whether all objects of the load among keys exist in the history.
func (h *history) holds(keys []string) bool {
	for _, key := range keys {
		if _, ok := h.objects[path.Base(key)]; !ok && strings.Contains(key, passing) {
			return false
		}
	}
	return true
}
