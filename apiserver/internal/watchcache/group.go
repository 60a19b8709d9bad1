package watchcache

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// A Selection is the set of objects that a watch sees, at one version.
type Selection struct {
	// Scope is the key of one object, or a prefix of keys that ends with '/'.
	Scope    string
	Strategy resources.Strategy
	Decode   Decoder
	// Read returns the labels of a stored object and, if withFields, its selectable fields. It returns false if the
	// object must be decoded. nil if all must be.
	Read func(stored []byte, withFields bool) (labels.Set, fields.Set, bool)
	// Labels and Fields are empty if all objects in the scope are selected.
	Labels labels.Selector
	Fields fields.Selector
}

// id identifies equal selections.
type id struct {
	strategy       resources.Strategy
	labels, fields string
}

func (s Selection) id() id { return id{s.Strategy, s.Labels.String(), s.Fields.String()} }

// IsEverything reports whether all objects in the scope are selected.
func (s Selection) IsEverything() bool { return s.Labels.Empty() && s.Fields.Empty() }

// Matches reports whether an item in the scope is selected.
func (s Selection) Matches(item *Item) (bool, error) {
	if item == nil || s.IsEverything() {
		return item != nil, nil
	}
	labelSet, fieldSet, err := item.selectable(&s, !s.Fields.Empty())
	if err != nil {
		return false, err
	}
	return s.Labels.Matches(labelSet) && (s.Fields.Empty() || s.Fields.Matches(fieldSet)), nil
}

// entry returns what an event in the scope means for a selection: ADDED if the object starts to
// match, DELETED if it stops to match. ok is false if it concerns no selected object.
func (s Selection) entry(event *Event) (e Entry, ok bool) {
	e.Event = event
	is, err := s.Matches(event.Item)
	if err != nil {
		return Entry{Event: event, Err: err}, true
	}
	was, err := s.Matches(event.Previous)
	if err != nil {
		return Entry{Event: event, Err: err}, true
	}
	switch {
	case is && was:
		e.Type = apiwatch.Modified
	case is:
		e.Type = apiwatch.Added
	case was:
		e.Type = apiwatch.Deleted
	default:
		return Entry{}, false
	}
	return e, true
}

// Contains reports whether a key is in the scope.
func (s Selection) Contains(key string) bool {
	return key == s.Scope || strings.HasSuffix(s.Scope, "/") && strings.HasPrefix(key, s.Scope)
}

// An Entry is an event as the watches of a group see it. The object of a DELETED event is the
// previous one.
type Entry struct {
	Event *Event
	Type  apiwatch.EventType
	Err   error // the object can't be decoded
}

// A group is the watches of one selection.
type group struct {
	selection Selection

	mu   sync.Mutex
	log  []Entry // what watches have not sent, and a little more
	base int64   // the number of entries that were removed from log
	trim int     // the length of log at which it is trimmed
	subs []*Subscription
}

// minTrim is the minimum length at which logs are trimmed.
const minTrim = 64

// add appends an entry and wakes the watches that wait for one.
func (g *group) add(e Entry) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.log = append(g.log, e)
	if len(g.log) >= g.trim {
		g.shorten()
	}
	for _, s := range g.subs {
		s.rouse()
	}
}

// shorten removes the entries that all watches have sent, and ends watches that are too far
// behind.
func (g *group) shorten() {
	end := g.base + int64(len(g.log))
	first := end
	for _, s := range g.subs {
		at := s.sent.Load()
		if end-at > s.cache.limits.behind {
			s.err = ErrTooSlow
			continue
		}
		first = min(first, at)
	}
	// A new slice, because watches read the old one.
	g.log = slices.Clone(g.log[first-g.base:])
	g.base = first
	g.trim = max(minTrim, 2*len(g.log))
}

// scope is the groups of one Selection.Scope. Groups whose selectors require one value of a
// label or field are found by it.
type scope struct {
	groups  map[id]*group
	plain   []*group
	indexes map[indexKey]map[string][]*group
}

// indexKey is a label or field that selectors require a value of.
type indexKey struct {
	strategy resources.Strategy
	isLabel  bool
	name     string
}

func newScope() *scope {
	return &scope{groups: map[id]*group{}, indexes: map[indexKey]map[string][]*group{}}
}

// term returns a label or field of which a selection requires a value.
func (s Selection) term() (key indexKey, value string, ok bool) {
	for _, r := range s.Fields.Requirements() {
		if r.Operator == selection.Equals || r.Operator == selection.DoubleEquals {
			return indexKey{s.Strategy, false, r.Field}, r.Value, true
		}
	}
	requirements, _ := s.Labels.Requirements()
	for _, r := range requirements {
		values := r.ValuesUnsorted()
		if op := r.Operator(); len(values) == 1 &&
			(op == selection.Equals || op == selection.DoubleEquals || op == selection.In) {
			return indexKey{s.Strategy, true, r.Key()}, values[0], true
		}
	}
	return key, "", false
}

// group returns the group of a selection, which it adds if there is none.
func (sc *scope) group(s Selection) *group {
	name := s.id()
	g := sc.groups[name]
	if g != nil {
		return g
	}
	g = &group{selection: s, trim: minTrim}
	sc.groups[name] = g
	key, value, ok := s.term()
	if !ok {
		sc.plain = append(sc.plain, g)
		return g
	}
	if sc.indexes[key] == nil {
		sc.indexes[key] = map[string][]*group{}
	}
	sc.indexes[key][value] = append(sc.indexes[key][value], g)
	return g
}

// remove removes a group without watches.
func (sc *scope) remove(g *group) {
	is := func(other *group) bool { return other == g }
	delete(sc.groups, g.selection.id())
	key, value, ok := g.selection.term()
	if !ok {
		sc.plain = slices.DeleteFunc(sc.plain, is)
		return
	}
	index := sc.indexes[key]
	if index[value] = slices.DeleteFunc(index[value], is); len(index[value]) == 0 {
		delete(index, value)
	}
	if len(index) == 0 {
		delete(sc.indexes, key)
	}
}

// candidates calls do for all groups that an event may concern.
func (sc *scope) candidates(event *Event, do func(*group)) {
	for _, g := range sc.plain {
		do(g)
	}
	for key, index := range sc.indexes {
		now, err := key.value(index, event.Item)
		before, errBefore := key.value(index, event.Previous)
		if err != nil || errBefore != nil {
			for _, groups := range index {
				for _, g := range groups {
					do(g) // finds the error as well
				}
			}
			continue
		}
		for _, g := range index[now] {
			do(g)
		}
		if before != now {
			for _, g := range index[before] {
				do(g)
			}
		}
	}
}

// value returns the value of the label or field in an item; "" if the item is nil or has none.
func (k indexKey) value(index map[string][]*group, item *Item) (string, error) {
	if item == nil {
		return "", nil
	}
	var of *Selection // they all have the strategy
	for _, groups := range index {
		of = &groups[0].selection
		break
	}
	labelSet, fieldSet, err := item.selectable(of, !k.isLabel)
	if err != nil {
		return "", err
	}
	if k.isLabel {
		return labelSet.Get(k.name), nil
	}
	return fieldSet.Get(k.name), nil
}

// dispatch adds an event to the logs of the groups that it concerns.
func (c *Cache) dispatch(event *Event) {
	add := func(g *group) {
		if e, ok := g.selection.entry(event); ok {
			g.add(e)
		}
	}
	for i := len(c.prefix); i <= len(event.Key); i++ {
		if i == len(event.Key) || event.Key[i-1] == '/' {
			if sc := c.scopes[event.Key[:i]]; sc != nil {
				sc.candidates(event, add)
			}
		}
	}
}

// wakeAll wakes all watches, so that they find out that the cache has ended.
func (c *Cache) wakeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, sc := range c.scopes {
		for _, g := range sc.groups {
			g.mu.Lock()
			for _, s := range g.subs {
				s.rouse()
			}
			g.mu.Unlock()
		}
	}
}
