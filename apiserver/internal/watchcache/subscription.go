package watchcache

import (
	"errors"
	"slices"
	"sort"
	"sync/atomic"

	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// ErrTooSlow reports a watch that was too far behind.
var ErrTooSlow = errors.New("the watch is too slow")

// A Subscription is a watch of a Cache. One goroutine at a time uses it.
//
//	backlog   events of the window that the watch starts with, which its group had before
//	taken     the position in the log of the group behind what Next returned
//	sent      the position behind what was sent: everything before the last call of Next
type Subscription struct {
	// Wake receives a value when Next has something to return again, or after Rouse.
	Wake chan struct{}
	// Notify is called instead, if it is not nil. It must not block, nor use the Cache. It is set before the first call
	// of Next.
	Notify func()

	cache   *Cache
	group   *group
	after   int64 // only events after this revision
	reached int64 // that of the last Batch
	backlog []*Event
	taken   int64
	sent    atomic.Int64
	index   int // in group.subs; guarded by group.mu

	waits bool  // for Wake; guarded by group.mu
	err   error // guarded by group.mu
}

// Subscribe starts a watch after a revision. ok is false if the revision is before the window.
func (c *Cache) Subscribe(s Selection, after int64) (sub *Subscription, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if after < c.from {
		return nil, false
	}
	first := sort.Search(len(c.window), func(i int) bool { return c.window[i].Revision > after })
	sub = c.subscribe(s, after)
	sub.backlog = slices.Clone(c.window[first:])
	return sub, true
}

// SubscribeFromNow returns the current records, and starts a watch behind them.
func (c *Cache) SubscribeFromNow(s Selection) (Snapshot, *Subscription) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.snapshot()
	return now, c.subscribe(s, now.Revision)
}

func (c *Cache) subscribe(s Selection, after int64) *Subscription {
	sc := c.scopes[s.Scope]
	if sc == nil {
		sc = newScope()
		c.scopes[s.Scope] = sc
	}
	g := sc.group(s)
	g.mu.Lock()
	defer g.mu.Unlock()
	sub := &Subscription{cache: c, group: g, after: after, reached: after, index: len(g.subs)}
	sub.Wake = make(chan struct{}, 1)
	sub.taken = g.base + int64(len(g.log))
	sub.sent.Store(sub.taken)
	g.subs = append(g.subs, sub)
	return sub
}

// Close ends the watch.
func (s *Subscription) Close() {
	c, g := s.cache, s.group
	c.mu.Lock()
	defer c.mu.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	last := len(g.subs) - 1
	g.subs[s.index] = g.subs[last]
	g.subs[s.index].index = s.index
	g.subs[last] = nil
	if g.subs = g.subs[:last]; last > 0 {
		return
	}
	sc := c.scopes[g.selection.Scope]
	sc.remove(g)
	if len(sc.groups) == 0 {
		delete(c.scopes, g.selection.Scope)
	}
}

// Rouse wakes the watch if it waits, though there is nothing new.
func (s *Subscription) Rouse() {
	s.group.mu.Lock()
	defer s.group.mu.Unlock()
	s.rouse()
}

// rouse wakes the watch if it waits. The caller holds group.mu.
func (s *Subscription) rouse() {
	if s.waits {
		s.waits = false
		if s.Notify != nil {
			s.Notify()
			return
		}
		s.Wake <- struct{}{} // has room: Next empties it before it waits
	}
}

// batch is the maximum number of entries that Next returns.
const batch = 64

// A Batch is what Next returns.
type Batch struct {
	Entries []Entry
	// Reached is the revision up to which all selected events were returned, with Entries.
	Reached int64
	// Waits is true if there is nothing more for now: Wake tells when to call Next again.
	Waits bool
}

// Next returns the next entries. Its call says that those of the last call were sent. Errors
// are ErrTooSlow, and why the stream of the store ended.
func (s *Subscription) Next() (Batch, error) {
	if len(s.backlog) > 0 {
		return s.nextOfBacklog(), nil
	}
	b, err := s.nextOfLog()
	// An event is in the log before the cache has reached it.
	s.reached = max(s.reached, b.Reached)
	b.Reached = s.reached
	return b, err
}

func (s *Subscription) nextOfLog() (Batch, error) {
	ended := false
	select {
	case <-s.cache.ended: // before the log is read: it is complete then
		ended = true
	default:
	}
	// Also before: all events up to it are in the log.
	b := Batch{Reached: s.cache.reached.Load()}
	g := s.group
	g.mu.Lock()
	defer g.mu.Unlock()
	s.sent.Store(s.taken)
	if s.err != nil {
		return Batch{}, s.err
	}
	log := g.log[s.taken-g.base:]
	for len(log) > 0 && log[0].Event.Revision <= s.after {
		log = log[1:]
		s.taken++
	}
	if len(log) == 0 {
		if ended {
			return Batch{}, s.cache.err
		}
		b.Waits, s.waits = true, true
		select {
		case <-s.Wake:
		default:
		}
		return b, nil
	}
	b.Entries = log[:min(batch, len(log)):min(batch, len(log))]
	s.taken += int64(len(b.Entries))
	if last := b.Entries[len(b.Entries)-1].Event.Revision; len(b.Entries) < len(log) {
		b.Reached = last
	} else {
		b.Reached = max(b.Reached, last)
	}
	return b, nil
}

// nextOfBacklog returns entries of the events before the group's.
func (s *Subscription) nextOfBacklog() (b Batch) {
	events := s.backlog[:min(batch, len(s.backlog))]
	if s.backlog = s.backlog[len(events):]; len(s.backlog) == 0 {
		s.backlog = nil
	}
	for _, event := range events {
		s.reached = event.Revision
		b.Reached = s.reached
		if !s.group.selection.Contains(event.Key) {
			continue
		}
		if e, ok := s.group.selection.entry(event); ok {
			b.Entries = append(b.Entries, e)
		}
	}
	return b
}

// Entry returns what an event of the store means for a selection, for watches that start before
// the window. ok is false if it concerns no selected object.
func (s Selection) Entry(stored storage.Event) (e Entry, ok bool) {
	if stored.Key == "" || !s.Contains(stored.Key) {
		return Entry{}, false
	}
	return s.entry(newEvent(stored))
}
