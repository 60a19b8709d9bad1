package watchcache

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
)

// plain is a strategy of objects that are nothing but metadata.
type plain struct{ resources.Strategy }

func (*plain) SelectableFields(obj resources.Object) fields.Set {
	return fields.Set{"node": obj.GetAnnotations()["node"], "metadata.name": obj.GetName()}
}

func decode(_ resources.Strategy, record storage.Record) (resources.Object, error) {
	obj := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(record.Value, obj); err != nil {
		return nil, err
	}
	return obj, nil
}

// read returns what selectors need of some objects.
func read(stored []byte, withFields bool) (labels.Set, fields.Set, bool) {
	obj, err := decode(nil, storage.Record{Value: stored})
	if err != nil || len(obj.GetName())%2 == 0 {
		return nil, nil, false
	}
	if !withFields {
		return obj.GetLabels(), nil, true
	}
	return obj.GetLabels(), (*plain)(nil).SelectableFields(obj), true
}

func value(name, color, node string) []byte {
	const format = `{"metadata":{"name":%q,"labels":{"color":%q},"annotations":{"node":%q}}}`
	return fmt.Appendf(nil, format, name, color, node)
}

const root = "/core/things/"

// selections are everything, scopes, and selectors with and without an index.
func selections(t testing.TB, strategy resources.Strategy) (out []Selection) {
	for _, scope := range []string{root, root + "a/", root + "b/", root + "a/x1", root + "nobody/"} {
		for _, text := range []string{"", "color=red", "color in (red)", "color!=red", "color", "!color", "color=,x!=y"} {
			for _, field := range []string{"", "node=n1", "node!=n1", "node="} {
				selector, err := labels.Parse(text)
				require.NoError(t, err)
				s := Selection{Scope: scope, Strategy: strategy, Decode: decode, Labels: selector,
					Fields: fields.ParseSelectorOrDie(field)}
				if len(out)%3 != 0 { // some watches need decoded objects of what others have read alone
					s.Read = read
				}
				out = append(out, s)
			}
		}
	}
	return out
}

// seen is what a watch sends of an event.
type seen struct {
	Type     string
	Key      string
	Revision int64
}

// twin is the history of a watch after a revision: the store's, filtered event by event.
func twin(t testing.TB, s Selection, history []storage.Event, after int64) (out []seen) {
	match := func(value []byte) bool {
		if value == nil {
			return false
		}
		obj, err := decode(nil, storage.Record{Value: value})
		require.NoError(t, err)
		return s.Labels.Matches(labels.Set(obj.GetLabels())) && s.Fields.Matches((*plain)(nil).SelectableFields(obj))
	}
	for _, e := range history {
		inside := e.Key == s.Scope || strings.HasSuffix(s.Scope, "/") && strings.HasPrefix(e.Key, s.Scope)
		if e.Revision <= after || !inside {
			continue
		}
		was := e.Previous != nil && match(e.Previous.Value)
		switch is := match(e.Value); {
		case is && was:
			out = append(out, seen{"MODIFIED", e.Key, e.Revision})
		case is:
			out = append(out, seen{"ADDED", e.Key, e.Revision})
		case was:
			out = append(out, seen{"DELETED", e.Key, e.Revision})
		}
	}
	return out
}

// client watches a selection until it has reached a revision, as verbs do: from the store until
// it reaches the window, then from the cache, and again if it was too slow.
type client struct {
	selection Selection
	reached   int64
	pause     func()
	got       []seen
	restarts  int
	compacted bool
}

func (c *client) run(ctx context.Context, caches *Caches, last func() int64) error {
	for {
		cache, release, err := caches.Open(ctx, root, c.reached)
		if err != nil {
			return err
		}
		err = c.watch(ctx, cache, last)
		release()
		switch {
		case errors.Is(err, ErrTooSlow):
			c.restarts++
		case errors.Is(err, storage.ErrCompacted):
			c.compacted = true
			return nil
		default:
			return err
		}
	}
}

func (c *client) watch(ctx context.Context, cache *Cache, last func() int64) error {
	sub, ok := cache.Subscribe(c.selection, c.reached)
	for ; !ok; sub, ok = cache.Subscribe(c.selection, c.reached) {
		if err := c.catchUp(ctx, cache); err != nil {
			return err
		}
	}
	defer sub.Close()
	for c.reached < last() {
		b, err := sub.Next()
		if err != nil {
			return err
		}
		for _, e := range b.Entries {
			if e.Err != nil {
				return e.Err
			}
			c.add(e)
		}
		if b.Reached < c.reached {
			return fmt.Errorf("went back from %d to %d", c.reached, b.Reached)
		}
		c.reached = b.Reached
		c.pause()
		if !b.Waits {
			continue
		}
		cache.stream.RequestProgress()
		select {
		case <-sub.Wake:
		case <-time.After(time.Millisecond): // progress wakes nobody
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (c *client) add(e Entry) {
	c.got = append(c.got, seen{string(e.Type), e.Event.Key, e.Event.Revision})
	c.reached = e.Event.Revision
}

func (c *client) catchUp(ctx context.Context, cache *Cache) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := cache.store.Watch(ctx, c.selection.Scope, c.reached)
	if err != nil {
		return err
	}
	for c.reached < cache.From() {
		w.RequestProgress() // after From: it is behind what the stream sends then
		event, ok := <-w.Events()
		if !ok {
			return errors.Join(w.Err(), ctx.Err())
		}
		if e, ok := c.selection.Entry(event); ok {
			c.add(e)
		}
		c.reached = event.Revision
	}
	return nil
}

// TestTwin compares the history of many watches with that of the store, filtered. Its watches
// start at any revision, also before the cache; some are slow; the window and the logs are so
// small that watches fall behind them; the store is compacted, and the cache starts again.
func TestTwin(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { testTwin(t, seed) })
	}
}

func testTwin(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	store := memory.New(memory.Options{Progress: time.Hour})
	defer func() { require.NoError(t, store.Close()) }()
	caches := New(store, time.Microsecond)
	caches.limits = limits{window: 20, windowBytes: 1500, warm: 2, hot: 4, hotBytes: 1, behind: 30}
	defer caches.Close()
	strategies := []resources.Strategy{&plain{}, &struct{ plain }{}}
	all := append(selections(t, strategies[0]), selections(t, strategies[0])...)
	all = append(all, selections(t, &plain{})...)

	const writes = 1200
	var final int64 // the revision of the last write, when it is known
	var lock sync.Mutex
	last := func() int64 {
		lock.Lock()
		defer lock.Unlock()
		if final == 0 {
			return 1 << 62
		}
		return final
	}
	revisions := map[string]int64{}
	write := func() {
		name := fmt.Sprintf("%sx%d", []string{"a/", "b/", "c/"}[random.IntN(3)], random.IntN(6))
		key := root + name
		if random.IntN(8) == 0 {
			key = "/core/others/" + name
		}
		var err error
		if random.IntN(4) == 0 && revisions[key] > 0 {
			_, err = store.Delete(t.Context(), key, revisions[key])
			revisions[key] = 0
		} else {
			color, node := []string{"red", "blue", ""}[random.IntN(3)], []string{"n1", "n2", ""}[random.IntN(3)]
			revisions[key], err = store.Put(t.Context(), key, value(name, color, node), revisions[key])
		}
		require.NoError(t, err)
	}
	for range 100 {
		write()
	}
	history, err := store.Watch(t.Context(), root, 1)
	require.NoError(t, err)
	var running sync.WaitGroup
	var clients []*client
	errs := make(chan error, 10000)
	starts := map[*client]int64{}
	for range writes {
		write()
		if random.IntN(8) > 0 {
			if random.IntN(50) == 0 {
				time.Sleep(time.Millisecond) // caches without watches end
			}
			continue
		}
		now, err := store.Revision(t.Context())
		require.NoError(t, err)
		c := &client{selection: all[random.IntN(len(all))], pause: runtime.Gosched}
		c.reached = max(1, now-int64(random.IntN(60)))
		if random.IntN(4) == 0 {
			c.pause = func() { time.Sleep(500 * time.Microsecond) }
		}
		starts[c] = c.reached
		clients = append(clients, c)
		running.Go(func() {
			if err := c.run(t.Context(), caches, last); err != nil {
				errs <- err
			}
		})
	}
	now, err := store.Revision(t.Context())
	require.NoError(t, err)
	lock.Lock()
	final = now
	lock.Unlock()
	running.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	var events []storage.Event
	history.RequestProgress()
	for e := range history.Events() {
		if e.Key != "" {
			events = append(events, e)
		}
		if e.Revision >= now {
			break
		}
		history.RequestProgress()
	}
	restarts := 0
	for _, c := range clients {
		require.Equal(t, twin(t, c.selection, events, starts[c]), c.got, "%+v after %d", c.selection, starts[c])
		restarts += c.restarts
	}
	t.Logf("%d watches, %d ended for being slow", len(clients), restarts)
}

// TestSnapshots checks that the records of a cache and the events behind them make the records
// of the store, at any time.
func TestSnapshots(t *testing.T) {
	store := memory.New(memory.Options{Progress: time.Hour})
	defer func() { require.NoError(t, store.Close()) }()
	caches := New(store, 0)
	defer caches.Close()
	cache, release, err := caches.Open(t.Context(), root, 0)
	require.NoError(t, err)
	defer release()
	s := selections(t, &plain{})[0]
	random := rand.New(rand.NewPCG(7, 7))
	revisions := map[string]int64{}
	for range 300 {
		key := fmt.Sprintf("%sa/x%d", root, random.IntN(20))
		if revisions[key] > 0 && random.IntN(3) == 0 {
			_, err = store.Delete(t.Context(), key, revisions[key])
			revisions[key] = 0
		} else {
			revisions[key], err = store.Put(t.Context(), key, value(key, "red", ""), revisions[key])
		}
		require.NoError(t, err)
		snapshot, sub := cache.SubscribeFromNow(s)
		got := map[string]int64{}
		snapshot.Items(root, "", func(i *Item) bool { got[i.Key] = i.Revision; return true })
		page, err := store.List(t.Context(), root, storage.ListOptions{})
		require.NoError(t, err)
		ok, err := cache.WaitFor(t.Context(), page.Revision)
		require.NoError(t, err)
		require.True(t, ok)
		b, err := sub.Next()
		require.NoError(t, err)
		for _, e := range b.Entries {
			require.Greater(t, e.Event.Revision, snapshot.Revision)
			if delete(got, e.Event.Key); e.Event.Item != nil {
				got[e.Event.Key] = e.Event.Revision
			}
		}
		want := map[string]int64{}
		for _, r := range page.Records {
			want[r.Key] = r.Revision
		}
		require.Equal(t, want, got)
		sub.Close()
	}
	require.Empty(t, cache.scopes, "groups of watches that ended")
}
