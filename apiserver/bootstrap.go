package apiserver

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/tenure-ssa/tenure/apiserver/internal/bootstrap"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// bootstrap creates the sets of kube-apiserver's own objects that the options select.
func (s *Server) bootstrap(ctx context.Context) error {
	wanted := s.options.Bootstrap
	own := bootstrap.Own{
		Endpoint: s.options.endpoint(), ClusterIP: s.options.ServiceClusterIPRange.Masked().Addr().Next(),
	}
	for _, set := range []struct {
		name     string
		isWanted bool
	}{
		{bootstrap.RBAC, wanted.RBAC},
		{bootstrap.PriorityClasses, wanted.PriorityClasses},
		{bootstrap.FlowControl, wanted.FlowSchemas},
		{bootstrap.Service, wanted.Service},
	} {
		if !set.isWanted {
			continue
		}
		if err := s.createBootstrapSet(resources.Own(ctx), own, set.name); err != nil {
			return fmt.Errorf("bootstrap of %s: %w", set.name, err)
		}
	}
	if _, ok := s.options.Authorizer.(Observer); ok || wanted.RBAC {
		return s.controllers.AggregateClusterRoles(ctx)
	}
	return nil
}

// createBootstrapSet creates the objects of a set that do not exist. It writes this server's address into the endpoints
// of the set, even if they exist.
func (s *Server) createBootstrapSet(ctx context.Context, own bootstrap.Own, set string) error {
	objects, err := own.Objects(set)
	if err != nil {
		return err
	}
	for _, obj := range objects {
		if err := s.createShared(ctx, obj); err != nil {
			return err
		}
		if !bootstrap.HasEndpoint(obj) {
			continue
		}
		if err := s.takeEndpoint(ctx, obj); err != nil {
			return err
		}
	}
	return nil
}

// createShared creates an object that other servers of the same store create too. A server allocates the cluster IP of
// a Service before it stores the Service. While another server is between these two steps, a create of the Service
// fails as invalid, and createShared retries the create. If the other server was killed between the steps, the cluster
// IP stays allocated, and the Service can't be created; createShared logs this.
func (s *Server) createShared(ctx context.Context, obj *unstructured.Unstructured) error {
	var last error
	create := func(ctx context.Context) (bool, error) {
		last = s.createGiven(ctx, obj.DeepCopy())
		return !apierrors.IsInvalid(last), nil
	}
	_ = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 3*time.Second, true, create)
	if apierrors.IsInvalid(last) {
		s.options.Log.Warn("not created", "kind", obj.GetKind(), "name", obj.GetName(), "err", last)
		return nil
	}
	return last
}

// takeEndpoint replaces the endpoints in an object with this server's endpoints. Another server may have written them.
func (s *Server) takeEndpoint(ctx context.Context, obj *unstructured.Unstructured) error {
	r := s.tables.Table().ResourceOf(obj.GroupVersionKind())
	wanted := func(live runtime.Object) error {
		switch live := live.(type) {
		//lint:ignore SA1019 clients read it
		case *corev1.Endpoints:
			//lint:ignore SA1019 clients read it
			own := &corev1.Endpoints{}
			err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, own)
			live.Subsets = own.Subsets
			return err
		case *discoveryv1.EndpointSlice:
			own := &discoveryv1.EndpointSlice{}
			err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, own)
			live.Endpoints, live.Ports = own.Endpoints, own.Ports
			return err
		}
		return nil
	}
	_, err := r.Modify(ctx, obj.GetNamespace(), obj.GetName(), "", "kube-apiserver", wanted)
	return err
}
