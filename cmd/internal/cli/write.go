package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/apiserver/stored"
	"github.com/tenure-ssa/tenure/cmd/internal/store"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
)

// writer writes documents to a store.
type writer struct {
	env       *Env
	catalog   *catalog
	store     store.Store
	request   request // what all writes have in common
	namespace string
	dryRun    bool
}

// outcome is what became of a document.
type outcome struct {
	reference string
	verb      string // as kubectl says it
	object    map[string]any
}

// attempts is how often a write is tried again when somebody else was faster.
const attempts = 5

// errPrecondition is what a write fails with whose document names another object
// or version of it than is stored.
var errPrecondition = errors.New("the stored object is another one")

// write writes one document. An error leaves the store as it was; reference says
// what it is about, as far as that could be told.
func (w *writer) write(tree map[string]any) (out outcome, err error) {
	k, key, tree, err := w.catalog.identify(tree, w.namespace)
	if err != nil {
		return out, err
	}
	out.reference = reference(k.GroupKind(), key.Name)
	r := w.request
	r.kind, r.types, r.now = k, w.catalog.types, w.env.Now
	if d := w.catalog.defined[k.GroupKind()]; d != nil {
		w.store.Define(d.kind, d.plural)
	}
	for range attempts {
		if out.object, out.verb, err = w.try(&r, key, tree); !errors.Is(err, store.ErrStale) {
			break
		}
	}
	return out, err
}

// try reads, computes and stores.
func (w *writer) try(r *request, key store.Key, given map[string]any) (_ map[string]any, verb string, err error) {
	kept, err := w.store.Get(key)
	if errors.Is(err, store.ErrNotFound) {
		kept, err = nil, nil
		if r.subresource != "" {
			err = errors.New("not found: a subresource is written on an object that is there")
		}
	}
	if err == nil {
		err = precondition(kept, given)
	}
	if err != nil {
		return nil, "", err
	}
	merged, err := w.merge(r, kept, given)
	if err != nil {
		return nil, "", err
	}

	// A definition that does not compile must not be stored: it would stand in
	// the way of everything that follows.
	var defined *definition
	if r.kind.GroupKind() == definitionKind {
		if defined, err = define(merged); err != nil {
			return nil, "", err
		}
	}
	verb = verbOf(r.apply, kept == nil)
	if kept != nil && sameButTimes(kept, merged) {
		merged, verb = kept, "unchanged"
	} else if !w.dryRun {
		if merged, err = w.store.Put(key, merged, textAt(kept, "resourceVersion")); err != nil {
			return nil, "", err
		}
	}
	if defined != nil {
		w.catalog.define(defined)
	}
	if w.dryRun {
		verb += " (dry run)"
	}
	return merged, verb, nil
}

// merge returns what becomes of the object that is stored, nil for none, as it is to
// be stored, but for its resourceVersion, which stays.
func (w *writer) merge(r *request, kept, given map[string]any) (map[string]any, error) {
	served, err := w.catalog.stored(r.kind, w.env.Now)
	if err != nil {
		return nil, err
	}
	live := kept
	if served != nil && r.readable(kept) {
		if live, err = read(served, kept); err != nil {
			return nil, err
		}
	}
	if r.served = nil; w.catalog.plain(r.kind.GroupVersionKind) {
		r.served = served
	}
	merged, err := r.run(live, given)
	if err != nil {
		return nil, err
	}
	w.fillIn(live, merged)
	if served == nil {
		countGeneration(live, merged)
		return merged, nil
	}
	merged["apiVersion"] = r.kind.GroupVersion().String()
	if merged, err = served.Prepare(merged, live, r.subresource); err != nil {
		return nil, err
	}
	if version := textAt(kept, "resourceVersion"); version != "" {
		merged["metadata"].(map[string]any)["resourceVersion"] = version
	}
	return merged, nil
}

// readable reports whether a stored object can be had at the version of the request.
func (r *request) readable(kept map[string]any) bool {
	version, _ := kept["apiVersion"].(string)
	return kept != nil && (!r.kind.webhook || version == r.kind.GroupVersion().String())
}

// read returns a stored object as a server would read it, at the kind's version.
func read(k *stored.Kind, kept map[string]any) (map[string]any, error) {
	data, err := json.Marshal(kept)
	if err != nil {
		return nil, err
	}
	return k.Decode(data, 0)
}

func verbOf(apply, created bool) string {
	switch {
	case apply:
		return "serverside-applied"
	case created:
		return "created"
	}
	return "replaced"
}

// precondition compares what a document says of the stored object with it.
func precondition(live, given map[string]any) error {
	for _, name := range []string{"uid", "resourceVersion"} {
		want := textAt(given, name)
		if want == "" {
			continue
		}
		if live == nil {
			// The uid of an object that is gone does no harm: it gets a new one.
			if name == "resourceVersion" {
				return fmt.Errorf(".metadata.%s: %w: %q was asked for, and there is none", name, errPrecondition, want)
			}
			continue
		}
		if got := textAt(live, name); got != want {
			return fmt.Errorf(".metadata.%s: %w: %q was asked for, %q is there", name, errPrecondition, want, got)
		}
	}
	return nil
}

// textAt returns a string of an object's metadata; "" when it is not there.
func textAt(tree map[string]any, name string) string {
	metadata, _ := tree["metadata"].(map[string]any)
	s, _ := metadata[name].(string)
	return s
}

// fillIn sets what a server sets and no client does, in place.
func (w *writer) fillIn(live, merged map[string]any) {
	metadata, ok := merged["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		merged["metadata"] = metadata
	}
	if live == nil {
		metadata["uid"] = w.env.NewUID()
		metadata["creationTimestamp"] = w.env.Now().UTC().Format(time.RFC3339)
		delete(metadata, "resourceVersion")
		delete(metadata, "deletionTimestamp")
		return
	}
	before, _ := live["metadata"].(map[string]any)
	for _, name := range []string{"uid", "creationTimestamp", "generation", "resourceVersion", "deletionTimestamp"} {
		if v, ok := before[name]; ok {
			metadata[name] = v
		} else {
			delete(metadata, name)
		}
	}
}

// countGeneration counts the generation of an object of which no more is known than
// its schema, in place: 1 when it is created, one more when what is desired changes.
func countGeneration(live, merged map[string]any) {
	metadata := merged["metadata"].(map[string]any)
	if live == nil {
		metadata["generation"] = int64(1)
	} else if !typed.Equal(desired(live), desired(merged)) {
		generation, _ := metadata["generation"].(int64)
		metadata["generation"] = generation + 1
	}
}

// desired returns what an object's generation counts the changes of.
func desired(tree map[string]any) map[string]any {
	tree = maps.Clone(tree)
	for _, name := range []string{"apiVersion", "kind", "metadata", "status"} {
		delete(tree, name)
	}
	return tree
}

// sameButTimes reports whether two objects are equal but for the times of their
// managed fields. A write that would change nothing else is none: that happens
// when an intent has values in fields that are reset.
func sameButTimes(live, merged map[string]any) bool {
	return typed.Equal(withoutTimes(live), withoutTimes(merged))
}

func withoutTimes(tree map[string]any) map[string]any {
	list, _ := managedFields(tree).([]any)
	if len(list) == 0 {
		return managedfields.With(tree, nil)
	}
	list, _ = runtime.DeepCopyJSONValue(list).([]any)
	for _, item := range list {
		if entry, ok := item.(map[string]any); ok {
			delete(entry, "time")
		}
	}
	return managedfields.With(tree, list)
}
