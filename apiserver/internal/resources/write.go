package resources

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
)

// The server itself writes without admission: a webhook that is down must not stop the server's own controllers.

// Modify updates an existing object through a subresource, as a field manager. The function change gets a copy of the
// live object at the version of the resource. After a conflict, change is called again.
func (r *Resource) Modify(
	ctx context.Context, namespace, name, subresource, manager string, change func(runtime.Object) error,
) (runtime.Object, error) {
	return r.update(ctx, namespace, name, subresource, func(e *Endpoint, live runtime.Object) (runtime.Object, error) {
		obj, err := e.Scope.Convertor.ConvertToVersion(live, r.GroupVersion())
		if err != nil {
			return nil, err
		}
		obj = obj.DeepCopyObject()
		if err := change(obj); err != nil {
			return nil, err
		}
		hub, err := e.Scope.Convertor.ConvertToVersion(obj, e.Scope.HubGroupVersion)
		if err != nil {
			return nil, err
		}
		return e.Fields.UpdateNoErrors(live, hub, manager), nil
	})
}

// Apply applies an intent to an existing object, with force. If the intent has an outdated resourceVersion, Apply
// returns a conflict.
func (r *Resource) Apply(
	ctx context.Context, intent *unstructured.Unstructured, manager string,
) (runtime.Object, error) {
	return r.update(ctx, intent.GetNamespace(), intent.GetName(), "",
		func(e *Endpoint, live runtime.Object) (runtime.Object, error) {
			return e.Fields.Apply(live, intent, manager, true)
		})
}

// update stores the object that change returns for the live object. The function change gets and returns objects at the
// hub version.
func (r *Resource) update(
	ctx context.Context, namespace, name, subresource string,
	change func(e *Endpoint, live runtime.Object) (runtime.Object, error),
) (runtime.Object, error) {
	e, err := r.Endpoint(subresource)
	if err != nil {
		return nil, err
	}
	updater, ok := e.Storage.(rest.Updater)
	if !ok {
		return nil, fmt.Errorf("%s/%s: expected a resource that can be updated", r.GroupResource(), subresource)
	}
	step := func(_ context.Context, _, live runtime.Object) (runtime.Object, error) { return change(e, live) }
	obj, _, err := updater.Update(r.Context(ctx, "update", namespace), name, rest.DefaultUpdatedObjectInfo(nil, step),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if err != nil {
		return nil, err
	}
	return e.Scope.Convertor.ConvertToVersion(obj, r.GroupVersion())
}

// self is the user of the server's own requests, the same as in kube-apiserver.
var self = &user.DefaultInfo{Name: user.APIServerUser, Groups: []string{user.SystemPrivilegedGroup}}

type ownKey struct{}

// Own returns the context for a write by a controller of the server. Its user is the server, and the write does not
// trigger the server's controllers.
func Own(ctx context.Context) context.Context {
	return context.WithValue(apirequest.WithUser(ctx, self), ownKey{}, true)
}

// IsOwn reports whether a context belongs to a write by a controller of the server.
func IsOwn(ctx context.Context) bool { return ctx.Value(ownKey{}) != nil }

// Context returns the context of a request by the server itself.
func (r *Resource) Context(ctx context.Context, verb, namespace string) context.Context {
	ctx = apirequest.WithRequestInfo(ctx, &apirequest.RequestInfo{
		IsResourceRequest: true, Verb: verb, APIGroup: r.Group, APIVersion: r.Version, Resource: r.Plural,
		Namespace: namespace,
	})
	if _, ok := apirequest.UserFrom(ctx); !ok {
		ctx = apirequest.WithUser(ctx, self)
	}
	return apirequest.WithNamespace(ctx, namespace)
}

// ErrStays reports objects that are not removed yet because they have finalizers.
var ErrStays = errors.New("objects wait for their finalizers")

// RemoveAll deletes the objects in a namespace, or in all namespaces if namespace is empty. The grace period is 0,
// because no kubelet runs that could end a grace period. If validate is not nil, RemoveAll calls it for each object. If
// objects with finalizers remain, the error contains ErrStays.
func (r *Resource) RemoveAll(ctx context.Context, namespace string, validate rest.ValidateObjectFunc) error {
	e, err := r.Endpoint("")
	if err != nil {
		return err
	}
	deleter, ok := e.Storage.(rest.CollectionDeleter)
	if !ok {
		return nil
	}
	if validate == nil {
		validate = rest.ValidateAllObjectFunc
	}
	list, err := r.Objects(ctx, namespace)
	if err != nil {
		return err
	}
	namespaces := map[string]bool{}
	for _, obj := range list {
		if o, err := meta.Accessor(obj); err == nil {
			namespaces[o.GetNamespace()] = true
		}
	}
	var errs []error
	for name := range namespaces {
		var atOnce int64
		background := metav1.DeletePropagationBackground
		options := &metav1.DeleteOptions{GracePeriodSeconds: &atOnce, PropagationPolicy: &background}
		_, err := deleter.DeleteCollection(r.Context(ctx, "deletecollection", name), validate, options,
			&internalversion.ListOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	if len(list) > 0 && len(errs) == 0 {
		if list, err = r.Objects(ctx, namespace); err == nil && len(list) > 0 {
			err = ErrStays
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
