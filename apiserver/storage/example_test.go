package storage_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
)

// A write expects the revision that its writer has read. Of two writers one gets a conflict,
// with the record as it is now.
func Example() {
	ctx := context.Background()
	var store storage.Store = memory.New(memory.Options{})
	defer store.Close()
	first, err := store.Put(ctx, "/pods/default/a", []byte("one"), 0)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := store.Put(ctx, "/pods/default/a", []byte("two"), first); err != nil {
		log.Fatal(err)
	}
	_, err = store.Put(ctx, "/pods/default/a", []byte("three"), first)
	var conflict *storage.ConflictError
	fmt.Println(errors.As(err, &conflict), string(conflict.Current.Value))
	// Output: true two
}
