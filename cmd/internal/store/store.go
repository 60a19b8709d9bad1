// Package store keeps objects: one small interface, and two stores behind it, a
// file and memory.
//
//	s, err := store.OpenFile("tenure.db", store.Options{})
//	...
//	stored, err := s.Put(key, obj, "")      // create
//	stored, err = s.Put(key, changed, stored's resourceVersion)
//
// # Rules
//
//   - An object is a plain JSON tree. The store sets its metadata.resourceVersion
//     and knows nothing else about it.
//   - resourceVersions come from one counter for the whole store: each write gets
//     the next, deletes too, and none is ever given twice.
//   - Writes are compare-and-swap: they name the resourceVersion that they
//     replace and fail with [ErrStale] when another one is stored. Whoever reads,
//     computes and writes tries again then, and no lock is held in between.
//   - A write is there as a whole or not at all, whatever happens to the process.
//   - What goes in is not kept and what comes out is the caller's own.
//   - Every method may be called from several goroutines at once.
package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Key is where an object is. Namespace is empty for objects of cluster-scoped
// kinds, and Group for those of the core group.
type Key struct {
	Group, Kind, Namespace, Name string
}

// Store keeps objects. Its methods are what a map with versions can do, so that
// a store of another kind (etcd, a server) is a small thing to write.
type Store interface {
	// Get returns the object at key, or ErrNotFound.
	Get(key Key) (map[string]any, error)
	// List returns the objects whose keys equal match where match is not empty,
	// ordered by group, kind, namespace and name.
	List(match Key) ([]map[string]any, error)
	// Put stores obj in the place of the object of resourceVersion over, which is
	// "" when there must be none, and returns obj as it is stored. The error is
	// ErrStale when something else is there.
	Put(key Key, obj map[string]any, over string) (map[string]any, error)
	// Delete removes the object of resourceVersion over. The error is ErrNotFound
	// or ErrStale when it is not there.
	Delete(key Key, over string) error
	// Close gives up what the store holds; it must not be used afterwards.
	Close() error
}

var (
	// ErrNotFound says that there is no object at a key.
	ErrNotFound = errors.New("not found")
	// ErrStale says that another object is stored than the one to be replaced.
	ErrStale = errors.New("the object has been changed in the meantime")
)

// separator stands between the parts of a key as text. No name has a NUL in it,
// and it sorts before everything else, so that text sorts as the parts do.
const separator = "\x00"

// text returns the key as it is stored.
func (k Key) text() (string, error) {
	if k.Kind == "" || k.Name == "" {
		return "", errors.New("key: kind and name are required")
	}
	parts := []string{k.Group, k.Kind, k.Namespace, k.Name}
	for _, part := range parts {
		if strings.Contains(part, separator) {
			return "", fmt.Errorf("key: %q has a NUL in it", part)
		}
	}
	return strings.Join(parts, separator), nil
}

func parseKey(text string) (Key, error) {
	parts := strings.Split(text, separator)
	if len(parts) != 4 {
		return Key{}, fmt.Errorf("key %q: expected four parts, got %d", text, len(parts))
	}
	return Key{parts[0], parts[1], parts[2], parts[3]}, nil
}

// matches reports whether k is what match asks for.
func (k Key) matches(match Key) bool {
	same := func(want, got string) bool { return want == "" || want == got }
	return same(match.Group, k.Group) && same(match.Kind, k.Kind) &&
		same(match.Namespace, k.Namespace) && same(match.Name, k.Name)
}

// versionOf returns the resourceVersion of an object; "" for no object.
func versionOf(obj map[string]any) string {
	metadata, _ := obj["metadata"].(map[string]any)
	version, _ := metadata["resourceVersion"].(string)
	return version
}

// encode returns obj at a resourceVersion as it is stored.
func encode(obj map[string]any, version uint64) ([]byte, error) {
	metadata, _ := obj["metadata"].(map[string]any)
	if metadata = maps.Clone(metadata); metadata == nil {
		metadata = map[string]any{}
	}
	metadata["resourceVersion"] = strconv.FormatUint(version, 10)
	obj = maps.Clone(obj)
	if obj == nil {
		obj = map[string]any{}
	}
	obj["metadata"] = metadata
	// Not json.Marshal: a stored < should read as one.
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(obj); err != nil {
		return nil, fmt.Errorf("object: %w", err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// decode reads what encode wrote, with whole numbers as int64.
func decode(data []byte) (map[string]any, error) {
	var obj map[string]any
	if err := utiljson.Unmarshal(data, &obj); err != nil {
		return nil, fmt.Errorf("stored object: %w", err)
	}
	return obj, nil
}

// check compares what is stored with what a write wants to replace.
func check(stored []byte, over string) error {
	if stored == nil {
		if over != "" {
			return ErrStale
		}
		return nil
	}
	obj, err := decode(stored)
	if err != nil {
		return err
	}
	if version := versionOf(obj); version != over || over == "" {
		return ErrStale
	}
	return nil
}
