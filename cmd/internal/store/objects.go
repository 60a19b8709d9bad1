package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/stored"
)

// builtin are the kinds that every server has.
var builtin = sync.OnceValues(func() (*stored.Kinds, error) { return stored.NewKinds(stored.Options{}) })

// definitionKind is the kind of CustomResourceDefinitions.
var definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// Objects are the objects in the records of a server.
type Objects struct {
	records storage.Store

	mu      sync.Mutex
	given   map[schema.GroupKind]string // plurals, by Define
	defined map[schema.GroupKind]string // plurals, by the definitions that are stored; nil: not read yet
}

var _ Store = (*Objects)(nil)

// New returns the objects in the records of a server. Close closes them.
func New(records storage.Store) *Objects {
	return &Objects{records: records, given: map[schema.GroupKind]string{}}
}

// Define implements [Store].
func (s *Objects) Define(kind schema.GroupKind, plural string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.given[kind] = plural
}

// prefix returns what the keys of the records of a kind start with.
func (s *Objects) prefix(kind schema.GroupKind) (string, error) {
	kinds, err := builtin()
	if err != nil {
		return "", err
	}
	if prefix := kinds.Prefix(kind); prefix != "" {
		return prefix, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.defined == nil {
		if s.defined, err = s.plurals(kinds); err != nil {
			return "", err
		}
	}
	plural := cmp.Or(s.defined[kind], s.given[kind])
	if plural == "" {
		guess, _ := meta.UnsafeGuessKindToResource(kind.WithVersion(""))
		plural = guess.Resource
	}
	return stored.Prefix(kind.Group, plural), nil
}

// plurals returns the names that the definitions in the store give to their kinds.
func (s *Objects) plurals(kinds *stored.Kinds) (map[schema.GroupKind]string, error) {
	page, err := s.records.List(context.Background(), kinds.Prefix(definitionKind), storage.ListOptions{})
	if err != nil {
		return nil, err
	}
	out := map[schema.GroupKind]string{}
	for _, record := range page.Records {
		var definition struct {
			Spec struct {
				Group string `json:"group"`
				Names struct {
					Plural string `json:"plural"`
					Kind   string `json:"kind"`
				} `json:"names"`
			} `json:"spec"`
		}
		if err := json.Unmarshal(record.Value, &definition); err != nil {
			return nil, fmt.Errorf("stored object %s: %w", record.Key, err)
		}
		spec := definition.Spec
		out[schema.GroupKind{Group: spec.Group, Kind: spec.Names.Kind}] = spec.Names.Plural
	}
	return out, nil
}

// place returns the key of the record of an object.
func (s *Objects) place(key Key) (string, error) {
	if key.Kind == "" || key.Name == "" {
		return "", errors.New("key: kind and name are required")
	}
	for _, part := range []string{key.Namespace, key.Name} {
		if strings.ContainsRune(part, '/') {
			return "", fmt.Errorf("key: %q has a / in it", part)
		}
	}
	prefix, err := s.prefix(schema.GroupKind{Group: key.Group, Kind: key.Kind})
	if err != nil {
		return "", err
	}
	if key.Namespace != "" {
		prefix += key.Namespace + "/"
	}
	return prefix + key.Name, nil
}

// Get implements [Store].
func (s *Objects) Get(key Key) (map[string]any, error) {
	place, err := s.place(key)
	if err != nil {
		return nil, err
	}
	record, _, err := s.records.Get(context.Background(), place, 0)
	if err != nil {
		return nil, err
	}
	if record == nil {
		return nil, ErrNotFound
	}
	return decode(record)
}

// List implements [Store]. It decodes all objects of the kind.
func (s *Objects) List(match Key) (out []map[string]any, err error) {
	prefix := "/"
	if match.Kind != "" {
		if prefix, err = s.prefix(schema.GroupKind{Group: match.Group, Kind: match.Kind}); err != nil {
			return nil, err
		}
	}
	page, err := s.records.List(context.Background(), prefix, storage.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range page.Records {
		obj, err := decode(&page.Records[i])
		if err != nil {
			return nil, err
		}
		if match.Namespace == "" || keyOf(obj).Namespace == match.Namespace {
			out = append(out, obj)
		}
	}
	slices.SortStableFunc(out, func(x, y map[string]any) int {
		a, b := keyOf(x), keyOf(y)
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

// keyOf returns the key of an object as it says itself.
func keyOf(obj map[string]any) (key Key) {
	apiVersion, _ := obj["apiVersion"].(string)
	if gv, err := schema.ParseGroupVersion(apiVersion); err == nil {
		key.Group = gv.Group
	}
	key.Kind, _ = obj["kind"].(string)
	metadata, _ := obj["metadata"].(map[string]any)
	key.Namespace, _ = metadata["namespace"].(string)
	key.Name, _ = metadata["name"].(string)
	return key
}

// Put implements [Store].
func (s *Objects) Put(key Key, obj map[string]any, over string) (map[string]any, error) {
	place, err := s.place(key)
	if err != nil {
		return nil, err
	}
	expected, err := revision(over)
	if err != nil {
		return nil, err
	}
	value, err := encode(obj)
	if err != nil {
		return nil, err
	}
	if err := stored.CheckSize(value); err != nil {
		return nil, err
	}
	defer s.changed(key)
	at, err := s.records.Put(context.Background(), place, value, expected)
	if err != nil {
		return nil, staleness(err)
	}
	return decode(&storage.Record{Key: place, Value: value, Revision: at})
}

// Delete implements [Store].
func (s *Objects) Delete(key Key, over string) error {
	place, err := s.place(key)
	if err != nil {
		return err
	}
	expected, err := revision(over)
	if err != nil {
		return err
	}
	defer s.changed(key)
	_, err = s.records.Delete(context.Background(), place, expected)
	var conflict *storage.ConflictError
	if errors.As(err, &conflict) && conflict.Current == nil {
		return ErrNotFound
	}
	return staleness(err)
}

// changed forgets what a write may have changed.
func (s *Objects) changed(key Key) {
	if key.Group == definitionKind.Group && key.Kind == definitionKind.Kind {
		s.mu.Lock()
		s.defined = nil
		s.mu.Unlock()
	}
}

// Close implements [Store].
func (s *Objects) Close() error { return s.records.Close() }

// revision reads a resourceVersion; "" stands for no object.
func revision(version string) (int64, error) {
	if version == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(version, 10, 64)
	if err != nil || n <= 0 {
		return 0, ErrStale // no object has it
	}
	return n, nil
}

func staleness(err error) error {
	var conflict *storage.ConflictError
	if errors.As(err, &conflict) {
		return ErrStale
	}
	return err
}

// encode returns an object as a server stores it.
func encode(obj map[string]any) ([]byte, error) {
	kinds, err := builtin()
	if err != nil {
		return nil, err
	}
	key := keyOf(obj)
	apiVersion, _ := obj["apiVersion"].(string)
	gv, _ := schema.ParseGroupVersion(apiVersion)
	kind, err := kinds.Kind(gv.WithKind(key.Kind))
	switch {
	case err == nil:
		return kind.Encode(obj)
	case !errors.Is(err, stored.ErrNotServed):
		return nil, err
	}
	metadata, _ := obj["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	delete(metadata, "resourceVersion")
	obj = maps.Clone(obj)
	obj["metadata"] = metadata
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("object: %w", err)
	}
	return data, nil
}

// decode returns the object of a record, with whole numbers as int64.
func decode(record *storage.Record) (map[string]any, error) {
	var obj map[string]any
	if err := utiljson.Unmarshal(record.Value, &obj); err != nil {
		return nil, fmt.Errorf("stored object %s: %w", record.Key, err)
	}
	metadata, ok := obj["metadata"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("stored object %s: .metadata: expected an object", record.Key)
	}
	metadata["resourceVersion"] = strconv.FormatInt(record.Revision, 10)
	return obj, nil
}
