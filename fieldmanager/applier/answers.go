package applier

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/tenure-ssa/tenure/internal/gostruct"
	"github.com/tenure-ssa/tenure/typed"
)

// Answers remember what a server answered to applies. They are the rule of what need not be sent:
//
//	An apply is known to change nothing if the server itself answered the same intent, of the same manager in the same
//	way, with the object as it was, and since then neither the object nor the definition of its kind has changed, and
//	every write of this process to the object is in the cache.
//
// The object is the same if its UID and its fields and entries are, without what the apply leaves alone. Everything
// else is sent. To forget is always safe. The zero Answers are ready for use, by several goroutines at once.
type Answers struct {
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
//	floor == ""   that is not known since lost; answers to requests that were sent later tell
type record struct {
	floor   string
	lost    uint64
	answers map[any]answer // by Request.By
	// seen is the state of the last request, and since is when it was first asked about.
	seen  state
	since time.Time
}

// answer is a request that the server answered with the object as it was.
type answer struct {
	intent     [sha256.Size]byte
	definition any
	state      state
}

// state is what an answer depends on of an object.
type state struct {
	uid     types.UID
	version string // of the object; empty if the fields tell
	fields  [sha256.Size]byte
}

// Request is an apply, with all that a server's answer depends on.
type Request struct {
	Object Key
	// By is how it is applied, and by whom: the version, the subresource, the manager, force. It is comparable.
	By any
	// Manager and Subresource tell which entry of the object is the manager's.
	Manager, Subresource string
	// Intent is the intent in JSON.
	Intent []byte
	// Definition identifies the definition of the kind, and whatever else the server's answer depends on. It is
	// comparable; nil if that is not known.
	Definition any
	// Cached is the object as a cache has it; nil for none.
	Cached Object
	// LeavesStatus says that the apply leaves the status alone.
	LeavesStatus bool
	// IsStoredAsStruct says that the server stores the kind as a Go struct, as those that are built in. A cached Go
	// struct of another kind need not have all that is stored: the object is the same then if its resourceVersion is.
	IsStoredAsStruct bool
}

// Question is a request, before it is sent.
type Question struct {
	answers *Answers
	request Request
	record  *record
	asked   uint64
	answer  // the one that makes it known
}

// Ask starts a request. Its end is told by [Question.Answered].
func (a *Answers) Ask(r Request) *Question {
	q := &Question{answers: a, request: r}
	if gostruct.IsNil(r.Cached) {
		q.request.Cached = nil
	} else {
		q.answer = answer{sha256.Sum256(r.Intent), r.Definition, r.stateOf()}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	q.record, q.asked = a.find(r.Object)
	if q.record.seen != q.state {
		q.record.seen, q.record.since = q.state, time.Now()
	}
	return q
}

// aSecondLater is after how long a server dates entries with another second, for sure.
const aSecondLater = 2 * time.Second

// isLasting reports whether a server that does nothing with the request now does nothing in a second from now. An
// intent that it has to merge first gives the manager's entry a new time: then the entry moves behind others, unless it
// is the last of the appliers.
func (q *Question) isLasting() bool {
	if time.Since(q.record.since) >= aSecondLater {
		return true
	}
	for _, e := range slices.Backward(q.request.Cached.GetManagedFields()) {
		if e.Operation == metav1.ManagedFieldsOperationApply {
			return e.Manager == q.request.Manager && e.Subresource == q.request.Subresource
		}
	}
	return false
}

// find returns the record of an object, and the time.
func (a *Answers) find(key Key) (*record, uint64) {
	a.now++
	r := a.records[key]
	if r == nil {
		if a.records == nil || len(a.records) == maxRecords {
			a.records = map[Key]*record{}
		}
		r = &record{answers: map[any]answer{}}
		a.records[key] = r
	}
	return r, a.now
}

// stateOf returns what an answer depends on of the cached object. An apply of the object itself does not look at the
// status if it leaves it alone, nor at the entries of its writers.
func (r Request) stateOf() (s state) {
	s.uid = r.Cached.GetUID()
	if _, isTree := r.Cached.(*unstructured.Unstructured); !isTree && !r.IsStoredAsStruct {
		s.version = r.Cached.GetResourceVersion()
	}
	data, err := json.Marshal(r.Cached)
	var tree map[string]any
	if err != nil || json.Unmarshal(data, &tree) != nil {
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
	data, _ = json.Marshal(tree)
	s.fields = sha256.Sum256(data)
	return s
}

// IsBehind reports whether the cache may lack a write of this process.
func (q *Question) IsBehind() bool {
	if q.request.Cached == nil {
		return true
	}
	q.answers.mu.Lock()
	defer q.answers.mu.Unlock()
	return !q.record.isReached(q.request.Cached.GetResourceVersion())
}

func (r *record) isReached(version string) bool {
	if r.floor == "" {
		return r.lost == 0
	}
	return IsReached(version, r.floor)
}

// IsKnown reports whether the server is known to answer the request with the cached object, see [Answers].
func (q *Question) IsKnown() bool {
	if q.state.uid == "" { // nothing is cached, or what it is can't be told
		return false
	}
	q.answers.mu.Lock()
	defer q.answers.mu.Unlock()
	return q.record.isReached(q.request.Cached.GetResourceVersion()) &&
		q.record.answers[q.request.By] == q.answer
}

// Answered learns the server's answer. version is the resourceVersion of the object in it, empty for an error. isSame
// says that this object is the cached one, as far as the caller can tell; use [IsSame] for a whole object. hasWritten
// is false for a dry run.
func (q *Question) Answered(version string, isSame, hasWritten bool) {
	a := q.answers
	a.mu.Lock()
	defer a.mu.Unlock()
	if hasWritten || version != "" {
		a.wrote(q.record, version, q.asked)
	}
	r := q.request
	switch {
	case version != "" && r.Cached != nil && r.Cached.GetResourceVersion() != version:
		// The cache has another version: this says nothing about it.
	case isSame && version != "" && r.Cached != nil && r.Definition != nil:
		if q.asked > q.record.lost && q.isLasting() {
			q.record.answers[r.By] = q.answer
		}
	default:
		delete(q.record.answers, r.By)
	}
}

// IsSame reports whether an object that a server answered is the cached one.
func IsSame(served, cached any) bool {
	trees := [2]map[string]any{}
	for i, obj := range []any{served, cached} {
		data, err := json.Marshal(obj)
		if err != nil || json.Unmarshal(data, &trees[i]) != nil || trees[i] == nil {
			return false
		}
		delete(trees[i], "apiVersion") // typed clients leave them out
		delete(trees[i], "kind")
	}
	return typed.Equal(trees[0], trees[1])
}

// Begin marks an object before a write that is no apply, and returns what learns its version: empty if it is not known,
// as for a deletion. The key is that of the object that was written: the server may have named it.
func (a *Answers) Begin(key Key) (wrote func(key Key, version string)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, asked := a.find(key)
	return func(key Key, version string) {
		a.mu.Lock()
		defer a.mu.Unlock()
		r, _ := a.find(key)
		a.wrote(r, version, asked)
	}
}

// wrote learns from the answer to a request that was sent at a time: the object had this version. It is empty for a
// write of which the version is not known: a deletion, or one that may have been done.
func (a *Answers) wrote(r *record, version string, asked uint64) {
	switch {
	case version == "":
		a.now++
		r.floor, r.lost = "", a.now
	case asked > r.lost && (r.floor == "" || !IsReached(r.floor, version)):
		r.floor = version
	}
}

// LoseKind learns of a write to all objects of a kind, of which the versions are not known.
func (a *Answers) LoseKind(kind schema.GroupKind) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, r := range a.records {
		if key.GroupKind == kind {
			a.wrote(r, "", 0)
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
