package etcd

import (
	"time"

	"github.com/coreos/go-semver/semver"
)

// findProgress finds out whether progress can be requested, which it tries until all members respond.
func (s *Store) findProgress() {
	for {
		can, err := s.canAskProgress()
		if err == nil {
			s.progress.Store(can)
			return
		}
		select {
		case <-s.ctx.Done():
			return
		case <-time.After(s.every):
		}
	}
}

// canAskProgress returns whether progress can be requested, from the versions of all members.
// Before 3.4.31 and 3.5.13 a progress notification could overtake events (etcd issue 15220): a
// watch that continues from there misses them.
func (s *Store) canAskProgress() (bool, error) {
	for _, endpoint := range s.client.Endpoints() {
		ctx, cancel := s.call(s.ctx)
		status, err := s.client.Status(ctx, endpoint)
		cancel()
		if err != nil {
			return false, err
		}
		if !ordersProgress(status.Version) {
			return false, nil
		}
	}
	return true, nil
}

// ordersProgress reports whether a version of etcd sends requested progress notifications in
// order with events.
func ordersProgress(version string) bool {
	v, err := semver.NewVersion(version)
	if err != nil {
		return false
	}
	switch {
	case v.Major == 3 && v.Minor == 4:
		return v.Patch >= 31
	case v.Major == 3 && v.Minor == 5:
		return v.Patch >= 13
	}
	return v.Major > 3 || v.Major == 3 && v.Minor > 5
}
