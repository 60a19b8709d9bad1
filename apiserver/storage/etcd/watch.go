package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tenure-ssa/tenure/apiserver/storage"
)

const (
	// maxQueue limits the queued events of a watch. A watch whose queue is full stops its etcd
	// watch, and starts another one when the queue is empty.
	maxQueue = 1000
	// pause is the delay before a watch is retried.
	pause = 200 * time.Millisecond
)

// Watch implements [storage.Store].
func (s *Store) Watch(ctx context.Context, prefix string, after int64) (storage.Watcher, error) {
	// A read at the revision checks whether a watch can start there.
	_, after, err := s.rangeOf(ctx, "/", after, clientv3.WithCountOnly())
	if err != nil {
		return nil, err
	}
	w := &watcher{
		store:  s,
		prefix: prefix,
		events: make(chan storage.Event, 32),
		ask:    make(chan struct{}, 1),
		told:   after,
	}
	if !s.goRun(func() { w.run(ctx) }) {
		return nil, storage.ErrClosed
	}
	return w, nil
}

// watcher is a running watch. Its fields belong to run until events is closed.
type watcher struct {
	store  *Store
	prefix string
	events chan storage.Event
	ask    chan struct{} // progress is requested
	asking atomic.Bool   // whether a request for progress is being sent
	told   int64         // all events up to this revision were queued
	err    error
}

// Events implements [storage.Watcher].
func (w *watcher) Events() <-chan storage.Event { return w.events }

// Err implements [storage.Watcher].
func (w *watcher) Err() error { return w.err }

// RequestProgress implements [storage.Watcher]. While the connection is down the request is dropped.
func (w *watcher) RequestProgress() bool {
	if !w.store.progress.Load() {
		return false
	}
	select {
	case w.ask <- struct{}{}:
	default: // somebody has requested it already
	}
	return true
}

// errAgain reports that the etcd watch has ended and must be started again.
var errAgain = errors.New("again")

func (w *watcher) run(caller context.Context) {
	defer close(w.events)
	ctx, cancel := context.WithCancel(w.store.ctx)
	defer cancel()
	defer context.AfterFunc(caller, cancel)()
	for {
		err := w.follow(ctx)
		switch {
		case caller.Err() != nil:
			return
		case w.store.ctx.Err() != nil:
			w.err = storage.ErrClosed
			return
		case err == errAgain:
		case errors.Is(err, storage.ErrUnavailable):
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		default:
			w.err = fmt.Errorf("watch of %q after revision %d: %w", w.prefix, w.told, err)
			return
		}
	}
}

// follow sends the events after told until ctx ends, the etcd watch ends, or the queue is full.
//
// The etcd watch has a gRPC stream of its own. What etcd responds to a request for progress is for all watches of a
// stream, also for one that was created behind the request, whose history it then overtakes: the watch would go on
// behind events that it never got. For the same reason progress is requested only after etcd has responded that the
// watch is created. And a watch that has much to catch up with does not hold back the progress of others.
func (w *watcher) follow(ctx context.Context) error {
	client := clientv3.NewWatcher(w.store.client)
	defer client.Close()
	watchCtx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	options := []clientv3.OpOption{
		clientv3.WithRev(w.told + 1), clientv3.WithPrevKV(), clientv3.WithProgressNotify(), clientv3.WithCreatedNotify(),
	}
	key := w.store.prefix // no record has this key
	if start, end, ok := storage.Span(w.prefix, ""); ok {
		key += start
		options = append(options, clientv3.WithRange(w.store.prefix+end))
	}
	responses := client.Watch(watchCtx, key, options...)
	tick := time.NewTicker(w.store.every)
	defer tick.Stop()
	var asked <-chan struct{} // w.ask, if the watch is created
	var queue []storage.Event
	var err error // why reading stopped; the queue is sent first
	for {
		if err == nil && len(queue) >= maxQueue {
			cancel()
			err = errAgain
		}
		if err != nil {
			responses = nil
			if len(queue) == 0 {
				return err
			}
		}
		var out chan<- storage.Event
		var first storage.Event
		if len(queue) > 0 {
			out, first = w.events, queue[0]
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case out <- first:
			queue = queue[1:]
		case <-asked:
			w.askProgress(watchCtx, client)
		case <-tick.C:
			w.RequestProgress()
		case response, ok := <-responses:
			if !ok {
				err = storage.ErrUnavailable
				continue
			}
			if response.Created {
				asked = w.ask
			}
			var events []storage.Event
			events, err = w.read(response)
			queue = append(queue, events...)
		}
	}
}

// askProgress requests progress from etcd. It does not wait, because the client may wait for its connection.
func (w *watcher) askProgress(ctx context.Context, client clientv3.Watcher) {
	if !w.asking.CompareAndSwap(false, true) {
		return
	}
	isRunning := w.store.goRun(func() {
		defer w.asking.Store(false)
		ctx, cancel := context.WithTimeout(ctx, pause)
		defer cancel()
		_ = client.RequestProgress(ctx)
	})
	if !isRunning {
		w.asking.Store(false)
	}
}

// read returns the events of a response. A response contains all events of a revision or none.
func (w *watcher) read(response clientv3.WatchResponse) (events []storage.Event, err error) {
	if err := response.Err(); err != nil {
		if kind := kindOf(err); kind != nil {
			return nil, fmt.Errorf("%w: %w", kind, err)
		}
		return nil, err
	}
	if response.IsProgressNotify() {
		if response.Header.Revision > w.told {
			w.told = response.Header.Revision
			events = append(events, storage.Event{Revision: w.told})
		}
		return events, nil
	}
	for _, e := range response.Events {
		key, ok := strings.CutPrefix(string(e.Kv.Key), w.store.prefix)
		if !ok || storage.CheckKey(key) != nil {
			continue // not a key of a store
		}
		event := storage.Event{Key: key, Revision: e.Kv.ModRevision}
		if e.Type == clientv3.EventTypePut {
			event.Value = w.store.record(e.Kv).Value
		}
		if e.PrevKv != nil {
			record := w.store.record(e.PrevKv)
			event.Previous = &record
		} else if !e.IsCreate() {
			// etcd sends events of a revision that was just compacted without the previous
			// value.
			return nil, fmt.Errorf("what %s was before revision %d: %w", key, event.Revision, storage.ErrCompacted)
		}
		events = append(events, event)
	}
	if n := len(response.Events); n > 0 {
		w.told = response.Events[n-1].Kv.ModRevision
	}
	return events, nil
}
