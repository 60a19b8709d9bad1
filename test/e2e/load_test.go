package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// How many clients write to how many objects, in how many ways.
const (
	clients   = 64
	contended = 10
	ways      = 4
)

// A load is many clients that write to the same objects, ConfigMaps. Each client
// has members of its own in each of them, one for each way to write, that it
// raises by one with every write; and an update raises the object's counter too,
// which all share.
type load struct {
	from string // the resourceVersion before the first write

	// excused are errors after which it is not known whether a write was done.
	excused func(error) bool

	lock         sync.Mutex
	acknowledged []write
	failed       []error
	interrupted  int // writes that ended with an excused error
	count        atomic.Int64
}

// write is one that was acknowledged, and what it wrote.
type write struct {
	object, version string
	member          string
	value           int
}

func configMaps(t testing.TB, config *rest.Config) typedcorev1.ConfigMapInterface {
	set, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return set.CoreV1().ConfigMaps(metav1.NamespaceDefault)
}

func objectName(i int) string { return fmt.Sprintf("object-%d", i) }

const counter = "count"

// newLoad makes the objects.
func newLoad(t testing.TB, config *rest.Config) *load {
	maps := configMaps(t, config)
	l := &load{excused: func(error) bool { return false }}
	for i := range contended {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: objectName(i)}, Data: map[string]string{counter: "0"}}
		made, err := maps.Create(t.Context(), m, metav1.CreateOptions{})
		require.NoError(t, err)
		if i == 0 {
			l.from = made.ResourceVersion
		}
	}
	return l
}

// run writes through each of configs, by turns, until ctx ends, and each client in
// each way at least once.
func (l *load) run(t testing.TB, ctx context.Context, configs ...*rest.Config) {
	var wait sync.WaitGroup
	for c := range clients {
		config := rest.CopyConfig(configs[c%len(configs)])
		config.UserAgent = fmt.Sprintf("client-%d", c)
		maps := configMaps(t, config)
		wait.Go(func() {
			for n := 0; n < ways || ctx.Err() == nil; n++ {
				l.write(maps, c, n%ways, objectName((c+n/ways)%contended))
			}
		})
	}
	wait.Wait()
}

// member is a member of an object's data.
type member struct{ object, name string }

var errStale = errors.New("the object was changed")

// write does one write.
func (l *load) write(maps typedcorev1.ConfigMapInterface, client, way int, object string) {
	name := fmt.Sprintf("c%d-%d", client, way)
	value := int(l.count.Add(1))
	ctx := context.Background()
	text := strconv.Itoa(value)
	var out *corev1.ConfigMap
	var err error
	switch way {
	case 0:
		intent := corev1apply.ConfigMap(object, metav1.NamespaceDefault).WithData(map[string]string{name: text})
		out, err = maps.Apply(ctx, intent, metav1.ApplyOptions{FieldManager: fmt.Sprintf("applier-%d", client)})
	case 1:
		out, err = maps.Patch(ctx, object, types.MergePatchType, fmt.Appendf(nil, `{"data":{%q:%q}}`, name, text), metav1.PatchOptions{})
	case 2:
		out, err = maps.Patch(ctx, object, types.JSONPatchType, fmt.Appendf(nil, `[{"op":"add","path":"/data/%s","value":%q}]`, name, text), metav1.PatchOptions{})
	default:
		out, err = readAndWrite(ctx, maps, object, name, text)
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	switch {
	case err == nil:
		l.acknowledged = append(l.acknowledged, write{object, out.ResourceVersion, name, value})
	case l.excused(err):
		l.interrupted++
	case !errors.Is(err, errStale):
		l.failed = append(l.failed, fmt.Errorf("%s of %s: %w", name, object, err))
	}
}

// readAndWrite reads an object and writes it back, until nobody was faster; a few times.
func readAndWrite(ctx context.Context, maps typedcorev1.ConfigMapInterface, object, name, text string) (*corev1.ConfigMap, error) {
	for range 20 {
		m, err := maps.Get(ctx, object, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		count, err := strconv.Atoi(m.Data[counter])
		if err != nil {
			return nil, err
		}
		m.Data[counter], m.Data[name] = strconv.Itoa(count+1), text
		out, err := maps.Update(ctx, m, metav1.UpdateOptions{})
		if !apierrors.IsConflict(err) {
			return out, err
		}
	}
	return nil, errStale
}

// history is what a watcher saw: the data of objects, by the resourceVersion of
// each write.
type history struct {
	order []string
	data  map[string]seen
}

type seen struct {
	object string
	data   map[string]string
}

// watchAll sees the writes from a resourceVersion on, until it has seen the one of
// a last version, which it is told on until.
func watchAll(t testing.TB, config *rest.Config, from string, until <-chan string) *history {
	w, err := configMaps(t, config).Watch(t.Context(), metav1.ListOptions{ResourceVersion: from})
	require.NoError(t, err)
	defer w.Stop()
	h := &history{data: map[string]seen{}}
	last := ""
	for {
		if last != "" && h.has(last) {
			return h
		}
		select {
		case last = <-until:
			until = nil
		case event, ok := <-w.ResultChan():
			if !ok || event.Type == watch.Error {
				t.Errorf("the watch ended: %v", event.Object)
				return h
			}
			m := event.Object.(*corev1.ConfigMap)
			h.order = append(h.order, m.ResourceVersion)
			h.data[m.ResourceVersion] = seen{m.Name, m.Data}
		}
	}
}

func (h *history) has(version string) bool {
	_, ok := h.data[version]
	return ok
}

// last writes an object when the load is over, and returns its version: who has
// seen that has seen everything.
func last(t testing.TB, config *rest.Config) string {
	m, err := configMaps(t, config).Patch(t.Context(), objectName(0), types.MergePatchType, []byte(`{"data":{"over":"true"}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	return m.ResourceVersion
}

// check holds what was acknowledged against what a watcher saw, and what is there.
func (l *load) check(t testing.TB, config *rest.Config, h *history) {
	for i, err := range l.failed {
		if i < 10 {
			t.Errorf("a write failed: %v", err)
		}
	}
	require.Empty(t, l.failed)
	require.Greater(t, len(l.acknowledged), clients)

	// Every acknowledged write is in the history, at its version.
	latest := map[member]int{}
	for _, w := range l.acknowledged {
		require.True(t, h.has(w.version), "the write %v was not seen", w)
		at := h.data[w.version]
		require.Equal(t, w.object, at.object)
		require.Equal(t, strconv.Itoa(w.value), at.data[w.member], "the write %v was seen as something else", w)
		key := member{w.object, w.member}
		latest[key] = max(latest[key], w.value)
	}
	// No write undoes another one: nothing falls, and the counter takes no leap.
	values := map[member]int{}
	updates, counted := map[string]int{}, map[string]int{}
	for _, w := range l.acknowledged {
		if w.member[len(w.member)-1] == '3' {
			updates[w.object]++
		}
	}
	before := 0
	for _, version := range h.order {
		n, err := strconv.Atoi(version)
		require.NoError(t, err)
		require.Greater(t, n, before, "versions are seen in their order, each once")
		before = n
		at := h.data[version]
		for name, text := range at.data {
			if name == "over" {
				continue
			}
			value, err := strconv.Atoi(text)
			require.NoError(t, err)
			key := member{at.object, name}
			require.GreaterOrEqual(t, value, values[key], "%s of %s was undone at %s", name, at.object, version)
			if name == counter {
				require.LessOrEqual(t, value, values[key]+1)
				counted[at.object] = value
			}
			values[key] = value
		}
		for key := range values {
			if key.object == at.object {
				require.Contains(t, at.data, key.name, "%s was lost at %s", key.name, version)
			}
		}
	}
	maps := configMaps(t, config)
	for i := range contended {
		name := objectName(i)
		m, err := maps.Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		require.GreaterOrEqual(t, counted[name], updates[name], "an update was lost")
		if l.interrupted == 0 {
			require.Equal(t, updates[name], counted[name])
		}
		require.Equal(t, strconv.Itoa(counted[name]), m.Data[counter])
		for key, value := range latest {
			if key.object == name {
				have, err := strconv.Atoi(m.Data[key.name])
				require.NoError(t, err)
				require.GreaterOrEqual(t, have, value, "the last write of %v was lost", key)
			}
		}
	}
	t.Logf("%d writes acknowledged, %d interrupted", len(l.acknowledged), l.interrupted)
}

// unavailable are the errors of a server whose store does not answer.
func unavailable(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code == http.StatusServiceUnavailable || code == http.StatusGatewayTimeout
}

// isStatus reports whether an error is an answer of a server.
func isStatus(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}
