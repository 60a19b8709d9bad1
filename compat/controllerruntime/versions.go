package controllerruntime

import (
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenure-ssa/tenure/typed/openapi"
)

// objectKey names an object at all of its versions.
type objectKey struct {
	kind schema.GroupKind
	client.ObjectKey
}

// versions remember of each object that was dry-run what the server said of it. An object that is not remembered is
// asked of the server, so that forgetting is always safe.
type versions struct {
	mu      sync.Mutex
	now     uint64 // counts requests and lost writes
	records map[objectKey]*record
}

// maxRecords bounds how many objects are remembered.
const maxRecords = 1 << 17

// record is what is known of an object. A request marks an object before it is sent, so that a write meanwhile finds the
// record.
//
//	floor != ""   every write of this client to the object has a resourceVersion ≤ floor
//	floor == ""   that is not known since lost; answers to requests that were sent later tell
type record struct {
	floor    string
	lost     uint64
	verified map[verifier]*openapi.Registry
}

// verifier is what an answer of the server depends on besides the object and the intent.
type verifier struct {
	version, subresource, manager string
	force                         bool
	form                          reflect.Type
	identity                      string
}

// ask returns the record of an object, and the time.
func (v *versions) ask(key objectKey) (*record, uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.now++
	r := v.records[key]
	if r == nil {
		if v.records == nil || len(v.records) == maxRecords {
			v.records = map[objectKey]*record{}
		}
		r = &record{verified: map[verifier]*openapi.Registry{}}
		v.records[key] = r
	}
	return r, v.now
}

// tick returns the time.
func (v *versions) tick() uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.now++
	return v.now
}

func (v *versions) find(key objectKey) *record {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.records[key]
}

// hasWrites reports whether a version of the object has all writes of this client. It does as long as there was none.
func (v *versions) hasWrites(r *record, version string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if r.floor == "" {
		return r.lost == 0
	}
	order, err := resourceversion.CompareResourceVersion(version, r.floor)
	return err == nil && order >= 0
}

// wrote learns from the answer to a request that was sent at a time that the object had this version.
func (v *versions) wrote(r *record, version string, asked uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if version == "" || asked <= r.lost {
		return
	}
	if order, err := resourceversion.CompareResourceVersion(r.floor, version); r.floor == "" || err != nil || order < 0 {
		r.floor = version
	}
}

// lose learns of a write of which the version is not known: a deletion, or one that may have been done.
func (v *versions) lose(key objectKey) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if r := v.records[key]; r != nil {
		v.now++
		r.floor, r.lost = "", v.now
	}
}

// loseKind is lose for all objects of a kind.
func (v *versions) loseKind(kind schema.GroupKind) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.now++
	for key, r := range v.records {
		if key.kind == kind {
			r.floor, r.lost = "", v.now
		}
	}
}

// verify learns that the server answered as planned.
func (v *versions) verify(r *record, by verifier, types *openapi.Registry, asked uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if asked > r.lost {
		r.verified[by] = types
	}
}

func (v *versions) forget(r *record, by verifier) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(r.verified, by)
}

// isVerified reports whether the server answered as planned with these types.
func (v *versions) isVerified(r *record, by verifier, types *openapi.Registry) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return types != nil && r.verified[by] == types
}
