package oracle

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// Definition is a kind that both engines know, for example from a CustomResourceDefinition. Conversion between its
// versions changes only the apiVersion.
type Definition struct {
	Kind     schema.GroupKind
	Versions []string
	// Schemas are the schemas of the objects at each version, without references.
	Schemas   map[string]*spec.Schema
	HasStatus bool // status is a subresource
	Upstream  managedfields.TypeConverter
	Tenure    *openapi.Registry
	// Prune removes from an object all fields that the version does not declare, as a server does when it reads the
	// object. Prune is nil for histories on a server.
	Prune func(version string, object map[string]any)
	// Server returns a Server that makes the same writes as both engines, to a new object; nil if there is no server.
	Server func() Server
}

// History has the results of writes to one object. The first write creates the object.
type History struct {
	Writes []Write
	Stored int // number of writes that upstream, or the server, did not reject
	// Refused counts the writes that a server rejected for reasons other than conflicts, by reason.
	Refused map[string]int
	// Uncompared is the number of writes that were sent but not compared, for example because entries of other versions
	// must be converted.
	Uncompared int
	// Met counts the differences that were found and have a number in doc/differences.md, by number.
	Met map[int]int
	// Err is the difference without a number, or the panic, that ended the history. The last write caused it.
	Err error
}

// Random makes random writes, always the same for one seed.
func (d *Definition) Random(seed uint64) History {
	g := NewGen(Random(seed))
	if g.Validated, g.served = true, d.Server != nil; g.served {
		g.Profile = profiles["small"] // so that differences are readable
	}
	return d.play(func(w *World, h *History) {
		if g.served && seed%3 > 0 { // most writes should be comparable
			w.only = d.Versions[int(seed/3)%len(d.Versions)]
		}
		for version, s := range d.Schemas {
			if g.served {
				s = sendable(s)
			}
			w.parts[version] = some(s, seed, "", nil)
		}
		for len(h.Writes) < maxSteps && !g.Done() && h.Err == nil {
			w.write(g.write(w), h)
		}
	})
}

// Replay makes the given writes.
func (d *Definition) Replay(writes []Write) History {
	return d.play(func(w *World, h *History) {
		for _, write := range writes {
			write.Object.SetGroupVersionKind(w.kind(write.Version)) // Shrink may have removed the kind
			if w.write(write, h); h.Err != nil {
				break
			}
		}
	})
}

// play makes writes to a new object.
func (d *Definition) play(do func(w *World, h *History)) (h History) {
	w := d.world()
	h.Met, h.Refused = map[int]int{}, map[string]int{}
	if d.Server != nil {
		w.server = d.Server()
		defer func() { h.Err = errors.Join(h.Err, w.server.Close()) }()
	}
	do(w, &h)
	return h
}

func (d *Definition) world() *World {
	return &World{
		defined: d, isVaried: len(d.Versions) > 1, upstream: d.Upstream, types: d.Tenure, story: &strings.Builder{},
		managers: map[string]*fieldmanager.FieldManager{}, intents: map[string]map[string]any{},
		parts: map[string]*spec.Schema{}, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
}

// write makes a write with both engines, and stores its result.
func (w *World) write(write Write, h *History) {
	if w.server == nil {
		h.Writes = append(h.Writes, write)
	}
	defer func() {
		if p := recover(); p != nil {
			h.Err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	if w.server != nil {
		w.serve(write, h)
		return
	}
	out, met, err := w.both(write)
	for _, number := range met {
		h.Met[number]++
	}
	if h.Err = err; out != nil {
		h.Stored++
		w.Store(out, func() int { return 1 })
	}
}

// fields returns the schemas of all fields of an object except metadata.
func (w *World) fields(version string) map[string]*spec.Schema {
	if w.defined == nil {
		return map[string]*spec.Schema{"spec": &w.Spec, "status": &w.Spec}
	}
	out := map[string]*spec.Schema{}
	for name, s := range w.parts[version].Properties {
		if name != "metadata" && name != "apiVersion" && name != "kind" {
			out[name] = &s
		}
	}
	return out
}

func (w *World) prune(version string, object map[string]any) {
	if w.defined != nil && w.defined.Prune != nil {
		w.defined.Prune(version, object)
	}
}

// some returns a schema with only some of its properties, and all key fields, so that a few random bytes are enough to
// make values of it. One history uses some properties, and many histories use all of them. The seed chooses properties
// by path, so that all versions have the same ones.
func some(s *spec.Schema, seed uint64, path string, keys []string) *spec.Schema {
	rank := func(name string) uint64 {
		hash := fnv.New64a()
		fmt.Fprint(hash, path, "/", name)
		return rand.NewPCG(seed, hash.Sum64()).Uint64()
	}
	names := slices.SortedFunc(maps.Keys(s.Properties), func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	limit := max(1, 5-strings.Count(path, "/"))
	out := *s
	out.Properties = map[string]spec.Schema{}
	for i, name := range names {
		if sub := s.Properties[name]; i <= int(rank("")%uint64(limit)) || slices.Contains(keys, name) {
			out.Properties[name] = *some(&sub, seed, path+"/"+name, nil)
		}
	}
	if s.Extensions["x-kubernetes-embedded-resource"] == true {
		out.Properties["metadata"] = Metadata
	}
	out.Required = slices.DeleteFunc(slices.Clone(s.Required), func(name string) bool {
		_, ok := out.Properties[name]
		return !ok
	})
	if elem := elemOf(s); elem != nil {
		out.AdditionalProperties = &spec.SchemaOrBool{Allows: true, Schema: some(elem, seed, path, nil)}
	}
	if typeOf(s) == "array" {
		item := &spec.Schema{} // any value
		if s.Items != nil && s.Items.Schema != nil {
			item = some(s.Items.Schema, seed, path, keysOf(s))
		}
		out.Items = &spec.SchemaOrArray{Schema: item}
	}
	return &out
}

// Shrink returns a history that also fails, with fewer and smaller writes: if one more write, field or item were
// removed, the history would not fail. Shrink replays at most tries histories, and then returns the smallest failing
// history so far. It may change the writes of h.
func (d *Definition) Shrink(h History, tries int) History {
	fails := func(writes []Write) bool {
		if tries--; tries < 0 {
			return false
		}
		again := d.Replay(writes) // may fail before the last write
		if again.Err != nil {
			h = again
		}
		return again.Err != nil
	}
	for size := 0; size != len(fmt.Sprint(h.Writes)); {
		size = len(fmt.Sprint(h.Writes))
		for i := len(h.Writes) - 2; i >= 0; i = min(i, len(h.Writes)) - 1 {
			fails(slices.Delete(slices.Clone(h.Writes), i, i+1))
		}
		for _, write := range h.Writes {
			reduce(write.Object.Object, nil, func() bool { return fails(h.Writes) })
		}
	}
	return h
}

// reduce removes all parts of a value, in place, without which the history still fails. If v is a list, set replaces it
// with a shorter list.
func reduce(v any, set func(any), fails func() bool) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range sortedKeys(v) {
			old := v[name]
			if delete(v, name); !fails() {
				v[name] = old
				reduce(old, func(replacement any) { v[name] = replacement }, fails)
			}
		}
	case []any:
		for i, item := range slices.Backward(v) {
			less := slices.Delete(slices.Clone(v), i, i+1)
			if set(less); fails() {
				v = less
			} else {
				set(v)
				reduce(item, func(current any) { v[i] = current }, fails)
			}
		}
	}
}
