package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// The numbers of clients, of objects to which all of them write, and of ways to write.
const (
	clients   = 64
	contended = 10
	ways      = 4
)

// A load is many clients that write to the same ConfigMaps. In each ConfigMap, each client has a member for each way to
// write, which it increases with each write. Updates also increase the counter of the ConfigMap, which all clients
// share.
type load struct {
	from string // the resourceVersion before the first write

	// excused reports whether an error leaves open if the write was done.
	excused func(error) bool

	lock         sync.Mutex
	acknowledged []write
	failed       []error
	interrupted  int // writes that ended with an excused error
	count        atomic.Int64
}

// write is an acknowledged write.
type write struct {
	object, version string
	member          string
	value           int
	server          int
}

func configMaps(t testing.TB, config *rest.Config) typedcorev1.ConfigMapInterface {
	maps, err := newConfigMaps(config)
	require.NoError(t, err)
	return maps
}

func newConfigMaps(config *rest.Config) (typedcorev1.ConfigMapInterface, error) {
	set, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return set.CoreV1().ConfigMaps(metav1.NamespaceDefault), nil
}

func objectName(i int) string { return fmt.Sprintf("object-%d", i) }

// newLoad creates the objects.
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

// run writes through the servers of configs until ctx ends, but at least once for each client and way. Clients start at
// different servers. A client whose write was interrupted continues with the next server.
func (l *load) run(t testing.TB, ctx context.Context, configs ...*rest.Config) {
	var wait sync.WaitGroup
	for c := range clients {
		var servers []typedcorev1.ConfigMapInterface
		for _, config := range configs {
			config = rest.CopyConfig(config)
			config.UserAgent = fmt.Sprintf("client-%d", c)
			servers = append(servers, configMaps(t, config))
		}
		wait.Go(func() {
			server := c
			for n := 0; n < ways || ctx.Err() == nil; n++ {
				if !l.write(servers, server%len(servers), c, n%ways, objectName((c+n/ways)%contended)) {
					server++
				}
			}
		})
	}
	wait.Wait()
}

var errStale = errors.New("the object was changed")

// write does one write through one of the servers. It returns false if the write was interrupted.
func (l *load) write(servers []typedcorev1.ConfigMapInterface, server, client, way int, object string) bool {
	maps := servers[server]
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
		out, err = maps.Patch(
			ctx,
			object,
			types.MergePatchType,
			fmt.Appendf(nil, `{"data":{%q:%q}}`, name, text),
			metav1.PatchOptions{},
		)
	case 2:
		out, err = maps.Patch(
			ctx,
			object,
			types.JSONPatchType,
			fmt.Appendf(nil, `[{"op":"add","path":"/data/%s","value":%q}]`, name, text),
			metav1.PatchOptions{},
		)
	default:
		out, err = readAndWrite(ctx, maps, object, name, text)
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	switch {
	case err == nil:
		l.acknowledged = append(l.acknowledged, write{object, out.ResourceVersion, name, value, server})
	case l.excused(err):
		l.interrupted++
		return false
	case !errors.Is(err, errStale):
		l.failed = append(l.failed, fmt.Errorf("%s of %s: %w", name, object, err))
	}
	return true
}

// readAndWrite reads an object and updates it, and retries a few times if another client was faster.
func readAndWrite(
	ctx context.Context,
	maps typedcorev1.ConfigMapInterface,
	object, name, text string,
) (*corev1.ConfigMap, error) {
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

// last writes each object after the load, and returns the versions. A watcher that has seen these versions has seen all
// writes.
func (l *load) last(t testing.TB, config *rest.Config) (versions []string) {
	for i := range contended {
		m, err := configMaps(t, config).Patch(t.Context(), objectName(i), types.MergePatchType,
			[]byte(`{"data":{"over":"true"}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		versions = append(versions, m.ResourceVersion)
	}
	return versions
}

// check compares the acknowledged writes, and the final objects at each server, with a history.
func (l *load) check(t testing.TB, h *history, configs ...*rest.Config) {
	for i, err := range l.failed {
		if i < 10 {
			t.Errorf("a write failed: %v", err)
		}
	}
	require.Empty(t, l.failed)
	require.Greater(t, len(l.acknowledged), clients)
	require.Empty(t, h.faults)
	updates := map[string]int{}
	for _, w := range l.acknowledged {
		event, ok := h.at(w.version)
		require.True(t, ok, "the write %v is not in the history", w)
		require.Equal(t, w.object, event.object)
		require.Equal(t, strconv.Itoa(w.value), event.changed[w.member], "the write %v is in the history as %v", w, event)
		if strings.HasSuffix(w.member, "-3") {
			updates[w.object]++
		}
	}
	for i := range contended {
		name := objectName(i)
		for _, config := range configs {
			m, err := configMaps(t, config).Get(t.Context(), name, metav1.GetOptions{})
			require.NoError(t, err)
			require.Equal(t, h.objects[name], m.Data, "the history ends with what is stored")
		}
		counted, err := strconv.Atoi(h.objects[name][counter])
		require.NoError(t, err)
		require.GreaterOrEqual(t, counted, updates[name], "an update was lost")
		if l.interrupted == 0 {
			require.Equal(t, updates[name], counted)
		}
	}
	t.Logf("%d writes acknowledged, %d interrupted, %d events", len(l.acknowledged), l.interrupted, len(h.events))
}

// checkEnd compares the stored objects with the acknowledged writes, without a history: the members of a client must
// have at least the acknowledged values.
func (l *load) checkEnd(t testing.TB, config *rest.Config) {
	require.Empty(t, l.failed)
	require.Greater(t, len(l.acknowledged), clients)
	stored := map[string]map[string]string{}
	for i := range contended {
		m, err := configMaps(t, config).Get(t.Context(), objectName(i), metav1.GetOptions{})
		require.NoError(t, err)
		stored[m.Name] = m.Data
	}
	updates := map[string]int{}
	for _, w := range l.acknowledged {
		value, err := strconv.Atoi(stored[w.object][w.member])
		require.NoError(t, err)
		require.GreaterOrEqual(t, value, w.value, "the write %v is lost", w)
		if strings.HasSuffix(w.member, "-3") {
			updates[w.object]++
		}
	}
	for object, n := range updates {
		counted, err := strconv.Atoi(stored[object][counter])
		require.NoError(t, err)
		require.GreaterOrEqual(t, counted, n, "an update was lost")
	}
	t.Logf("%d writes acknowledged, %d interrupted", len(l.acknowledged), l.interrupted)
}

// counts returns how many writes were acknowledged and interrupted so far.
func (l *load) counts() (acknowledged, interrupted int) {
	l.lock.Lock()
	defer l.lock.Unlock()
	return len(l.acknowledged), l.interrupted
}

// more waits until count more writes are acknowledged.
func (l *load) more(t *testing.T, count int) {
	current, _ := l.counts()
	for wanted := current + count; current < wanted; {
		before := current
		require.Eventually(t, func() bool {
			current, _ = l.counts()
			return current > before
		}, patience, tick, "writes go on")
	}
}

// unavailable reports whether an error is from a server whose store does not respond.
func unavailable(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code == http.StatusServiceUnavailable || code == http.StatusGatewayTimeout
}

// isStatus reports whether an error is a response of a server.
func isStatus(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}

// interrupted reports whether an error is from a client whose server was killed. Then it is not known whether the write
// was done.
func interrupted(err error) bool { return !isStatus(err) || unavailable(err) }
