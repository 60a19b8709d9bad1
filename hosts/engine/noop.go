package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/lru"

	"github.com/tenure-ssa/tenure/internal/gostruct"
	"github.com/tenure-ssa/tenure/typed"
)

// A controller applies the same intent over and over. That an apply changed nothing is remembered for the live object,
// so that the same apply is not decoded and merged again while the object stays as it is:
//
//	the same   field manager (kind, version, subresource), manager, force, text of the intent
//	applied to an object with the same uid and resourceVersion
//	returns    a copy of that object
//
// This is exact: nothing else decides the result of an apply. Two objects with one uid and one resourceVersion are the
// same, as they are read from the storage. Only the time of the manager's entry depends on the clock. An intent that
// lacks a default changes the object until defaults are set. So the entry gets a new time, although the object is the
// same in the end. The server puts the old time back if nothing else changed, and only if the new time is the present
// one.
//
// Custom resources are left out, because a webhook may convert them: the same stored object can then be read as another
// one. Admission is called as before. What is kept is a digest for each apply, no object.

// unchangedApplies is how many applies are remembered, in 32 bytes each and some 150 of the cache.
const unchangedApplies = 1 << 14

// numbered is a Writer whose applies that change nothing are remembered.
type numbered struct {
	Writer
	number      uint64 // no other one of the process has it
	subresource string
}

var writers atomic.Uint64

func newNumbered(w Writer, subresource string) *numbered {
	return &numbered{w, writers.Add(1), subresource}
}

// A digest is that of an intent, or of an intent and all that decides what its apply does.
type digest [sha256.Size]byte

// noOps remembers applies that change nothing.
type noOps struct {
	known *lru.Cache // digest → noOp
	now   func() time.Time
}

// noOp is what an apply does that changes nothing.
type noOp struct{ dates bool } // the manager's entry, to now

func newNoOps(size int, now func() time.Time) *noOps { return &noOps{lru.New(size), now} }

var known = newNoOps(unchangedApplies, time.Now)

// Request is an apply, without the object that it is applied to.
type Request struct {
	Writer  Writer
	Intent  []byte
	Manager string
	Force   bool
}

// key returns the key of a request that is applied to live; ok is false if it is not remembered. intent is the
// digest of the intent.
func (r *Request) key(live runtime.Object, intent digest) (key digest, ok bool) {
	w, ok := r.Writer.(*numbered)
	if !ok {
		return key, false
	}
	accessor, err := meta.Accessor(live)
	if err != nil {
		return key, false
	}
	uid, version := string(accessor.GetUID()), accessor.GetResourceVersion()
	if uid == "" || version == "" || version == "0" {
		return key, false // it is not stored
	}
	var space [256]byte
	text := binary.AppendUvarint(append(space[:0], intent[:]...), w.number)
	if r.Force {
		text = append(text, 1)
	} else {
		text = append(text, 0)
	}
	for _, s := range [...]string{uid, version, r.Manager} {
		text = append(binary.AppendUvarint(text, uint64(len(s))), s...)
	}
	return sha256.Sum256(text), true
}

// apply returns what f returns, which applies a request to live, and remembers it if it changes nothing and isClean is
// true then. It does not call f if that is known.
func (n *noOps) apply(live runtime.Object, r *Request, intent digest, f func() (runtime.Object, error),
	isClean func() bool) (runtime.Object, error) {
	key, ok := r.key(live, intent)
	if !ok {
		return f()
	}
	if found, ok := n.known.Get(key); ok {
		if out, ok := n.again(live, r, found.(noOp)); ok {
			return out, nil
		}
	}
	since := n.timestamp()
	out, err := f()
	if err == nil && isClean() {
		if found, ok := noOpOf(live, out, r, since); ok {
			n.known.Add(key, found)
		}
	}
	return out, err
}

// again returns a copy of live, with what a no-op does to it; ok is false if that would change the order of entries.
func (n *noOps) again(live runtime.Object, r *Request, found noOp) (out runtime.Object, ok bool) {
	out = live.DeepCopyObject()
	if !found.dates {
		return out, true
	}
	accessor, err := meta.Accessor(out)
	if err != nil {
		return nil, false
	}
	entries := accessor.GetManagedFields()
	i := r.entryOf(entries)
	if i < 0 {
		return nil, false
	}
	at := n.timestamp()
	isBeside := func(j int) bool { return j >= 0 && j < len(entries) && entries[j].Operation == entries[i].Operation }
	if isBeside(i-1) && !entries[i-1].Time.Before(&at) || isBeside(i+1) && !at.Before(entries[i+1].Time) {
		return nil, false
	}
	entries[i].Time = &at
	return out, true
}

// timestamp returns now as entries have it.
func (n *noOps) timestamp() metav1.Time { return metav1.NewTime(n.now().UTC().Truncate(time.Second)) }

// entryOf returns the position of the manager's entry, or -1.
func (r *Request) entryOf(entries []metav1.ManagedFieldsEntry) int {
	w, ok := r.Writer.(*numbered)
	return slices.IndexFunc(entries, func(e metav1.ManagedFieldsEntry) bool {
		return ok && e.Operation == metav1.ManagedFieldsOperationApply && e.Manager == r.Manager &&
			e.Subresource == w.subresource
	})
}

// noOpOf reports whether out, the result of a request that began at since, is live but for the time of the manager's
// entry. It is false where it can't be told whether the request dates the entry, because it has the present time
// already. It changes nothing of out in the end.
func noOpOf(live, out runtime.Object, r *Request, since metav1.Time) (n noOp, ok bool) {
	before, err := meta.Accessor(live)
	if err != nil {
		return n, false
	}
	after, err := meta.Accessor(out)
	if err != nil {
		return n, false
	}
	old, now := before.GetManagedFields(), after.GetManagedFields()
	own := r.entryOf(now)
	if len(old) != len(now) {
		return n, false
	}
	for i := range now {
		a, b := &old[i], &now[i]
		if a.Manager != b.Manager || a.Operation != b.Operation || a.APIVersion != b.APIVersion ||
			a.FieldsType != b.FieldsType || a.Subresource != b.Subresource || !sameFields(a.FieldsV1, b.FieldsV1) {
			return n, false
		}
		if !a.Time.Equal(b.Time) {
			if i != own {
				return n, false
			}
			n.dates = true
		} else if i == own && !a.Time.Before(&since) {
			return n, false
		}
	}
	// Most changes are seen without a look at the rest.
	if !maps.Equal(before.GetLabels(), after.GetLabels()) ||
		!maps.Equal(before.GetAnnotations(), after.GetAnnotations()) {
		return n, false
	}
	after.SetManagedFields(old)
	defer after.SetManagedFields(now)
	return n, equal(live, out)
}

func sameFields(a, b *metav1.FieldsV1) bool {
	return (a == nil) == (b == nil) && (a == nil || a.Equal(*b))
}

// equal reports whether two objects are the same. They are Go structs of the hub version, most of which have no names
// in JSON: they are compared by the names of their fields.
func equal(a, b runtime.Object) bool {
	x, y, err := gostruct.Diff(nil, a, b)
	return err == nil && typed.Equal(x, y)
}
