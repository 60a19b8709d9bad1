package kv

import (
	"errors"
	"fmt"
	"sort"
	"time"
)

// Result is the result of a write.
type Result struct {
	Done     bool     // whether the key had the expected revision
	Revision int64    // of the write or, if Done is false, the current revision
	Current  *Version // if Done is false: the stored version, or nil if the key does not exist
}

// write is a write in the queue.
type write struct {
	version  *Version
	expected int64

	// The following fields are set by commit.
	committed bool
	result    Result
	err       error
}

// Put sets the value of a key. The caller must not change value afterwards. The parameter expires is the time at which
// the key expires, in nanoseconds since 1970; 0 means never. If Put returns an error, the write may or may not have
// been done.
func (s *Store) Put(key string, value []byte, expires, expected int64) (Result, error) {
	v := &Version{Key: key, Size: len(value), Expires: expires}
	v.value.Store(&value)
	return s.write(v, expected)
}

// Delete deletes a key that has the expected revision.
func (s *Store) Delete(key string, expected int64) (Result, error) {
	return s.write(&Version{Key: key, Deleted: true}, expected)
}

// write commits a write. Concurrent writes share a commit: the first writer commits all writes in the queue, and during
// the sync of the file, further writes enter the queue.
func (s *Store) write(v *Version, expected int64) (Result, error) {
	if len(v.Key) > maxKey {
		return Result{}, fmt.Errorf("key %.64q…: expected at most %d bytes, got %d", v.Key, maxKey, len(v.Key))
	}
	w := &write{version: v, expected: expected}
	s.queueMu.Lock()
	s.queue = append(s.queue, w)
	s.queueMu.Unlock()

	s.writeMu.Lock()
	defer s.writeMu.Unlock()
	if !w.committed {
		s.queueMu.Lock()
		batch := s.queue
		s.queue = nil
		s.queueMu.Unlock()
		if err := s.commit(batch); err != nil {
			for _, w := range batch {
				w.result, w.err = Result{}, err
			}
		}
		for _, w := range batch {
			w.committed = true
		}
	}
	return w.result, w.err
}

// commit executes a batch of writes. The caller holds writeMu.
func (s *Store) commit(batch []*write) error {
	if s.failed != nil {
		return s.failed
	}
	versions, err := s.check(batch)
	if err != nil || len(versions) == 0 {
		return err
	}
	if s.file != nil {
		err = s.writeFile(versions)
	}
	if err == nil || errors.Is(err, errApplied) {
		s.apply(versions)
	}
	return err
}

// check returns the versions of the writes whose key has the expected revision, and sets the results of all writes.
func (s *Store) check(batch []*write) (versions []*Version, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	revision, err := s.resolve(0)
	if err != nil {
		return nil, err
	}
	inBatch := map[string]*Version{}
	for _, w := range batch {
		v := w.version
		last, ok := inBatch[v.Key]
		if !ok {
			last, _ = s.latest.Get(v.Key)
		}
		current := last.live()
		found := int64(0)
		if current != nil {
			found = current.Revision
		}
		if found != w.expected || v.Deleted && current == nil {
			w.result = Result{Revision: revision, Current: current}
			continue
		}
		revision++
		v.Revision = revision
		v.previous.Store(last)
		v.event = int64(len(v.Key) + v.Size)
		if current != nil {
			v.event += int64(current.Size)
		}
		inBatch[v.Key] = v
		versions = append(versions, v)
		w.result = Result{Done: true, Revision: revision}
	}
	return versions, nil
}

// errApplied reports a commit that failed although the file has its writes, for example because the last sync failed.
var errApplied = errors.New("the writes are in the file, but may not be durable")

// writeFile makes versions durable.
func (s *Store) writeFile(versions []*Version) error {
	values := make([][]byte, len(versions))
	for i, v := range versions {
		if !v.Deleted {
			values[i] = *v.value.Load()
		}
		// The file loses the previous value, but the history needs it.
		if previous := v.previous.Load().live(); previous != nil {
			value, err := s.Value(previous)
			if err != nil {
				return err
			}
			previous.value.Store(&value)
		}
	}
	err := s.file.Write(versions, values)
	if err == nil {
		return nil
	}
	switch revision, readErr := s.file.Revision(); {
	case readErr != nil:
		s.failed = fmt.Errorf("%w; it can't be read either: %w", err, readErr)
	case revision == versions[len(versions)-1].Revision:
		err = fmt.Errorf("%w: %w", errApplied, err)
	}
	return err
}

// apply makes versions visible.
func (s *Store) apply(versions []*Version) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range versions {
		if last, ok := s.latest.Set(v.Key, v); ok && last.timer != nil {
			last.timer.Stop()
		}
		s.expireLater(v)
	}
	s.record(versions, s.revision+int64(len(versions)))
}

// Append adds the writes of another store to the history. The parameter versions has all writes that are not in the
// history yet, up to the revision. If Append is used, the store must have no other writes.
func (s *Store) Append(versions []*Version, revision int64) {
	s.writeMu.Lock()
	defer s.writeMu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record(versions, max(revision, s.revision))
}

// Skip drops the history, and starts it again after the given revision. Cursors that have not read up to this revision
// fail with ErrCompacted.
func (s *Store) Skip(revision int64) {
	s.writeMu.Lock()
	defer s.writeMu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, group := range s.cursors {
		for c := range group {
			if c.unread == 0 && c.after < revision {
				c.unread = s.revision + 1
				c.Rouse()
			}
		}
	}
	s.revision = revision
	s.forget(revision)
}

// record adds versions, up to a revision, to the history, and compacts the part that exceeds the limits. The caller
// holds writeMu and mu.
func (s *Store) record(versions []*Version, revision int64) {
	for _, v := range versions {
		s.log = append(s.log, v)
		s.historySize += v.event
		s.publish(v)
	}
	s.revision = revision
	over := s.historySize
	upto := max(s.compacted, s.revision-s.options.HistoryRevisions)
	for _, v := range s.log {
		if over <= s.options.HistoryBytes {
			break
		}
		over -= v.event
		upto = max(upto, v.Revision)
	}
	s.forget(upto)
}

// after returns the index in the log of the first version that is later than a revision. The caller holds mu.
func (s *Store) after(revision int64) int {
	return sort.Search(len(s.log), func(i int) bool { return s.log[i].Revision > revision })
}

// Compact compacts the history up to a revision: earlier revisions can't be read any more. It waits for a
// running commit: the file is about to lose earlier values, so the commit keeps them in memory, and Compact must not
// drop them.
func (s *Store) Compact(revision int64) error {
	s.writeMu.Lock()
	defer s.writeMu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	revision, err := s.resolve(revision)
	if err == nil {
		s.forget(revision)
	}
	return err
}

// forget compacts the history up to a revision. It visits each version once. The caller holds writeMu and mu.
func (s *Store) forget(upto int64) {
	removed := s.log[:s.after(upto)]
	s.log = s.log[len(removed):]
	s.compacted = upto
	for i, v := range removed {
		s.historySize -= v.event
		v.previous.Store(nil)
		if last, _ := s.latest.Get(v.Key); last == v {
			if v.Deleted {
				s.latest.Delete(v.Key)
			} else if s.file != nil {
				v.value.Store(nil)
			}
		}
		removed[i] = nil
	}
}

// retryExpiry is the delay before the deletion of an expired key is retried after an error.
const retryExpiry = time.Minute

// expireLater starts the timer that deletes an expired version. The caller holds mu, so the deletion waits until the
// caller releases mu.
func (s *Store) expireLater(v *Version) {
	if v.Expires == 0 {
		return
	}
	v.timer = time.AfterFunc(time.Until(time.Unix(0, v.Expires)), func() {
		if _, err := s.Delete(v.Key, v.Revision); err != nil && !errors.Is(err, ErrClosed) {
			s.mu.RLock()
			defer s.mu.RUnlock()
			if !s.closed {
				v.timer.Reset(retryExpiry)
			}
		}
	})
}
