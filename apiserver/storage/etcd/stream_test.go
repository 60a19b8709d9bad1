package etcd_test

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/etcd"
)

// busyEtcd is an etcd at one revision, whose response to a request for progress waits until the next watch of the
// stream is created, as it does in an etcd that has many events to send. There is an event at each revision.
type busyEtcd struct {
	etcdserverpb.UnimplementedKVServer
	etcdserverpb.UnimplementedMaintenanceServer
	etcdserverpb.UnimplementedWatchServer
	asked chan struct{}
}

const busyRevision = 5

var busyHeader = &etcdserverpb.ResponseHeader{Revision: busyRevision}

func (*busyEtcd) Range(context.Context, *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	return &etcdserverpb.RangeResponse{Header: busyHeader}, nil
}

func (*busyEtcd) Status(context.Context, *etcdserverpb.StatusRequest) (*etcdserverpb.StatusResponse, error) {
	return &etcdserverpb.StatusResponse{Header: busyHeader, Version: "3.6.0"}, nil
}

func (e *busyEtcd) Watch(stream etcdserverpb.Watch_WatchServer) error {
	owes := false
	for id := int64(0); ; {
		request, err := stream.Recv()
		if err != nil {
			return nil //nolint:nilerr // the client has ended the stream
		}
		if request.GetProgressRequest() != nil {
			owes = true
			e.asked <- struct{}{}
		}
		create := request.GetCreateRequest()
		if create == nil {
			continue
		}
		responses := []*etcdserverpb.WatchResponse{{Header: busyHeader, WatchId: id, Created: true}}
		if owes {
			responses = append(responses, &etcdserverpb.WatchResponse{Header: busyHeader, WatchId: clientv3.InvalidWatchID})
		}
		for revision := create.StartRevision; revision <= busyRevision; revision++ {
			kv := &mvccpb.KeyValue{Key: create.Key, CreateRevision: revision, ModRevision: revision, Version: 1}
			responses = append(responses, &etcdserverpb.WatchResponse{
				Header: busyHeader, WatchId: id, Events: []*mvccpb.Event{{Type: mvccpb.Event_PUT, Kv: kv}},
			})
		}
		id++
		for _, response := range responses {
			if err := stream.Send(response); err != nil {
				return err
			}
		}
	}
}

// TestProgressOfOthers: progress that was requested before a watch was created says nothing about that watch.
func TestProgressOfOthers(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	busy := &busyEtcd{asked: make(chan struct{}, 100)}
	server := grpc.NewServer()
	etcdserverpb.RegisterKVServer(server, busy)
	etcdserverpb.RegisterMaintenanceServer(server, busy)
	etcdserverpb.RegisterWatchServer(server, busy)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	s := openWith(t, etcd.Options{Config: clientv3.Config{Endpoints: []string{listener.Addr().String()}}})
	for asked := false; !asked; {
		w, err := s.Watch(t.Context(), "/a", busyRevision)
		require.NoError(t, err)
		if asked = w.RequestProgress(); asked {
			<-busy.asked
		}
	}
	w, err := s.Watch(t.Context(), "/b", 1)
	require.NoError(t, err)
	for revision := int64(2); revision <= busyRevision; revision++ {
		require.Equal(t, storage.Event{Key: "/b", Value: []byte{}, Revision: revision}, <-w.Events())
	}
}
