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

// request is what a writer asks for.
type request struct {
	kind     kind
	key      string
	value    []byte
	revision int64 // that is expected, or to compact at

	// The answer, once done is closed: the revision of the write, or up to which it
	// is compacted.
	answer int64
	err    error
	done   chan struct{}
}

// do has the writer do a request. If ctx ends before the writer takes it, it is not
// done; after that, do waits for the answer.
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
	// The writer takes the closing, once, as it takes a request.
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

// run takes what writers ask for, as many as there are at a time, and does it in
// one transaction: while that is synced, the next writers gather. published is the
// revision that the feed is at.
func (s *Store) run(published int64) {
	defer close(s.stopped)
	for {
		r := <-s.requests
		if r == nil {
			close(s.closing)
			return
		}
		// Those who have just been answered may have the next write at hand.
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

// commit does a batch and answers it.
func (s *Store) commit(batch []*request, published int64) int64 {
	now := s.options.Now()
	err := guard(func() error {
		return s.db.Update(func(tx *bolt.Tx) error {
			st, err := load(tx)
			if err != nil {
				return err
			}
			st.log.FillPercent = 0.9 // it grows at its end
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

// catchUp publishes what is in the file beyond what was published: a commit that
// failed at its very end may be there all the same.
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
		return published // as it is next time
	}
	for _, key := range keys {
		published++
		s.feed.Publish(key, published)
	}
	return published
}

// do does a request in a transaction. An error is one of the medium.
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

// expire compacts, a step at a time, what the retention does not keep. It waits until
// there is a part worth it, as pages are written where it forgets.
func (st *state) expire(retention storage.Retention, now time.Time) error {
	upto := st.compacted
	if limit, ok := retention.Limit(); ok && st.revision-upto > limit+limit/slack {
		upto = st.revision - limit
	}
	upto = min(upto, st.compacted+forgetStep)
	if retention.Age > 0 {
		expired := now.Add(-retention.Age).UnixNano()
		// The oldest says whether there is a part worth it.
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

// forget compacts at a revision. It looks at each write once in the file's life.
func (st *state) forget(upto int64) error {
	for st.compacted < upto {
		revision := st.compacted + 1
		e, _, err := st.entry(revision)
		if err != nil {
			return err
		}
		key := clone(e.key) // e may be gone with what is deleted
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
