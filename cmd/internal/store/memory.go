package store

import (
	"maps"
	"slices"
	"sync"
)

// Memory is a store that is gone with the process. The zero value is an empty
// store.
type Memory struct {
	mu      sync.Mutex
	objects map[string][]byte
	last    uint64 // the latest resourceVersion
}

var _ Store = (*Memory)(nil)

// Get implements [Store].
func (m *Memory) Get(key Key) (map[string]any, error) {
	text, err := key.text()
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.objects[text]
	if !ok {
		return nil, ErrNotFound
	}
	return decode(data)
}

// List implements [Store].
func (m *Memory) List(match Key) ([]map[string]any, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []map[string]any
	for _, text := range slices.Sorted(maps.Keys(m.objects)) {
		key, err := parseKey(text)
		if err != nil {
			return nil, err
		}
		if !key.matches(match) {
			continue
		}
		obj, err := decode(m.objects[text])
		if err != nil {
			return nil, err
		}
		out = append(out, obj)
	}
	return out, nil
}

// Put implements [Store].
func (m *Memory) Put(key Key, obj map[string]any, over string) (map[string]any, error) {
	text, err := key.text()
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := check(m.objects[text], over); err != nil {
		return nil, err
	}
	data, err := encode(obj, m.last+1)
	if err != nil {
		return nil, err
	}
	if m.objects == nil {
		m.objects = map[string][]byte{}
	}
	m.objects[text] = data
	m.last++
	return decode(data)
}

// Delete implements [Store].
func (m *Memory) Delete(key Key, over string) error {
	text, err := key.text()
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.objects[text]
	if !ok {
		return ErrNotFound
	}
	if err := check(data, over); err != nil {
		return err
	}
	delete(m.objects, text)
	m.last++
	return nil
}

// Close implements [Store].
func (m *Memory) Close() error { return nil }
