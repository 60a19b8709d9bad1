// Package responses remembers what a server responded to applies, and sends an apply unless that tells that it changes
// nothing. It is what fieldmanager/applier and controllerruntime share.
package responses

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/internal/gostruct"
	"github.com/tenure-ssa/tenure/typed"
)

// Object is controller-runtime's client.Object: a Go struct or *unstructured.Unstructured.
type Object interface {
	metav1.Object
	runtime.Object
}

// Memory remembers what a server responded to applies. It is the rule of what need not be sent:
//
//	An apply is known to change nothing if the server itself responded to the same intent, of the same manager in the
//	same way, with the object as it was, and since then neither the object nor the definition of its kind has changed,
//	and every write of this process to the object is in the cache.
//
// The object is the same if its UID and its fields and entries are, without what the apply leaves alone. Everything
// else is sent. To forget is always safe. The zero Memory is ready for use, by several goroutines at once.
type Memory struct {
	mu      sync.Mutex
	now     uint64 // counts requests and lost writes
	records map[Key]*record
}

// Key names an object at all of its versions.
type Key struct {
	schema.GroupKind
	types.NamespacedName
}

// maxRecords bounds how many objects are remembered.
const maxRecords = 1 << 17

// record is what is known of an object. A request marks an object before it is sent, so that a write meanwhile finds
// the record.
//
//	floor != ""   every write of this process to the object has a resourceVersion ≤ floor
//	floor == ""   that is not known since lost; responses to requests that were sent later tell
type record struct {
	floor     string
	lost      uint64
	responses map[any]learnt              // by Request.By
	found     map[any]conflicts.Conflicts // by Request.By, see Pending.foundBefore
	// seen is the state of the last request, and since is when it was first seen.
	seen  state
	since time.Time
}

// response is a request to which the server responded with the object as it was.
type response struct {
	intent     [sha256.Size]byte
	definition any
	state      state
}

// learnt is a response, and its object in JSON if that is not the cached one: then it is the response for the version
// of the object only. A cache may drop fields, a Go struct write values in another way, and a new definition add
// defaults.
type learnt struct {
	response
	object, version string
}

// state is what a response depends on of an object.
type state struct {
	uid     types.UID
	version string // of the object; empty if the fields tell
	fields  [sha256.Size]byte
}

// Request is an apply, with all that a server's response depends on.
type Request struct {
	Object Key
	// By is how it is applied, and by whom: the version, the subresource, the manager, force. It is comparable.
	By any
	// Manager and Subresource tell which entry of the object is the manager's.
	Manager, Subresource string
	// Intent is the intent in JSON.
	Intent []byte
	// Definition identifies the definition of the kind, and whatever else the server's response depends on. It is
	// comparable; nil if that is not known.
	Definition any
	// Cached is the object as a cache has it; nil for none.
	Cached Object
	// LeavesStatus says that the apply leaves the status alone.
	LeavesStatus bool
	// IsStoredAsStruct says that the server stores the kind as a Go struct, as those that are built in. A cached Go
	// struct of another kind need not have all that is stored: the object is the same then if its resourceVersion is.
	// So is an object whose managed fields the cache strips.
	IsStoredAsStruct bool
}

// Pending is a request, before it is sent.
type Pending struct {
	memory   *Memory
	request  Request
	record   *record
	begun    uint64
	response // the one that makes it known
}

// Begin starts a request. [Pending.Send] sends it.
func (m *Memory) Begin(r Request) *Pending {
	p := &Pending{memory: m, request: r}
	if gostruct.IsNil(r.Cached) {
		p.request.Cached = nil
	} else {
		p.response = response{sha256.Sum256(r.Intent), r.Definition, r.stateOf()}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	p.record, p.begun = m.find(r.Object)
	if p.record.seen != p.state {
		p.record.seen, p.record.since = p.state, time.Now()
	}
	return p
}

// aSecondLater is after how long a server dates entries with another second, for sure.
const aSecondLater = 2 * time.Second

// isLasting reports whether a server that does nothing with the request now does nothing in a second from now. An
// intent that it has to merge first gives the manager's entry a new time: then the entry moves behind others, unless it
// is the last of the appliers. entries are the object's entries.
func (p *Pending) isLasting(entries []metav1.ManagedFieldsEntry) bool {
	if time.Since(p.record.since) >= aSecondLater {
		return true
	}
	for _, e := range slices.Backward(entries) {
		if e.Operation == metav1.ManagedFieldsOperationApply {
			return e.Manager == p.request.Manager && e.Subresource == p.request.Subresource
		}
	}
	return false
}

// find returns the record of an object, and the time.
func (m *Memory) find(key Key) (*record, uint64) {
	m.now++
	r := m.records[key]
	if r == nil {
		if m.records == nil || len(m.records) == maxRecords {
			m.records = map[Key]*record{}
		}
		r = &record{responses: map[any]learnt{}, found: map[any]conflicts.Conflicts{}}
		m.records[key] = r
	}
	return r, m.now
}

// stateOf returns what a response depends on of the cached object. An apply of the object itself does not look at the
// status if it leaves it alone, nor at the entries of its writers.
func (r Request) stateOf() (s state) {
	s.uid = r.Cached.GetUID()
	_, isTree := r.Cached.(*unstructured.Unstructured)
	if !isTree && !r.IsStoredAsStruct || len(r.Cached.GetManagedFields()) == 0 {
		s.version = r.Cached.GetResourceVersion()
	}
	tree := treeOf(r.Cached)
	if tree == nil {
		return state{}
	}
	metadata, _ := tree["metadata"].(map[string]any)
	delete(metadata, "resourceVersion")
	if r.LeavesStatus {
		delete(tree, "status")
		if list, ok := metadata["managedFields"].([]any); ok {
			metadata["managedFields"] = slices.DeleteFunc(list, func(item any) bool {
				e, _ := item.(map[string]any)
				return e["subresource"] == "status"
			})
		}
	}
	data, _ := json.Marshal(tree)
	s.fields = sha256.Sum256(data)
	return s
}

// treeOf returns an object in JSON, decoded; nil for one that can't be encoded.
func treeOf(obj any) (tree map[string]any) {
	data, err := json.Marshal(obj)
	if err != nil || json.Unmarshal(data, &tree) != nil {
		return nil
	}
	return tree
}

// IsBehind reports whether the cache may lack a write of this process.
func (p *Pending) IsBehind() bool {
	if p.request.Cached == nil {
		return true
	}
	p.memory.mu.Lock()
	defer p.memory.mu.Unlock()
	return !p.record.isReached(p.request.Cached.GetResourceVersion())
}

func (r *record) isReached(version string) bool {
	if r.floor == "" {
		return r.lost == 0
	}
	return IsReached(version, r.floor)
}

// IsKnown reports whether the server is known to respond to the request with the cached object, see [Memory].
func (p *Pending) IsKnown() bool {
	if p.state.uid == "" { // nothing is cached, or what it is can't be told
		return false
	}
	p.memory.mu.Lock()
	defer p.memory.mu.Unlock()
	version, known := p.request.Cached.GetResourceVersion(), p.record.responses[p.request.By]
	return p.record.isReached(version) && known.response == p.response && (known.object == "" || known.version == version)
}

// Object returns the object that is known, in JSON; empty if it is the cached one.
func (p *Pending) Object() string {
	p.memory.mu.Lock()
	defer p.memory.mu.Unlock()
	known := p.record.responses[p.request.By]
	if known.response == p.response && known.version == p.request.Cached.GetResourceVersion() {
		return known.object
	}
	return ""
}

// Learn learns the server's response.
func (p *Pending) Learn(s Served) {
	m := p.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.HasWritten || s.Version != "" {
		m.wrote(p.record, s.Version, p.begun)
	}
	r := p.request
	switch {
	case s.Version != "" && r.Cached != nil && r.Cached.GetResourceVersion() != s.Version:
		// The cache has another version: this says nothing about it.
	case s.Version != "" && r.Cached != nil && r.Definition != nil && (s.IsSame || s.Object != ""):
		entries := s.Entries
		if entries == nil {
			entries = r.Cached.GetManagedFields()
		}
		if s.IsSame {
			s.Object = ""
		}
		if p.begun > p.record.lost && p.isLasting(entries) {
			p.record.responses[r.By] = learnt{p.response, s.Object, s.Version}
		}
	default:
		delete(p.record.responses, r.By)
	}
}

// IsSame reports whether an object that a server responded with is the cached one. Where the resourceVersion tells what
// is the same object, Learn compares that.
func (p *Pending) IsSame(served any) bool {
	return p.state.version != "" || IsSame(served, p.request.Cached)
}

// IsSame reports whether an object that a server responded with is the cached one, which may lack managed fields.
func IsSame(served, cached any) bool {
	a, b := treeOf(served), treeOf(cached)
	if a == nil || b == nil {
		return false
	}
	for _, tree := range []map[string]any{a, b} {
		delete(tree, "apiVersion") // typed clients leave them out
		delete(tree, "kind")
	}
	ofA, _ := a["metadata"].(map[string]any)
	ofB, _ := b["metadata"].(map[string]any)
	if _, has := ofB["managedFields"]; !has {
		delete(ofA, "managedFields")
	}
	return typed.Equal(a, b)
}

// BeginWrite marks an object before a write that is no apply, and returns what learns its version: empty if it is not
// known, as for a deletion. The key is the key of the written object: the server may have named it.
func (m *Memory) BeginWrite(key Key) (wrote func(key Key, version string)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, begun := m.find(key)
	return func(key Key, version string) {
		m.mu.Lock()
		defer m.mu.Unlock()
		r, _ := m.find(key)
		m.wrote(r, version, begun)
	}
}

// wrote learns from the response to a request that was sent at a time: the object had this version. It is empty for a
// write whose version is unknown: a deletion, or a write that may have been done.
func (m *Memory) wrote(r *record, version string, begun uint64) {
	switch {
	case version == "":
		m.now++
		r.floor, r.lost = "", m.now
	case begun > r.lost && (r.floor == "" || !IsReached(r.floor, version)):
		r.floor = version
	}
}

// LoseKind learns of a write to all objects of a kind, whose versions are unknown.
func (m *Memory) LoseKind(kind schema.GroupKind) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, r := range m.records {
		if key.GroupKind == kind {
			m.wrote(r, "", 0)
		}
	}
}

// KeyOf names an object of a kind; an object without a name if it is nil.
func KeyOf(kind schema.GroupKind, obj metav1.Object) Key {
	if gostruct.IsNil(obj) {
		return Key{GroupKind: kind}
	}
	return Key{kind, types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}}
}

// IsReached reports whether a resourceVersion is not older than another one. Those that can't be compared are.
func IsReached(version, other string) bool {
	order, err := resourceversion.CompareResourceVersion(version, other)
	return err == nil && order >= 0
}
