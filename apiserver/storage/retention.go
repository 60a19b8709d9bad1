package storage

import "time"

// DefaultRevisions is how many writes a store keeps unless it is told otherwise.
const DefaultRevisions = 50_000

// Retention says how much of its history a store keeps by itself. What lies before
// is compacted as new writes come in.
type Retention struct {
	// Revisions keeps this many of the last writes; DefaultRevisions for 0, all of
	// them if it is negative.
	Revisions int64
	// Age keeps of those only what was written within this time; 0 is any age.
	Age time.Duration
}

// Limit returns Revisions with its default, and false if there is no limit.
func (r Retention) Limit() (int64, bool) {
	if r.Revisions == 0 {
		return DefaultRevisions, true
	}
	return r.Revisions, r.Revisions > 0
}
