package storage

import "time"

// DefaultRevisions is the default of Retention.Revisions.
const DefaultRevisions = 50_000

// Retention limits the history that a store keeps. Older revisions are compacted when new ones
// are written.
type Retention struct {
	// Revisions is the number of revisions to keep; 0 means DefaultRevisions, a negative
	// number means no limit.
	Revisions int64
	// Age, if not 0, limits them to revisions of this age.
	Age time.Duration
}

// Limit returns Revisions or its default, and false if there is no limit.
func (r Retention) Limit() (int64, bool) {
	if r.Revisions == 0 {
		return DefaultRevisions, true
	}
	return r.Revisions, r.Revisions > 0
}
