package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/etcd"
)

// Without an etcd at the endpoints, Open fails after its timeout.
func ExampleOpen() {
	store, err := etcd.Open(context.Background(), etcd.Options{
		Config:  clientv3.Config{Endpoints: []string{"127.0.0.1:1"}},
		Timeout: 100 * time.Millisecond,
	})
	if errors.Is(err, storage.ErrUnavailable) {
		fmt.Println("no etcd")
		return
	}
	defer store.Close()
	// Output: no etcd
}
