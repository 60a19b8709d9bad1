// Package responses remembers how a server responded to applies, and skips an apply if an earlier response shows that
// the apply would change nothing. The packages fieldmanager/applier and controllerruntime share it.
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

// Memory remembers how a server responded to applies. An apply can be skipped if it is known to change nothing. That is
// known if all of this is true:
//
//   - The server itself has returned the object unchanged for the same intent, manager and options.
//   - Since then, the object and the definition of its kind have not changed.
//   - The cache has all writes of this process to the object.
//
// The object is the same if its UID, its fields and its entries are the same, apart from parts that the apply does not
// change. Every other apply is sent. Forgetting a response is always safe. The zero Memory is ready for use, also by
// several goroutines at once.
type Memory struct {
	mu      sync.Mutex
	now     uint64 // counts requests and lost writes
	records map[Key]*record
}

// Key identifies an object at all of its versions.
type Key struct {
	schema.GroupKind
	types.NamespacedName
}

// maxRecords is the maximum number of objects that are remembered.
const maxRecords = 1 << 17

// record is what is known about an object. A request creates the record before it is sent, so that a concurrent write
// finds it.
//
//	floor != ""   every write of this process to the object has a resourceVersion ≤ floor
//	floor == ""   no such resourceVersion is known: there was no write yet (lost is 0), or a write with an unknown
//	              resourceVersion was recorded at the time lost; then the next response to a request that began after
//	              lost sets floor
type record struct {
	floor     string
	lost      uint64
	responses map[any]learnt              // by Request.By
	found     map[any]conflicts.Conflicts // by Request.By; see Pending.foundBefore
	// seen is the state of the last request, and since is when it was first seen.
	seen  state
	since time.Time
}

// response identifies a request for which the server returned the object unchanged.
type response struct {
	intent     [sha256.Size]byte
	definition any
	state      state
}

// learnt is a response. If the returned object differs from the cached one, the field object has the returned object in
// JSON. The response is then valid only while the cached object has the resourceVersion in the field version. The two
// objects differ if a cache drops fields, a Go struct encodes values differently, or a new definition adds defaults.
type learnt struct {
	response
	object, version string
}

// state is the part of an object that a response depends on.
type state struct {
	uid     types.UID
	version string // resourceVersion of the object; empty if the fields are compared instead
	fields  [sha256.Size]byte
}

// Request is an apply, with everything that a server's response depends on.
type Request struct {
	Object Key
	// By describes how, and by whom, the intent is applied: version, subresource, manager, force. It must be
	// comparable.
	By any
	// Manager and Subresource identify the manager's entry in the object.
	Manager, Subresource string
	// Intent is the intent in JSON.
	Intent []byte
	// Definition identifies the definition of the kind, and everything else that the server's response depends on. It
	// must be comparable; it is nil if any of this is not known.
	Definition any
	// Cached is the cached object; nil if there is none.
	Cached Object
	// LeavesStatus means that the apply does not change the status.
	LeavesStatus bool
	// IsStoredAsStruct means that the server stores the kind as a Go struct, like built-in kinds. If it stores the kind
	// in another way, a cached Go struct may lack stored fields. For such a struct, the resourceVersions are compared,
	// too. They are also compared if the cache strips managed fields.
	IsStoredAsStruct bool
}

// Pending is a request, before it is sent.
type Pending struct {
	memory   *Memory
	request  Request
	record   *record
	begun    uint64
	response // the request is known if a remembered response equals this one
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

// aSecondLater is a duration after which a server certainly dates entries with a later second.
const aSecondLater = 2 * time.Second

// isLasting reports whether the server would store nothing if the same request were sent in a later second. Even if the
// server stores nothing now, the merged object may differ from the stored one. In this case, the server gives the
// manager's entry a new time. In a later second, this time moves the entry behind other entries, unless the entry is
// already the last Apply entry. The argument entries has the object's entries.
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

// find returns the record of an object, and the current time of the counter.
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

// stateOf returns the part of the cached object that a response depends on. If an apply to the main resource does not
// change the status, its response does not depend on the status, or on the entries of managers that write the status.
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

// treeOf returns an object as a decoded JSON tree; nil if it can't be encoded.
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

// IsKnown reports whether it is known that the request would change nothing on the server; see [Memory]. The server
// would then respond with the cached object, or with the object that [Pending.Object] returns.
func (p *Pending) IsKnown() bool {
	if p.state.uid == "" { // there is no cached object, or its state is unknown
		return false
	}
	p.memory.mu.Lock()
	defer p.memory.mu.Unlock()
	version, known := p.request.Cached.GetResourceVersion(), p.record.responses[p.request.By]
	return p.record.isReached(version) && known.response == p.response && (known.object == "" || known.version == version)
}

// Object returns the object of the known response, in JSON; empty if it is the cached object.
func (p *Pending) Object() string {
	p.memory.mu.Lock()
	defer p.memory.mu.Unlock()
	known := p.record.responses[p.request.By]
	if known.response == p.response && known.version == p.request.Cached.GetResourceVersion() {
		return known.object
	}
	return ""
}

// Learn records the server's response.
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
		// The cache has another version, about which the response says nothing.
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

// IsSame reports whether an object in a server's response is the cached object. If objects are compared by
// resourceVersion, IsSame returns true, because Learn compares the resourceVersion.
func (p *Pending) IsSame(served any) bool {
	return p.state.version != "" || IsSame(served, p.request.Cached)
}

// IsSame reports whether an object in a server's response is the cached object, which may lack managed fields.
func IsSame(served, cached any) bool {
	a, b := treeOf(served), treeOf(cached)
	if a == nil || b == nil {
		return false
	}
	for _, tree := range []map[string]any{a, b} {
		delete(tree, "apiVersion") // typed clients omit both
		delete(tree, "kind")
	}
	ofA, _ := a["metadata"].(map[string]any)
	ofB, _ := b["metadata"].(map[string]any)
	if _, has := ofB["managedFields"]; !has {
		delete(ofA, "managedFields")
	}
	return typed.Equal(a, b)
}

// BeginWrite marks an object before a write that is not an apply. It returns a function that records the resulting
// version, which is empty if it is not known, as for a deletion. The key passed to that function is the key of the
// written object, because the server may have generated its name.
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

// wrote records the version of the object in the response to a write that was sent at time begun. The version is empty
// if it is unknown: for a deletion, or for a write that may have succeeded.
func (m *Memory) wrote(r *record, version string, begun uint64) {
	switch {
	case version == "":
		m.now++
		r.floor, r.lost = "", m.now
	case begun > r.lost && (r.floor == "" || !IsReached(r.floor, version)):
		r.floor = version
	}
}

// LoseKind records a write to all objects of a kind, with unknown versions.
func (m *Memory) LoseKind(kind schema.GroupKind) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, r := range m.records {
		if key.GroupKind == kind {
			m.wrote(r, "", 0)
		}
	}
}

// KeyOf returns the key of an object of a kind; for a nil object, a key without a name.
func KeyOf(kind schema.GroupKind, obj metav1.Object) Key {
	if gostruct.IsNil(obj) {
		return Key{GroupKind: kind}
	}
	return Key{kind, types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}}
}

// IsReached reports whether a resourceVersion is equal to another one or newer. It returns false if they can't be
// compared.
func IsReached(version, other string) bool {
	order, err := resourceversion.CompareResourceVersion(version, other)
	return err == nil && order >= 0
}
