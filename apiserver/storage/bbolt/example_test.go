package bbolt_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/tenure-ssa/tenure/apiserver/storage/bbolt"
)

// What was written is in the file when it is opened again.
func Example() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "objects.db")

	store, err := bbolt.Open(file, bbolt.Options{})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := store.Put(ctx, "/pods/default/a", []byte("one"), 0); err != nil {
		log.Fatal(err)
	}
	if err := store.Close(); err != nil {
		log.Fatal(err)
	}

	if store, err = bbolt.Open(file, bbolt.Options{}); err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	record, _, err := store.Get(ctx, "/pods/default/a", 0)
	fmt.Println(string(record.Value), err)
	// Output: one <nil>
}
