package bbolt

import (
	"context"
	"fmt"
	"runtime"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/tenure-ssa/tenure/apiserver/storage"
)

const (
	maxValue   = 1 << 30 // bytes of a value
	batchCount = 256     // requests in a transaction
	batchBytes = 8 << 20 // of values in a transaction, about
	forgetStep = 2000    // revisions that one transaction compacts
	slack      = 16      // a 16th of what is kept may be there besides, until it is compacted
)

type kind int

const (
	isPut kind = iota
	isDelete
	isCompact
)

// request is a request to the writer goroutine.
type request struct {
	kind     kind
	key      string
	value    []byte
	revision int64 // the expected revision, or the one to compact

	// The result, valid once done is closed: the revision of the write or of the compaction.
	answer int64
	err    error
	done   chan struct{}
}

// do sends a request to the writer. If ctx ends before the writer receives it, it is not
// executed; after that, do waits for the result.
func (s *Store) do(ctx context.Context, r *request) (int64, error) {
	r.done = make(chan struct{})
	select {
	case s.requests <- r:
		<-r.done
		return r.answer, r.err
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-s.closing:
		return 0, storage.ErrClosed
	}
}

// Close implements [storage.Store].
func (s *Store) Close() error {
	// The writer receives the close request once, like any other request.
	select {
	case s.requests <- nil:
	case <-s.closing:
	}
	<-s.stopped
	s.feed.Close()
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("store %s: %w", s.path, err)
	}
	return nil
}

// run receives all waiting requests and executes them in one transaction. While that is synced
// the next requests gather. published is the revision of the feed.
func (s *Store) run(published int64) {
	defer close(s.stopped)
	for {
		r := <-s.requests
		if r == nil {
			close(s.closing)
			return
		}
		// Writers that got their result may send the next write at once.
		runtime.Gosched()
		batch, size := []*request{r}, len(r.value)
		closing := false
		for more := true; more && !closing && len(batch) < batchCount && size < batchBytes; {
			select {
			case r := <-s.requests:
				if closing = r == nil; !closing {
					batch, size = append(batch, r), size+len(r.value)
				}
			default:
				more = false
			}
		}
		published = s.commit(batch, published)
		if closing {
			close(s.closing)
			return
		}
	}
}

// commit executes a batch of requests.
func (s *Store) commit(batch []*request, published int64) int64 {
	now := s.options.Now()
	err := guard(func() error {
		return s.db.Update(func(tx *bolt.Tx) error {
			st, err := load(tx)
			if err != nil {
				return err
			}
			st.log.FillPercent = 0.9 // it is append-only
			for _, r := range batch {
				if err := st.do(r, now); err != nil {
					return err
				}
			}
			if err := st.expire(s.options.Retention, now); err != nil {
				return err
			}
			if err := st.records.SetSequence(uint64(st.compacted)); err != nil {
				return err
			}
			return st.log.SetSequence(uint64(st.revision))
		})
	})
	if err != nil {
		err = fmt.Errorf("%w: %s: %w", storage.ErrUnavailable, s.path, err)
		for _, r := range batch {
			r.answer, r.err = 0, err
		}
		published = s.catchUp(published)
	}
	for _, r := range batch {
		if r.err == nil && r.kind != isCompact {
			s.feed.Publish(r.key, r.answer)
			published = r.answer
		}
	}
	for _, r := range batch {
		close(r.done)
	}
	return published
}

// catchUp publishes writes in the file that were not published: a commit that returned an
// error may have succeeded.
func (s *Store) catchUp(published int64) int64 {
	var keys []string
	err := s.view(func(st *state) error {
		for revision := published + 1; revision <= st.revision; revision++ {
			e, _, err := st.entry(revision)
			if err != nil {
				return err
			}
			keys = append(keys, string(e.key))
		}
		return nil
	})
	if err != nil {
		return published // it runs again with the next batch
	}
	for _, key := range keys {
		published++
		s.feed.Publish(key, published)
	}
	return published
}

// do executes a request in a transaction. The error is an I/O error.
func (st *state) do(r *request, now time.Time) error {
	if r.kind == isCompact {
		if r.revision > st.revision {
			r.err = fmt.Errorf("compact at revision %d: %w, the last is %d", r.revision, storage.ErrFuture, st.revision)
			return nil
		}
		err := st.forget(min(r.revision, st.compacted+forgetStep))
		r.answer = st.compacted
		return err
	}
	key := []byte(r.key)
	previous, removed, err := last(st.records.Get(key))
	if err != nil {
		return err
	}
	found := previous != 0 && !removed
	if found && previous != r.revision || !found && (r.revision != 0 || r.kind == isDelete) {
		conflict := &storage.ConflictError{Key: r.key, Expected: r.revision}
		if found {
			if conflict.Current, err = st.record(previous); err != nil {
				return err
			}
		}
		r.err = conflict
		return nil
	}
	st.revision++
	r.answer = st.revision
	e := entry{removed: r.kind == isDelete, written: now.UnixNano(), previous: previous, key: key, value: r.value}
	if err := st.log.Put(encodeRevision(st.revision), e.encode()); err != nil {
		return err
	}
	return st.records.Put(key, append(encodeRevision(st.revision), flag(e.removed)))
}

// expire compacts step by step what the retention does not keep. It waits until enough can be
// compacted, because each step writes pages.
func (st *state) expire(retention storage.Retention, now time.Time) error {
	upto := st.compacted
	if limit, ok := retention.Limit(); ok && st.revision-upto > limit+limit/slack {
		upto = st.revision - limit
	}
	upto = min(upto, st.compacted+forgetStep)
	if retention.Age > 0 {
		expired := now.Add(-retention.Age).UnixNano()
		// The age of the oldest write tells whether enough can be compacted.
		worth := now.Add(-retention.Age - retention.Age/slack).UnixNano()
		for step := upto; step < min(st.revision, st.compacted+forgetStep); step++ {
			e, _, err := st.entry(step + 1)
			if err != nil {
				return err
			}
			if e.written >= expired || step == st.compacted && e.written >= worth {
				break
			}
			upto = step + 1
		}
	}
	return st.forget(upto)
}

// forget compacts up to a revision. It visits each write once in the lifetime of the file.
func (st *state) forget(upto int64) error {
	for st.compacted < upto {
		revision := st.compacted + 1
		e, _, err := st.entry(revision)
		if err != nil {
			return err
		}
		key := clone(e.key) // e is invalid after a deletion
		if e.previous != 0 {
			if err := st.log.Delete(encodeRevision(e.previous)); err != nil {
				return err
			}
		}
		if e.removed {
			if err := st.log.Delete(encodeRevision(revision)); err != nil {
				return err
			}
			written, _, err := last(st.records.Get(key))
			if err != nil {
				return err
			}
			if written == revision {
				if err := st.records.Delete(key); err != nil {
					return err
				}
			}
		}
		st.compacted = revision
	}
	return nil
}
