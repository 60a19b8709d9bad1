// Package ui serves a page that follows the objects of a cluster: who owns what, what just changed and by whom, and
// what needs a decision. A [Model] has what the page shows, and [Model.Handler] serves it. The page writes nothing.
//
// A Model gets only what may be shown of an object, so that no value of a Secret can reach the page.
package ui

import (
	"cmp"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/cmd/internal/page"
	"github.com/tenure-ssa/tenure/cmd/internal/view"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/ownership/fights"
	"github.com/tenure-ssa/tenure/typed"
)

// maxVersions is how many versions of an object are kept.
const maxVersions = 100

// Options say what a Model knows of its surroundings. All fields except the numbers have to be set.
type Options struct {
	// Place is where the objects are, for the head of the page.
	Place string
	Now   func() time.Time
	// Type returns the type of a kind; nil if it is not known. It may be called by several goroutines.
	Type    func(schema.GroupVersionKind) *typed.Type
	Suggest view.Suggest
	// IsIncomplete reports whether something could not be read.
	IsIncomplete func() bool
	// MaxBytes bounds the memory of all versions except the latest of each object; 0 means 64 MiB.
	MaxBytes int
	// Recent is how long a change is marked; 0 means 5 minutes.
	Recent time.Duration
}

// Facts are what a source knows of an object besides its versions.
type Facts struct {
	Applications []string
	Plan         *page.Object // what an apply of the manifest would do; nil for no manifest
	Findings     []page.Finding
}

// Key names an object.
type Key struct {
	Kind            schema.GroupKind
	Namespace, Name string
}

// String returns the text of the key on the page. No part of it has a slash.
func (k Key) String() string { return k.Kind.String() + "/" + k.Namespace + "/" + k.Name }

// KeyOf returns the key of an object.
func KeyOf(tree map[string]any) Key {
	u := &unstructured.Unstructured{Object: tree}
	return Key{u.GroupVersionKind().GroupKind(), u.GetNamespace(), u.GetName()}
}

// Model has the versions of objects, and facts about them. Its methods may be called by several goroutines.
//
// Invariants: bytes is the sum of the sizes of the versions that are not the latest of their objects, and old names
// them in the order in which they were seen; bytes is at most MaxBytes.
type Model struct {
	Options
	mu      sync.Mutex
	objects map[string]*object
	hues    map[string]int // of managers, in the order in which they were seen
	tracker *fights.Tracker
	bytes   int
	old     []*object
	changed chan struct{} // closed at the next change
}

// object is an object of the cluster, or one that only facts are about.
type object struct {
	summary
	tree     map[string]any // the latest version; nil for none
	number   int            // the number of the latest version
	versions []version
	facts    map[string]Facts // by source
	revision int              // counts the changes of the summary and of facts
}

// summary is what the list of objects says about an object.
type summary struct {
	Key      string            `json:"key"`
	Managers []string          `json:"managers"`
	Apps     []string          `json:"apps,omitempty"`
	Findings map[page.Mark]int `json:"findings,omitempty"` // how many, by kind
	Changed  int64             `json:"changed,omitempty"`  // when it was seen to change, in milliseconds; 0 for never
}

// version is a version of an object, as JSON, and how it differs from the version before.
type version struct {
	Number  int    `json:"number"`
	Seen    int64  `json:"seen"` // in milliseconds
	By      string `json:"by"`   // who wrote most of the changes; empty if that is not known
	Fields  int    `json:"fields"`
	data    []byte
	changes []fights.Change
}

func (v *version) size() int {
	n := len(v.data)
	for _, c := range v.changes {
		n += 256 + len(c.Old) + len(c.New) // the path and the side are bounded by what the field is in
	}
	return n
}

func (v *version) seen() time.Time { return time.UnixMilli(v.Seen) }

// New returns a Model without objects.
func New(o Options) *Model {
	o.MaxBytes, o.Recent = cmp.Or(o.MaxBytes, 64<<20), cmp.Or(o.Recent, 5*time.Minute)
	return &Model{Options: o, objects: map[string]*object{}, hues: map[string]int{}, changed: make(chan struct{}),
		tracker: fights.New(fights.Options{})}
}

// Observe takes a version of an object, or what may be shown of it, see secrets.Shown. tree must not be changed later.
func (m *Model) Observe(tree map[string]any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	data, err := json.Marshal(tree)
	if err != nil {
		return // no object of a server
	}
	now, u, o := m.Now(), &unstructured.Unstructured{Object: tree}, m.object(KeyOf(tree).String())
	before := &unstructured.Unstructured{Object: o.tree}
	isSame := o.tree != nil && before.GetUID() == u.GetUID()
	if isSame && before.GetResourceVersion() == u.GetResourceVersion() {
		return // it was listed again
	}
	next := version{Number: o.number + 1, Seen: now.UnixMilli(), data: data}
	if isSame {
		o.Changed = next.Seen
		next.changes = fights.Changes(o.tree, tree)
		next.By, next.Fields = m.writer(next.changes), len(next.changes)
	}
	m.tracker.Observe(tree, now)
	if n := len(o.versions); n > 0 {
		m.bytes += o.versions[n-1].size()
		m.old = append(m.old, o)
	}
	o.tree, o.number, o.Managers, o.versions = tree, next.Number, []string{}, append(o.versions, next)
	for _, entry := range u.GetManagedFields() {
		if name := printable.Text(entry.Manager); !slices.Contains(o.Managers, name) {
			o.Managers = append(o.Managers, name)
			m.hue(name)
		}
	}
	for len(o.versions) > maxVersions {
		m.forgetOldest(o, slices.Index(m.old, o))
	}
	for m.bytes > m.MaxBytes {
		m.forgetOldest(m.old[0], 0)
	}
	m.touch(o)
}

// writer returns who wrote most of some changes.
func (m *Model) writer(changes []fights.Change) (name string) {
	counts := map[string]int{}
	for _, c := range changes {
		if counts[c.Side.Manager]++; counts[c.Side.Manager] > counts[name] {
			name = c.Side.Manager
		}
	}
	if name = printable.Text(name); name != "" {
		m.hue(name)
	}
	return name
}

// forgetOldest forgets the oldest version of an object. i is the first index of the object in old.
func (m *Model) forgetOldest(o *object, i int) {
	m.bytes -= o.versions[0].size()
	o.versions = slices.Delete(o.versions, 0, 1)
	m.old = slices.Delete(m.old, i, i+1)
}

// Delete records that an object was deleted.
func (m *Model) Delete(tree map[string]any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	u := &unstructured.Unstructured{Object: tree}
	m.tracker.Forget(fights.Object{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(),
		Name: u.GetName(), UID: string(u.GetUID())})
	o := m.objects[KeyOf(tree).String()]
	if o == nil || (&unstructured.Unstructured{Object: o.tree}).GetUID() != u.GetUID() {
		return
	}
	for len(o.versions) > 1 {
		m.forgetOldest(o, slices.Index(m.old, o))
	}
	o.versions, o.tree, o.Managers = nil, nil, []string{}
	m.touch(o)
}

// SetFacts replaces the facts of a source, by the keys of objects. The objects need not exist.
func (m *Model) SetFacts(source string, facts map[Key]Facts) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := map[string]bool{}
	for key, f := range facts {
		o := m.object(key.String())
		o.facts[source] = f
		known[o.Key] = true
		m.touch(o)
	}
	for key, o := range m.objects {
		if _, ok := o.facts[source]; ok && !known[key] {
			delete(o.facts, source)
			m.touch(o)
		}
	}
}

// Tick looks for fights. It is to be called once a second.
func (m *Model) Tick() {
	m.mu.Lock()
	now := m.Now()
	found := map[Key]Facts{}
	for _, f := range m.tracker.Findings(now) {
		gv, _ := schema.ParseGroupVersion(f.APIVersion)
		key := Key{schema.GroupKind{Group: gv.Group, Kind: f.Object.Kind}, f.Namespace, f.Name}
		facts := found[key]
		facts.Findings = append(facts.Findings, view.FightOf(m.Suggest, f, now))
		found[key] = facts
	}
	m.mu.Unlock()
	m.SetFacts("fights", found)
}

// object returns the object of a key, which is new if there is none.
func (m *Model) object(key string) *object {
	if m.objects[key] == nil {
		m.objects[key] = &object{summary: summary{Key: key, Managers: []string{}}, facts: map[string]Facts{}}
	}
	return m.objects[key]
}

// touch notes that an object or the facts about it changed.
func (m *Model) touch(o *object) {
	o.revision++
	o.Apps, o.Findings = nil, map[page.Mark]int{} // empty is left out
	for _, f := range o.facts {
		o.Apps = append(o.Apps, f.Applications...)
		for _, finding := range f.Findings {
			o.Findings[finding.Kind] += finding.Count
		}
	}
	if len(o.versions) == 0 && len(o.facts) == 0 {
		delete(m.objects, o.Key)
	}
	close(m.changed)
	m.changed = make(chan struct{})
}

// hue returns the hue of a manager, which never changes.
func (m *Model) hue(name string) int {
	n, ok := m.hues[name]
	if !ok {
		n = page.Hue(len(m.hues))
		m.hues[name] = n
	}
	return n
}
