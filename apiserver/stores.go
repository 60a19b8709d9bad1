package apiserver

import (
	"context"
	"errors"
	"io"
	"path"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/kubernetes/pkg/apis/batch"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// open opens the storage of a resource. It limits the size of objects, uses the clock and the UIDs of the options, and
// calls observed.handleWrite after each write.
func (s *Server) open(
	config *storagebackend.ConfigForResource, prefix string, newFunc, newListFunc func() runtime.Object,
) (storage.Interface, factory.DestroyFunc, error) {
	config.Codec = limitedCodec{config.Codec, s.options.Limits.Object}
	opened, destroy, err := s.store.Open(config, prefix, newFunc, newListFunc)
	if err != nil {
		return nil, nil, err
	}
	return &observed{Interface: opened, server: s, prefix: prefix}, destroy, nil
}

// limitedCodec refuses to encode objects that are too large.
type limitedCodec struct {
	runtime.Codec
	limit int64
}

func (c limitedCodec) Encode(obj runtime.Object, w io.Writer) error {
	data, err := runtime.Encode(c.Codec, obj)
	if err != nil {
		return err
	}
	if err := resources.CheckSize(data, c.limit); err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

// observed is a storage whose writes the server observes.
type observed struct {
	storage.Interface
	server *Server
	prefix string
	// deleting maps the key of an object to the time at which the object got its deletionTimestamp.
	deleting sync.Map
}

// terminating is the minimum time between the write that sets an object's deletionTimestamp and the write that removes
// the object. A deletion has these two writes even for a Pod without a node, and even if the grace period is 0. In
// kube-apiserver, the latency of etcd separates the two writes, so that watchers see both.
const terminating = 10 * time.Millisecond

// handleWrite is called after each write of an object, before the response. key is PREFIX/[NAMESPACE/]NAME.
func (o *observed) handleWrite(ctx context.Context, key string) {
	ctx = context.WithoutCancel(ctx)
	namespace, name := path.Split(strings.TrimPrefix(key, o.prefix))
	o.server.controllers.HandleWrite(ctx, o.prefix, name)
	dir, plural := path.Split(o.prefix)
	if observer, ok := o.server.options.Authorizer.(Observer); ok && dir == rbacPrefix {
		observer.Written(ctx, schema.GroupResource{Group: rbacv1.GroupName, Resource: plural},
			strings.Trim(namespace, "/"), name)
	}
}

var rbacPrefix = resources.PrefixOf(schema.GroupResource{Group: rbacv1.GroupName})

func (o *observed) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	if err := ctx.Err(); err != nil {
		return unavailable(err) // the write of a request that timed out must not be stored
	}
	o.server.options.stamp(obj)
	if err := o.Interface.Create(ctx, key, obj, out, ttl); err != nil {
		return unavailable(err)
	}
	o.handleWrite(ctx, key)
	return nil
}

func (o *observed) Delete(
	ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, cached runtime.Object, options storage.DeleteOptions,
) error {
	if err := ctx.Err(); err != nil {
		return unavailable(err)
	}
	if since, ok := o.deleting.LoadAndDelete(key); ok {
		time.Sleep(time.Until(since.(time.Time).Add(terminating)))
	}
	if err := o.Interface.Delete(ctx, key, out, preconditions, validate, cached, options); err != nil {
		return unavailable(err)
	}
	o.handleWrite(ctx, key)
	return nil
}

func (o *observed) GuaranteedUpdate(
	ctx context.Context, key string, out runtime.Object, ignoreNotFound bool, preconditions *storage.Preconditions,
	update storage.UpdateFunc, cached runtime.Object,
) error {
	if err := ctx.Err(); err != nil {
		return unavailable(err)
	}
	var before uint64
	var deleted *metav1.Time
	stamped := func(live runtime.Object, m storage.ResponseMeta) (runtime.Object, *uint64, error) {
		before = m.ResourceVersion
		deleted = deletionOf(live) // a copy, because a deletion changes live in place
		obj, ttl, err := update(live, m)
		switch {
		case err != nil:
		case before == 0:
			o.server.options.stamp(obj)
		default:
			o.server.options.stampDeletion(obj, deleted)
		}
		return obj, ttl, err
	}
	err := o.Interface.GuaranteedUpdate(ctx, key, out, ignoreNotFound, preconditions, stamped, cached)
	if err != nil {
		return unavailable(err)
	}
	if after, err := o.Versioner().ObjectResourceVersion(out); err != nil || after != before {
		o.handleWrite(ctx, key)
	}
	if deleted == nil && deletionOf(out) != nil {
		o.deleting.Store(key, time.Now())
	}
	return nil
}

func deletionOf(obj runtime.Object) *metav1.Time {
	if m, err := meta.Accessor(obj); err == nil {
		return m.GetDeletionTimestamp().DeepCopy()
	}
	return nil
}

func (o *observed) Get(ctx context.Context, key string, options storage.GetOptions, obj runtime.Object) error {
	return unavailable(o.Interface.Get(ctx, key, options, obj))
}

func (o *observed) GetList(ctx context.Context, key string, options storage.ListOptions, list runtime.Object) error {
	return unavailable(o.Interface.GetList(ctx, key, options, list))
}

// collectionDeleter responds with 504 if the request times out while the storage lists the objects.
type collectionDeleter struct{ rest.CollectionDeleter }

func (d collectionDeleter) DeleteCollection(
	ctx context.Context, validate rest.ValidateObjectFunc,
	options *metav1.DeleteOptions, list *internalversion.ListOptions,
) (runtime.Object, error) {
	out, err := d.CollectionDeleter.DeleteCollection(ctx, validate, options, list)
	return out, unavailable(err)
}

// unavailable converts an error of the storage to an API error: 503 or 504 if the storage does not respond.
func unavailable(err error) error {
	code := status.Code(err)
	var etcd interface{ Code() codes.Code } // rpctypes.EtcdError, which is not a gRPC status
	if errors.As(err, &etcd) {
		code = etcd.Code()
	}
	if code == codes.Unknown && status.Convert(err).Message() == context.DeadlineExceeded.Error() { // by etcd 3.4
		code = codes.DeadlineExceeded
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded) || code == codes.DeadlineExceeded:
		return apierrors.NewTimeoutError("the storage took too long", 0)
	case code == codes.Unavailable:
		return apierrors.NewServiceUnavailable("the storage is unavailable: " + err.Error())
	}
	return err
}

// stamp sets the UID of a new object if Options.NewUID is set, and its creationTimestamp if Options.Now is set.
func (o *Options) stamp(obj runtime.Object) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return
	}
	if o.NewUID != nil && m.GetUID() != "" {
		before := string(m.GetUID())
		m.SetUID(o.NewUID())
		if job, ok := obj.(*batch.Job); ok && job.Spec.Selector != nil {
			replaceValues(job.Spec.Selector.MatchLabels, before, string(job.UID))
			replaceValues(job.Spec.Template.Labels, before, string(job.UID))
		}
	}
	if created := m.GetCreationTimestamp(); o.ownClock && !created.IsZero() {
		m.SetCreationTimestamp(metav1.NewTime(o.Now()).Rfc3339Copy())
	}
}

// stampDeletion replaces the deletionTimestamp that an update has set, if Options.Now is set. The new deletionTimestamp
// is the end of the grace period by this clock. The parameter before is the deletionTimestamp that the object had
// before the update.
func (o *Options) stampDeletion(obj runtime.Object, before *metav1.Time) {
	m, err := meta.Accessor(obj)
	if err != nil || !o.ownClock || m.GetDeletionTimestamp() == nil || m.GetDeletionTimestamp().Equal(before) {
		return
	}
	now := o.Now()
	if grace := m.GetDeletionGracePeriodSeconds(); grace != nil {
		now = now.Add(time.Duration(*grace) * time.Second)
	}
	end := metav1.NewTime(now).Rfc3339Copy()
	m.SetDeletionTimestamp(&end)
}

// replaceValues changes the value of each label whose value is the parameter before. The new value is the parameter
// after. It is for the labels of a Job that contain its UID: the Job's strategy sets these labels, and then stamp
// replaces the UID.
func replaceValues(labels map[string]string, before, after string) {
	for name, value := range labels {
		if value == before {
			labels[name] = after
		}
	}
}
