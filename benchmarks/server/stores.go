package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/bbolt"
	"github.com/tenure-ssa/tenure/apiserver/storage/etcd"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
)

// store is one that a server can have.
type store struct {
	name string
	// open opens an empty one; it is errAbsent if there is none on this machine.
	open func(context.Context) (*records, error)
}

// records are an open store.
type records struct {
	storage.Store
	close func() error
	etcd  string // its URL, if the store is one
}

var errAbsent = errors.New("not on this machine")

var stores = []store{
	{"memory", func(context.Context) (*records, error) {
		s := memory.New(memory.Options{})
		return &records{Store: s, close: s.Close}, nil
	}},
	{"bbolt", openFile},
	{"etcd", openEtcd},
}

func storeOf(name string) (store, error) {
	for _, s := range stores {
		if s.name == name {
			return s, nil
		}
	}
	return store{}, fmt.Errorf("there is no store %q", name)
}

func openFile(context.Context) (*records, error) {
	dir, err := os.MkdirTemp("", "tenure-bench-")
	if err != nil {
		return nil, err
	}
	s, err := bbolt.Open(filepath.Join(dir, "tenure.db"), bbolt.Options{})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &records{Store: s, close: func() error { return errors.Join(s.Close(), os.RemoveAll(dir)) }}, nil
}

// openEtcd starts an etcd of one member, on loopback ports. It does not wait for the disk, as that of
// -against does not: the disk is not measured.
func openEtcd(ctx context.Context) (*records, error) {
	program, err := exec.LookPath("etcd")
	if err != nil {
		return nil, errAbsent
	}
	dir, err := os.MkdirTemp("", "tenure-bench-")
	if err != nil {
		return nil, err
	}
	client, peer, err := freeURLs()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	process := exec.Command(program, "--data-dir", dir, "--name", "bench", "--log-level", "error",
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "bench="+peer,
		"--unsafe-no-fsync")
	if err := process.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	stop := func() error {
		_ = process.Process.Kill()
		_ = process.Wait() // it was killed
		return os.RemoveAll(dir)
	}
	s, err := etcd.Open(ctx, etcd.Options{Config: clientv3.Config{Endpoints: []string{client}}, Timeout: 30 * time.Second})
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	return &records{Store: s, close: func() error { return errors.Join(s.Close(), stop()) }, etcd: client}, nil
}

// freeURLs returns two loopback URLs that nobody listens on.
func freeURLs() (a, b string, err error) {
	var urls [2]string
	for i := range urls {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", "", err
		}
		defer l.Close() // both at the end, so that they differ
		urls[i] = "http://" + l.Addr().String()
	}
	return urls[0], urls[1], nil
}
