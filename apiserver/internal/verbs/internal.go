package verbs

import (
	"context"
	"errors"
	"net/http"
	"path"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/apiserver/internal/request"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// Internal returns a call by the server itself, for objects in a namespace and
// writes through a subresource. Written is not told of what it writes.
func (s *Server) Internal(ctx context.Context, r *resources.Resource, namespace, subresource string) (*Call, error) {
	strategy, err := r.Strategy()
	if err != nil {
		return nil, err
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPatch, "/", http.NoBody)
	if err != nil {
		return nil, err
	}
	return &Call{
		Server: s, Request: q, Resource: r, Strategy: strategy, quiet: true,
		Info: &request.Info{
			Resource: true, Group: r.Group, Version: r.Version, Plural: r.Plural, Namespace: namespace, Subresource: subresource,
		},
	}, nil
}

// Get returns an object, nil when it is not there.
func (c *Call) Get(name string) (resources.Object, error) {
	obj, _, _, err := c.read(c.Request.Context(), name)
	return obj, err
}

// Update changes an object that is there, as manager. change is given a copy of
// its own and is called anew when another write was faster. The error is a
// NotFound when it is not there.
func (c *Call) Update(name, manager string, change func(obj resources.Object) error) (resources.Object, error) {
	m, err := c.Strategy.FieldManager(c.Info.Subresource)
	if err != nil {
		return nil, err
	}
	obj, _, err := c.run(write{name: name,
		change: func(_ context.Context, live resources.Object) (resources.Object, error) {
			obj := live.DeepCopyObject().(resources.Object)
			if err := change(obj); err != nil {
				return nil, err
			}
			return c.own(m.UpdateNoErrors(live, obj, manager))
		}})
	return obj, err
}

// ErrStays says that objects which are to be removed are still there.
var ErrStays = errors.New("objects wait for their finalizers")

// RemoveAll deletes the objects of records, which are r's, without a grace period, as
// there is nobody who would end it. The error is ErrStays, among
// others, when some stay for their finalizers; what is gone already is none.
func (s *Server) RemoveAll(ctx context.Context, r *resources.Resource, records []storage.Record) error {
	var errs []error
	var atOnce int64
	for _, record := range records {
		namespace := ""
		if r.Namespaced {
			namespace = path.Base(path.Dir(record.Key))
		}
		call, err := s.Internal(ctx, r, namespace, "")
		if err != nil {
			return err
		}
		_, gone, err := call.remove(ctx, path.Base(record.Key), &metav1.DeleteOptions{GracePeriodSeconds: &atOnce})
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		} else if err == nil && !gone {
			errs = append(errs, ErrStays)
		}
	}
	return errors.Join(errs...)
}
