package verbs

import (
	"context"
	"errors"
	"net/http"
	"path"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/fieldmanager"
)

// The server itself reads and writes like kube-apiserver's loopback client: without
// authorization, and Written is not called for its writes. Admission plugins do not see its
// updates of status: a webhook that is down must not stop the server's own controllers.

// internal returns a call by the server itself for objects in a namespace, through a
// subresource.
func (s *Server) internal(ctx context.Context, r *resources.Resource, namespace, subresource string) (*Call, error) {
	strategy, err := r.Strategy()
	if err != nil {
		return nil, err
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPatch, "/", http.NoBody)
	if err != nil {
		return nil, err
	}
	return &Call{
		Server: s, Request: q, Resource: r, Strategy: strategy, noNotify: true, noPlugins: true,
		Info: &apirequest.RequestInfo{
			IsResourceRequest: true, APIGroup: r.Group, APIVersion: r.Version, Resource: r.Plural,
			Namespace: namespace, Subresource: subresource,
		},
	}, nil
}

// Read returns an object of a cluster-scoped resource, or nil if it does not exist.
func (s *Server) Read(ctx context.Context, r *resources.Resource, name string) (resources.Object, error) {
	c, err := s.internal(ctx, r, "", "")
	if err != nil {
		return nil, err
	}
	obj, _, _, err := c.read(ctx, name)
	return obj, err
}

// Update updates an existing object of a cluster-scoped resource, through a subresource, as a
// field manager. change gets a copy of the live object and is called again after a conflict.
// The error is NotFound if the object does not exist.
func (s *Server) Update(
	ctx context.Context, r *resources.Resource, subresource, name, manager string,
	change func(resources.Object) error,
) (resources.Object, error) {
	c, err := s.internal(ctx, r, "", subresource)
	if err != nil {
		return nil, err
	}
	return c.updateAs(name, manager, change)
}

// updateAs is Update for an object in the namespace of the call.
func (c *Call) updateAs(name, manager string, change func(resources.Object) error) (resources.Object, error) {
	m, err := c.Strategy.FieldManager(c.Info.Subresource)
	if err != nil {
		return nil, err
	}
	obj, _, err := c.guaranteedUpdate(write{name: name,
		change: func(_ context.Context, live resources.Object) (resources.Object, error) {
			obj := live.DeepCopyObject().(resources.Object)
			if err := change(obj); err != nil {
				return nil, err
			}
			return copyAndDecode(
				c.Strategy,
				m.UpdateNoErrors(context.Background(), live, obj, fieldmanager.UpdateOptions{Manager: manager}),
			)
		}})
	return obj, err
}

// ErrStays reports objects that are not removed yet because they have finalizers.
var ErrStays = errors.New("objects wait for their finalizers")

// RemoveAll deletes the objects of r in records, with grace period 0: there is no kubelet that
// ends it. Objects that do not exist any more are no error. If objects have finalizers the
// error is ErrStays, joined with other errors. If ctx has a user, admission plugins see the
// deletes as this user's.
func (s *Server) RemoveAll(ctx context.Context, r *resources.Resource, records []storage.Record) error {
	var errs []error
	var atOnce int64
	background := metav1.DeletePropagationBackground
	for _, record := range records {
		namespace := ""
		if r.Namespaced {
			namespace = path.Base(path.Dir(record.Key))
		}
		call, err := s.internal(ctx, r, namespace, "")
		if err != nil {
			return err
		}
		_, hasUser := apirequest.UserFrom(ctx)
		call.noPlugins = !hasUser
		_, gone, err := call.deleteObject(ctx, path.Base(record.Key), &metav1.DeleteOptions{
			GracePeriodSeconds: &atOnce, PropagationPolicy: &background,
		})
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		} else if err == nil && !gone {
			errs = append(errs, ErrStays)
		}
	}
	return errors.Join(errs...)
}
