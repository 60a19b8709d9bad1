package objects

import (
	"context"
	"path"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"k8s.io/apiserver/pkg/storage/etcd3"

	"github.com/tenure-ssa/tenure/apiserver/storage/internal/kv"
)

const (
	// retry is the delay before a new watch after etcd has ended one.
	retry = time.Second
	// listing is how many watches may list objects at the same time.
	listing = 2
)

// remote is the etcd that has the objects of a store. One watch reads all writes, of all servers; the watches of
// clients share its events, as with a store in this process.
type remote struct {
	root    string // prefix of the keys
	listing chan struct{}
	stop    context.CancelFunc
}

// NewRemote returns a store for the objects in etcd with a prefix. Close does not close the client. The history begins
// at the current revision, as in kube-apiserver. If it began earlier, etcd would read up to 1,000 writes at once,
// whatever their sizes.
func NewRemote(
	ctx context.Context, client *kubernetes.Client, compactor etcd3.Compactor, prefix string,
) (*Store, error) {
	root := strings.TrimSuffix(path.Join("/", prefix), "/")
	current, err := client.Kubernetes.Get(ctx, root+"/", kubernetes.GetOptions{})
	if err != nil {
		return nil, err
	}
	s := New(kv.New(kv.Options{}, nil, current.Revision, nil), 0)
	following, stop := context.WithCancel(context.Background())
	s.client, s.compactor, s.remote = client, compactor, &remote{root, make(chan struct{}, listing), stop}
	s.running.Go(func() {
		for following.Err() == nil {
			s.follow(following)
		}
	})
	return s, nil
}

// follow appends the writes in etcd to the history until etcd ends the watch. If etcd has compacted a write before
// follow reads it, or the previous value of a write, the history restarts after this write.
func (s *Store) follow(ctx context.Context) {
	watching, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	for r := range s.client.Watch(watching, s.remote.root+"/", clientv3.WithPrefix(), clientv3.WithPrevKV(),
		clientv3.WithProgressNotify(), clientv3.WithRev(s.kv.Revision()+1)) {
		if r.CompactRevision > 0 {
			s.kv.Skip(r.CompactRevision)
			return
		}
		if r.Err() != nil {
			break
		}
		revision := r.Header.Revision // in a response without events: etcd has sent all writes up to this revision
		var versions []*kv.Version
		for _, e := range r.Events {
			// If etcd resumes a watch, the header has a later revision than the events, and further events follow.
			revision = e.Kv.ModRevision
			var value, previous []byte
			if e.Type == clientv3.EventTypePut {
				value = e.Kv.Value
			}
			if e.PrevKv != nil {
				previous = e.PrevKv.Value
			} else if !e.IsCreate() {
				s.kv.Skip(revision)
				versions = nil
				continue
			}
			versions = append(versions, kv.NewEvent(string(e.Kv.Key), revision, value, previous))
		}
		s.kv.Append(versions, revision)
	}
	select {
	case <-ctx.Done():
	case <-time.After(retry):
	}
}

// page returns the versions of the keys from start to end at a revision, in the order of the keys. It stops after limit
// versions, or when the sum of their sizes reaches batchBytes.
func (s *Store) page(ctx context.Context, start, end string, revision int64, limit int) ([]*kv.Version, error) {
	if s.remote == nil {
		return s.kv.Page(start, end, revision, limit, batchBytes)
	}
	select {
	case s.remote.listing <- struct{}{}:
		defer func() { <-s.remote.listing }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	got, err := s.client.KV.Get(ctx, start, clientv3.WithRange(end), clientv3.WithRev(revision),
		clientv3.WithLimit(int64(limit)))
	if err != nil {
		return nil, err
	}
	var versions []*kv.Version
	for size, i := 0, 0; i < len(got.Kvs) && size < batchBytes; i++ {
		size += len(got.Kvs[i].Value)
		versions = append(versions, kv.NewEvent(string(got.Kvs[i].Key), got.Kvs[i].ModRevision, got.Kvs[i].Value, nil))
	}
	return versions, nil
}
