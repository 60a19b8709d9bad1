package etcd

import (
	"time"

	"github.com/coreos/go-semver/semver"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// askProgress asks etcd, regularly, to tell all watches their progress.
func (s *Store) askProgress(interval time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	known := false
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		}
		if !known {
			can, err := s.canAskProgress()
			if err != nil {
				continue
			}
			if !can {
				return
			}
			known = true
		}
		// It fails where no watch runs.
		_ = s.client.RequestProgress(clientv3.WithRequireLeader(s.ctx))
	}
}

// canAskProgress asks all members for their version. Before 3.4.31 and 3.5.13 the
// answer could overtake events (etcd issue 15220), and then a watch that went on from
// there would have missed them.
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

// ordersProgress reports whether an etcd of a version sends progress that was asked
// for in order with events.
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
