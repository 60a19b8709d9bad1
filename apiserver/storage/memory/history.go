package memory

import (
	"fmt"
	"strings"
	"time"

	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// read implements feed.Read.
func (s *Store) read(prefix string, after, upto int64, limit int) (events []storage.Event, reached int64, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if after < s.compacted {
		return nil, 0, fmt.Errorf("%w up to %d", storage.ErrCompacted, s.compacted)
	}
	reached = min(upto, after+int64(limit))
	for _, v := range s.log[after-s.compacted : reached-s.compacted] {
		if strings.HasPrefix(v.Key, prefix) {
			events = append(events, storage.Event{
				Key:      v.Key,
				Value:    v.Value,
				Previous: v.previous.Load().record(),
				Revision: v.Revision,
			})
		}
	}
	return events, reached, nil
}

// expired returns the revision up to which the retention compacts.
func (s *Store) expired(now time.Time) int64 {
	revision := s.compacted
	if limit, ok := s.options.Retention.Limit(); ok {
		revision = max(revision, s.revision-limit)
	}
	if age := s.options.Retention.Age; age > 0 {
		for revision < s.revision && now.Sub(s.log[revision-s.compacted].written) > age {
			revision++
		}
	}
	return revision
}

// forget removes versions that were overwritten or deleted at or before a revision. It visits
// each version once.
func (s *Store) forget(revision int64) {
	if revision <= s.compacted {
		return
	}
	gone := s.log[:revision-s.compacted]
	s.log = s.log[len(gone):]
	// Later readers see the new value of compacted. Readers that are running check it again at
	// the end.
	s.compacted = revision
	for i, v := range gone {
		v.previous.Store(nil)
		if v.Value == nil {
			if last, _ := s.latest.Get(v.Key); last == v {
				s.latest.Delete(v.Key)
			}
		}
		gone[i] = nil
	}
}
