package memory_test

import (
	"context"
	"fmt"
	"log"

	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
)

// A list is of one revision, and a watch from that revision on misses nothing.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	store := memory.New(memory.Options{})
	defer store.Close()
	if _, err := store.Put(ctx, "/pods/default/a", []byte("one"), 0); err != nil {
		log.Fatal(err)
	}
	page, err := store.List(ctx, "/pods/", storage.ListOptions{})
	if err != nil {
		log.Fatal(err)
	}
	watcher, err := store.Watch(ctx, "/pods/", page.Revision)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := store.Delete(ctx, "/pods/default/a", page.Records[0].Revision); err != nil {
		log.Fatal(err)
	}
	event := <-watcher.Events()
	fmt.Println(event.Key, event.Value == nil, string(event.Previous.Value))
	// Output: /pods/default/a true one
}
