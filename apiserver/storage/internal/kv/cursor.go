package kv

import (
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// span is a key, or all keys with a prefix.
type span struct {
	key    string
	prefix bool
}

func (s span) has(key string) bool {
	if s.prefix {
		return strings.HasPrefix(key, s.key)
	}
	return key == s.key
}

// An Event is a write with the version before it.
type Event struct {
	*Version
	Previous *Version // nil: the key did not exist
}

// A Cursor reads the writes of a key or prefix, in order and without duplicates. It has no queue, only the revision up
// to which it has read. So a slow cursor does not affect writers, but it fails if unread writes are compacted.
//
//	unread == 0: every write up to store.revision has been read
//	unread > 0:  every write before the revision unread has been read
//
// Only one goroutine may use a Cursor. This goroutine may change unread while it holds mu for reading.
type Cursor struct {
	store  *Store
	span   span
	after  int64
	unread int64
	wake   chan struct{} // holds one signal
}

// Watch returns a cursor for the writes after a revision, and this revision. Revision 0 means the current revision. The
// cursor returns writes to a key or, if isPrefix is true, to all keys with this prefix. Close the cursor after use.
func (s *Store) Watch(key string, isPrefix bool, after int64) (*Cursor, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if after <= s.revision { // for a later revision, the cursor waits
		var err error
		if after, err = s.resolve(after); err != nil {
			return nil, 0, err
		}
	}
	c := &Cursor{store: s, span: span{key, isPrefix}, after: after, wake: make(chan struct{}, 1)}
	if after < s.revision {
		c.unread = after + 1
	}
	if s.cursors[c.span] == nil {
		s.cursors[c.span] = map[*Cursor]struct{}{}
	}
	s.cursors[c.span][c] = struct{}{}
	return c, after, nil
}

// publish wakes the cursors that must read a version. The caller holds mu.
func (s *Store) publish(v *Version) {
	for span, group := range s.cursors {
		if !span.has(v.Key) {
			continue
		}
		for c := range group {
			if c.unread == 0 && v.Revision > c.after {
				c.unread = v.Revision
				c.Rouse()
			}
		}
	}
}

// Next returns the next writes, and the revision up to which it has returned all writes. It stops after limit writes,
// or when the sum of their sizes reaches size, in bytes. If more is false, the cursor has read all writes: wait for
// Wake.
func (c *Cursor) Next(limit int, size int64) (events []Event, revision int64, more bool, err error) {
	s := c.store
	s.mu.RLock()
	defer s.mu.RUnlock()
	switch {
	case s.closed:
		return nil, 0, false, ErrClosed
	case c.unread == 0:
		return nil, s.revision, false, nil
	case c.unread <= s.compacted:
		return nil, 0, false, rpctypes.ErrCompacted
	}
	for _, v := range s.log[s.after(c.unread-1):] {
		if (len(events) >= limit || size <= 0) && v.Revision >= c.unread {
			return events, c.unread - 1, true, nil
		}
		if c.unread = v.Revision + 1; c.span.has(v.Key) {
			events = append(events, Event{v, v.previous.Load().live()})
			size -= v.event
		}
	}
	c.unread = 0
	return events, s.revision, true, nil
}

// Wake returns a channel that receives a value when there may be more writes to read.
func (c *Cursor) Wake() <-chan struct{} { return c.wake }

// Rouse sends a value on the channel of Wake.
func (c *Cursor) Rouse() {
	select {
	case c.wake <- struct{}{}:
	default: // the channel already holds a signal
	}
}

// Close ends the cursor.
func (c *Cursor) Close() {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	group := c.store.cursors[c.span]
	delete(group, c)
	if len(group) == 0 {
		delete(c.store.cursors, c.span)
	}
}
