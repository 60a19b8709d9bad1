// Package ui serves a page that watches the objects of a cluster: it shows the owners of fields, recent changes and
// who made them, and problems that the user must decide about. A [Model] has the data of the page, and
// [Model.Handler] serves it. The page writes no objects.
//
// A Model gets objects without the values of Secrets, so that these can't reach the page.
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

// maxVersions is the maximal number of versions that are kept of an object.
const maxVersions = 100

// Options configure a Model. All fields except MaxBytes and Recent must be set.
type Options struct {
	// Place is the name of the objects' place, for the page header.
	Place string
	Now   func() time.Time
	// Type returns the type of a kind (nil if it is not known), and the value for OtherPaths in [blame.Options]. It
	// must be safe for concurrent use.
	Type    func(schema.GroupVersionKind) (t *typed.Type, otherPaths bool)
	Suggest view.Suggest
	// IsIncomplete reports whether some objects could not be read.
	IsIncomplete func() bool
	// MaxBytes limits the memory for all versions, except the latest version of each object; 0 means 64 MiB.
	MaxBytes int
	// Recent is the time for which a change is marked; 0 means 5 minutes.
	Recent time.Duration
}

// Facts are what a source knows about an object, in addition to the object's versions.
type Facts struct {
	Applications []string
	Plan         *page.Object // plan of the manifest's apply; nil without a manifest
	Findings     []page.Finding
}

// Key identifies an object.
type Key struct {
	Kind            schema.GroupKind
	Namespace, Name string
}

// String returns the key as text for the page. Its parts contain no slash.
func (k Key) String() string { return k.Kind.String() + "/" + k.Namespace + "/" + k.Name }

// KeyOf returns the key of an object.
func KeyOf(tree map[string]any) Key {
	u := &unstructured.Unstructured{Object: tree}
	return Key{u.GroupVersionKind().GroupKind(), u.GetNamespace(), u.GetName()}
}

// Model has the versions of objects, and facts about them. It is safe for concurrent use.
//
// Invariants: bytes is the sum of the sizes of all versions except the latest of each object, and at most MaxBytes;
// old lists the objects of these versions, in the order in which the versions were observed.
type Model struct {
	Options
	mu      sync.Mutex
	objects map[string]*object
	hues    map[string]int // by manager, in the order of their first appearance
	tracker *fights.Tracker
	bytes   int
	old     []*object
	changed chan struct{} // closed on the next change
}

// object is an object of the cluster, or an object that does not exist but has facts.
type object struct {
	summary
	tree     map[string]any // the latest version; nil if there is none
	number   int            // number of the latest version
	versions []version
	facts    map[string]Facts // facts by source
	revision int              // counts the changes of the summary and of facts
}

// summary is an object's entry in the list of objects.
type summary struct {
	Key      string            `json:"key"`
	Managers []string          `json:"managers"`
	Missing  bool              `json:"missing,omitempty"` // only facts are known: no object has this key
	Apps     []string          `json:"apps,omitempty"`
	Findings map[page.Mark]int `json:"findings,omitempty"` // number by kind
	Changed  int64             `json:"changed,omitempty"`  // time of the last change, in milliseconds; 0 for none
}

// version is a version of an object, as JSON, with its differences to the previous version.
type version struct {
	Number  int    `json:"number"`
	Seen    int64  `json:"seen"` // time in milliseconds
	By      string `json:"by"`   // manager of most of the changes; empty if it is not known
	Fields  int    `json:"fields"`
	data    []byte
	changes []fights.Change
}

func (v *version) size() int {
	n := len(v.data)
	for _, c := range v.changes {
		n += 256 + len(c.Old) + len(c.New) // path and side are small
	}
	return n
}

func (v *version) seen() time.Time { return time.UnixMilli(v.Seen) }

// New returns an empty Model.
func New(o Options) *Model {
	o.MaxBytes, o.Recent = cmp.Or(o.MaxBytes, 64<<20), cmp.Or(o.Recent, 5*time.Minute)
	return &Model{Options: o, objects: map[string]*object{}, hues: map[string]int{}, changed: make(chan struct{}),
		tracker: fights.New(fights.Options{})}
}

// Observe adds a version of an object. The caller has replaced the values of Secrets in it (see secrets.Shown). The
// caller must not change tree later.
func (m *Model) Observe(tree map[string]any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	data, err := json.Marshal(tree)
	if err != nil {
		return // not from a server
	}
	now, u, o := m.Now(), &unstructured.Unstructured{Object: tree}, m.object(KeyOf(tree).String())
	before := &unstructured.Unstructured{Object: o.tree}
	isSame := o.tree != nil && before.GetUID() == u.GetUID()
	if isSame && before.GetResourceVersion() == u.GetResourceVersion() {
		return // listed again
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

// writer returns the manager of most of the changes.
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

// forgetOldest removes the oldest version of an object. i is the first index of the object in old.
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

// SetFacts replaces all facts of a source. The objects need not exist.
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

// Tick looks for fights. Call it once a second.
func (m *Model) Tick() {
	m.mu.Lock()
	now := m.Now()
	found := map[Key]Facts{}
	for _, f := range m.tracker.Findings(now) {
		if f.Kind != fights.Fight && f.Kind != fights.Flap {
			continue // an idle writer, or growth, is no fight
		}
		gv, _ := schema.ParseGroupVersion(f.APIVersion)
		key := Key{schema.GroupKind{Group: gv.Group, Kind: f.Object.Kind}, f.Namespace, f.Name}
		facts := found[key]
		facts.Findings = append(facts.Findings, view.FightOf(m.Suggest, f, now))
		found[key] = facts
	}
	m.mu.Unlock()
	m.SetFacts("fights", found)
}

// object returns the object with a key. It creates the object if there is none.
func (m *Model) object(key string) *object {
	if m.objects[key] == nil {
		m.objects[key] = &object{summary: summary{Key: key, Managers: []string{}}, facts: map[string]Facts{}}
	}
	return m.objects[key]
}

// touch records that an object, or the facts about it, changed.
func (m *Model) touch(o *object) {
	o.revision++
	o.Apps, o.Findings, o.Missing = nil, map[page.Mark]int{}, o.tree == nil // omitted if empty
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

// hue returns the hue of a manager. It never changes.
func (m *Model) hue(name string) int {
	n, ok := m.hues[name]
	if !ok {
		n = page.Hue(len(m.hues))
		m.hues[name] = n
	}
	return n
}
