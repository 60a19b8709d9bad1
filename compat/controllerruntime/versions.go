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

// record is what is known of an object. A request marks an object before it is sent, so that a write meanwhile finds
// the record.
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

// hasWrites reports whether a version of the object has all writes of this client. It does as long as there was none.
func (v *versions) hasWrites(r *record, version string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if r.floor == "" {
		return r.lost == 0
	}
	return isReached(version, r.floor)
}

// wrote learns from the answer to a request that was sent at a time: the object had this version. It is empty for a
// write of which the version is not known: a deletion, or one that may have been done.
func (v *versions) wrote(r *record, version string, asked uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case version == "":
		v.now++
		r.floor, r.lost = "", v.now
	case asked > r.lost && (r.floor == "" || !isReached(r.floor, version)):
		r.floor = version
	}
}

// loseKind learns of a write to all objects of a kind, of which the versions are not known.
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

// verify learns that the server answered as planned with these types, nil if it did not.
func (v *versions) verify(r *record, by verifier, types *openapi.Registry, asked uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if types == nil || asked > r.lost {
		r.verified[by] = types
	}
}

// isReached reports whether a resourceVersion is not older than another one. Those that can't be compared are.
func isReached(version, other string) bool {
	order, err := resourceversion.CompareResourceVersion(version, other)
	return err == nil && order >= 0
}

// isVerified reports whether the server answered as planned with these types.
func (v *versions) isVerified(r *record, by verifier, types *openapi.Registry) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return types != nil && r.verified[by] == types
}
