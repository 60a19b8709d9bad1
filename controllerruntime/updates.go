package controllerruntime

import (
	"context"
	"encoding/json"
	"reflect"
	"sync"
	"time"
	"unsafe"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenure-ssa/tenure/typed"
)

// maxReads is the maximum number of read objects that are remembered; maxListed is the maximum for one list.
const maxReads, maxListed = 1 << 12, 1 << 8

// reads are the objects that a client has recently read, for [Options.MinimalUpdates].
type reads struct {
	mu      sync.Mutex
	objects map[readKey]read
	// copies records for a Go type whether the client returns copies. With UnsafeDisableDeepCopy, the client returns the
	// cached object itself. Callers then change the cached object, and their changes can't be detected.
	copies map[reflect.Type]bool
}

type readKey struct {
	schema.GroupVersionKind
	client.ObjectKey
	form reflect.Type
}

// read is an object at the time of the read. It is kept in JSON, because a copy may share memory with the caller's
// object.
type read struct {
	version string
	data    []byte
}

// Get implements client.Client.
func (c *Client) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := c.Client.Get(ctx, key, obj, opts...)
	isCopy := (&client.GetOptions{}).ApplyOptions(opts).UnsafeDisableDeepCopy
	if err == nil && c.options.MinimalUpdates && (isCopy == nil || !*isCopy) {
		c.remember(ctx, obj)
	}
	return err
}

// List implements client.Client.
func (c *Client) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := c.Client.List(ctx, list, opts...)
	isCopy := (&client.ListOptions{}).ApplyOptions(opts).UnsafeDisableDeepCopy
	if err != nil || !c.options.MinimalUpdates || isCopy != nil && *isCopy || meta.LenList(list) > maxListed {
		return err
	}
	return meta.EachListItem(list, func(item runtime.Object) error {
		if obj, ok := item.(client.Object); ok {
			c.remember(ctx, obj)
		}
		return nil
	})
}

// readKey returns the key of an object that is read or updated.
func (c *Client) readKey(obj client.Object) (readKey, bool) {
	form := reflect.TypeOf(obj)
	kind, err := c.GroupVersionKindFor(obj)
	if err != nil || form == reflect.TypeFor[*metav1.PartialObjectMetadata]() {
		return readKey{}, false // for example, a nil object
	}
	return readKey{kind, client.ObjectKeyFromObject(obj), form}, true
}

// remember records an object at the time of the read, if the client returned a copy.
func (c *Client) remember(ctx context.Context, obj client.Object) {
	key, ok := c.readKey(obj)
	if !ok || !c.returnsCopies(ctx, key, obj) {
		return
	}
	data, err := json.Marshal(obj)
	if err != nil {
		return
	}
	c.reads.mu.Lock()
	defer c.reads.mu.Unlock()
	if c.reads.objects == nil || len(c.reads.objects) == maxReads {
		c.reads.objects = map[readKey]read{}
	}
	c.reads.objects[key] = read{obj.GetResourceVersion(), data}
}

// returnsCopies reports whether the client returns copies of objects of a type. It reads the first such object twice.
func (c *Client) returnsCopies(ctx context.Context, key readKey, obj client.Object) bool {
	c.reads.mu.Lock()
	copies, known := c.reads.copies[key.form]
	c.reads.mu.Unlock()
	if known {
		return copies
	}
	again, ok := reflect.New(key.form.Elem()).Interface().(client.Object)
	if !ok {
		return false
	}
	again.GetObjectKind().SetGroupVersionKind(key.GroupVersionKind)
	if c.Client.Get(ctx, key.ObjectKey, again) != nil || again.GetResourceVersion() != obj.GetResourceVersion() {
		return false
	}
	isShared, isTold := share(reflect.ValueOf(obj).Elem(), reflect.ValueOf(again).Elem())
	if isShared || isTold {
		c.reads.mu.Lock()
		defer c.reads.mu.Unlock()
		if c.reads.copies == nil {
			c.reads.copies = map[reflect.Type]bool{}
		}
		c.reads.copies[key.form] = !isShared
	}
	return !isShared
}

// share reports whether two values share memory that a caller can change. isTold is false if they have no memory that
// could be shared.
func share(a, b reflect.Value) (isShared, isTold bool) {
	if !a.IsValid() || !b.IsValid() || a.Type() != b.Type() || a.Type() == reflect.TypeFor[time.Time]() {
		return false, false
	}
	both := func(a, b reflect.Value) {
		s, t := share(a, b)
		isShared, isTold = isShared || s, isTold || t
	}
	switch a.Kind() {
	case reflect.Interface:
		return share(a.Elem(), b.Elem())
	case reflect.Struct:
		for i := range a.NumField() {
			both(a.Field(i), b.Field(i))
		}
	case reflect.Pointer, reflect.Map, reflect.Slice:
		if a.IsNil() || b.IsNil() || a.Kind() != reflect.Pointer && (a.Len() == 0 || b.Len() == 0) {
			return false, false
		}
		if a.Pointer() == b.Pointer() {
			return true, true
		}
		isTold = true
		switch a.Kind() {
		case reflect.Pointer:
			both(a.Elem(), b.Elem())
		case reflect.Map:
			for _, key := range a.MapKeys() {
				both(a.MapIndex(key), b.MapIndex(key))
			}
		default:
			for i := range min(a.Len(), b.Len()) {
				both(a.Index(i), b.Index(i))
			}
		}
	}
	return isShared, isTold
}

// update sends an update, or a patch with the caller's changes to the object, or nothing if there are none.
func (c *Client) update(
	obj client.Object, subresource string, isComparable bool, whole func() error, patched func(client.Patch) error,
) error {
	send := func() error { return c.write(obj, subresource == "", whole) }
	if !c.options.MinimalUpdates {
		return send()
	}
	patch, result := client.Patch(nil), "not comparable"
	if isComparable {
		patch, result = c.changes(obj)
	}
	var err error
	if result == patchedResult {
		err = c.write(obj, true, func() error { return patched(patch) })
		result = resultOf(err)
	}
	kind, _ := c.GroupVersionKindFor(obj)
	count(c.metrics.updates, kind, subresource, result)
	if result == patchedResult || result == "unchanged" {
		return err
	}
	return send()
}

const patchedResult = "patched"

// resultOf returns the result of a patch. If a patch is rejected, the update itself may still succeed: the verb patch
// may be forbidden, or the stored object may lack a value that the Go type writes.
func resultOf(err error) string {
	switch {
	case apierrors.IsForbidden(err):
		return "patch forbidden"
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsUnsupportedMediaType(err),
		apierrors.IsMethodNotSupported(err):
		return "patch refused"
	}
	return patchedResult
}

// changes returns the patch with the caller's changes to an object that was read through the client.
func (c *Client) changes(obj client.Object) (patch client.Patch, result string) {
	key, ok := c.readKey(obj)
	if !ok {
		return nil, "not comparable"
	}
	c.reads.mu.Lock()
	was, ok := c.reads.objects[key]
	c.reads.mu.Unlock()
	// The object that was read, and each copy of it, have the resourceVersion at the same address in memory. The same
	// object from another source has it at another address, and may have fields that a transform of the cache drops.
	version := obj.GetResourceVersion()
	if !ok || version == "" || unsafe.StringData(version) != unsafe.StringData(was.version) {
		return nil, "not read through this client"
	}
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, "not comparable"
	}
	before, errBefore := treeFrom(was.data)
	after, errAfter := treeFrom(data)
	if errBefore != nil || errAfter != nil {
		return nil, "not comparable"
	}
	ofBefore, _ := before.Object["metadata"].(map[string]any)
	ofAfter, _ := after.Object["metadata"].(map[string]any)
	for _, name := range []string{"managedFields", "uid", "resourceVersion"} {
		if !typed.Equal(ofBefore[name], ofAfter[name]) {
			return nil, name + " changed"
		}
	}
	for _, tree := range []map[string]any{before.Object, after.Object} {
		delete(tree, "apiVersion") // a caller may set them
		delete(tree, "kind")
	}
	return difference(version, before.Object, after.Object)
}
