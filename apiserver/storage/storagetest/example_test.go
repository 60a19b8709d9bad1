package storagetest_test

import (
	"testing"

	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
	"github.com/tenure-ssa/tenure/apiserver/storage/storagetest"
)

// A test of a store runs the suite, with a function that opens an empty store. TestStore in
// each of the packages memory, bbolt and etcd is such a test.
func ExampleRun() {
	TestStore := func(t *testing.T) {
		storagetest.Run(t, func(*testing.T) storage.Store { return memory.New(memory.Options{}) })
	}
	_ = TestStore
}
