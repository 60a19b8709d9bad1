package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/tenure-ssa/tenure/apiserver/internal/bootstrap"
	"github.com/tenure-ssa/tenure/apiserver/internal/builtin"
	"github.com/tenure-ssa/tenure/apiserver/internal/custom"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// The order in which objects to begin with are stored: an object needs its Namespace, a
// custom resource its definition.
const (
	firstNamespaces = iota
	thenDefinitions
	thenOthers
)

// beginning is an object to begin with.
type beginning struct {
	order           int
	kind            schema.GroupVersionKind
	namespace, name string
	obj             runtime.Object
}

// createObjects creates the default namespaces and the objects of the options that do not
// exist.
func (s *Server) createObjects(ctx context.Context) error {
	objects := make([]runtime.Object, 0, len(s.options.Definitions)+len(s.options.Objects))
	for _, crd := range s.options.Definitions {
		objects = append(objects, crd)
	}
	var all []*beginning
	for i, obj := range append(objects, s.options.Objects...) {
		b, err := s.begin(obj)
		if err != nil {
			return fmt.Errorf("object %d to begin with: %w", i, err)
		}
		all = append(all, b)
	}
	slices.SortStableFunc(all, func(a, b *beginning) int { return a.order - b.order })
	others := slices.IndexFunc(all, func(b *beginning) bool { return b.order != firstNamespaces })
	if others < 0 {
		others = len(all)
	}
	err := s.createAll(ctx, all[:others])
	if err == nil && !s.options.DisableNamespaceLifecycle {
		err = s.createNamespaces(ctx)
	}
	if err == nil {
		err = s.bootstrap(ctx)
	}
	if err != nil {
		return err
	}
	return s.createAll(ctx, all[others:])
}

// bootstrap creates the objects that kube-apiserver creates itself.
func (s *Server) bootstrap(ctx context.Context) error {
	b := s.options.Bootstrap
	own := bootstrap.Own{
		Endpoint: s.options.endpoint(), ClusterIP: s.options.ServiceClusterIPRange.Masked().Addr().Next(),
	}
	for _, set := range []struct {
		name   string
		wanted bool
	}{
		{bootstrap.RBAC, b.RBAC},
		{bootstrap.PriorityClasses, b.PriorityClasses},
		{bootstrap.FlowControl, b.FlowSchemas},
		{bootstrap.Service, b.Service},
	} {
		if !set.wanted {
			continue
		}
		objects, err := own.Objects(set.name)
		for _, obj := range objects {
			if err == nil {
				err = s.createShared(resources.Own(ctx), obj)
			}
			if err == nil && bootstrap.HasEndpoint(obj) {
				err = s.move(ctx, obj)
			}
		}
		if err != nil {
			return fmt.Errorf("bootstrap of %s: %w", set.name, err)
		}
	}
	if _, ok := s.options.Authorizer.(Observer); s.aggregatesClusterRoles() && (ok || b.RBAC) {
		return s.aggregateClusterRoles(ctx)
	}
	return nil
}

// createShared creates an object that other servers of the store create, too. A server allocates the cluster IP of a
// Service before it stores the Service, so createShared waits for the other server. If that was killed in between, the
// cluster IP stays allocated and the Service can't be created, which is logged.
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

// move gives the endpoints that another server left the address of this one.
func (s *Server) move(ctx context.Context, obj *unstructured.Unstructured) error {
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

// endpoint returns the address that the server advertises and the port of the first listener. The port is 0 without a
// listener.
func (o Options) endpoint() netip.AddrPort {
	var at netip.AddrPort
	if len(o.Listeners) > 0 {
		if address, ok := o.Listeners[0].Addr().(*net.TCPAddr); ok {
			at = address.AddrPort()
		}
	}
	address := at.Addr()
	if o.AdvertiseAddress.IsValid() {
		address = o.AdvertiseAddress
	}
	return netip.AddrPortFrom(address.Unmap(), at.Port())
}

// minServiceIPs is how many addresses a range of cluster IPs must have.
const minServiceIPs = 8

// checkNetwork returns an error if the range of cluster IPs is too small, or of another family than the address that
// the server advertises.
func (o Options) checkNetwork() error {
	network := o.ServiceClusterIPRange
	if bits := network.Addr().BitLen() - network.Bits(); 1<<min(bits, 8) < minServiceIPs {
		return fmt.Errorf("ServiceClusterIPRange: expected at least %d addresses, got %s", minServiceIPs, network)
	}
	if a := o.AdvertiseAddress; a.IsValid() && a.Unmap().Is4() != network.Addr().Is4() {
		return fmt.Errorf("AdvertiseAddress: expected the family of ServiceClusterIPRange %s, got %s", network, a)
	}
	return nil
}

// begin reads what createObjects needs of an object.
func (s *Server) begin(obj runtime.Object) (*beginning, error) {
	if v := reflect.ValueOf(obj); obj == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, errors.New("expected an object, got nil")
	}
	kind, err := s.kindOf(obj)
	if err != nil {
		return nil, err
	}
	o, err := meta.Accessor(obj)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kind.Kind, err)
	}
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj.DeepCopyObject())
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", kind.Kind, o.GetName(), err)
	}
	tree["apiVersion"], tree["kind"] = kind.GroupVersion().String(), kind.Kind
	b := &beginning{
		order: thenOthers, kind: kind, namespace: o.GetNamespace(), name: o.GetName(),
		obj: &unstructured.Unstructured{Object: tree},
	}
	switch (schema.GroupKind{Group: kind.Group, Kind: kind.Kind}) {
	case schema.GroupKind{Kind: "Namespace"}:
		b.order = firstNamespaces
	case schema.GroupKind{Group: custom.Plural.Group, Kind: "CustomResourceDefinition"}:
		b.order = thenDefinitions
	}
	return b, nil
}

// kindOf returns the kind of an object: by its TypeMeta, by the scheme of the options, or by
// the Go type of a built-in kind.
func (s *Server) kindOf(obj runtime.Object) (schema.GroupVersionKind, error) {
	if kind := obj.GetObjectKind().GroupVersionKind(); kind.Kind != "" && kind.Version != "" {
		return kind, nil
	}
	if s.options.Scheme != nil {
		if kinds, _, err := s.options.Scheme.ObjectKinds(obj); err == nil {
			return kinds[0], nil
		}
	}
	for _, group := range []string{"", custom.Plural.Group, "apiregistration.k8s.io"} { // one of each scheme
		if kinds, _, err := builtin.SchemeOf(group).ObjectKinds(obj); err == nil {
			return kinds[0], nil
		}
	}
	return schema.GroupVersionKind{},
		fmt.Errorf("expected apiVersion and kind in a %T, or its kind in Options.Scheme", obj)
}

// createAll creates objects that do not exist.
func (s *Server) createAll(ctx context.Context, objects []*beginning) error {
	for _, b := range objects {
		if err := s.createOne(ctx, b); err != nil {
			return fmt.Errorf("%s %s to begin with: %w", b.kind.Kind, b.name, err)
		}
	}
	return nil
}

func (s *Server) createOne(ctx context.Context, b *beginning) error {
	r := s.tables.Table().ResourceOf(b.kind)
	if r == nil {
		return fmt.Errorf("expected a kind that is served, found %s", b.kind)
	}
	if b.name == "" {
		return errors.New("expected metadata.name")
	}
	if r.Namespaced == (b.namespace == "") {
		if r.Namespaced {
			return errors.New("expected metadata.namespace")
		}
		return fmt.Errorf("expected no metadata.namespace, found %s", b.namespace)
	}
	if err := s.createGiven(ctx, b.obj); err != nil {
		return err
	}
	if b.order != thenDefinitions {
		return nil
	}
	// Serving the definition may have failed; a request for it would only be a 404.
	return s.definitions.Changed(ctx, b.name)
}
