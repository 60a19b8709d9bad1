package strategy

import (
	"encoding/json"
	"fmt"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
)

var (
	schemesLock sync.Mutex
	schemes     = map[schema.GroupVersion]*runtime.Scheme{}
)

// NewObject returns the zero value of the Go type of a built-in kind, with its apiVersion and kind; ok is false for
// kinds that k8s.io/api does not have.
func NewObject(gvk schema.GroupVersionKind) (obj runtime.Object, ok bool) {
	add := packages[gvk.GroupVersion()]
	if add == nil {
		return nil, false
	}
	schemesLock.Lock()
	defer schemesLock.Unlock()
	s := schemes[gvk.GroupVersion()]
	if s == nil {
		s = runtime.NewScheme()
		if err := add(s); err != nil {
			return nil, false
		}
		schemes[gvk.GroupVersion()] = s
	}
	obj, err := s.New(gvk)
	if err != nil {
		return nil, false
	}
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	return obj, true
}

// treeOf returns an object of a built-in kind as a server decodes it: without the fields that its Go type omits, and
// with defaults. It returns an error for a field that the Go type does not have, or a kind that k8s.io/api does not
// have. The result shares no memory with tree.
func treeOf(gvk schema.GroupVersionKind, tree map[string]any) (map[string]any, error) {
	obj, err := structOf(gvk, tree)
	if err != nil {
		return nil, err
	}
	SetDefaults(obj)
	return newTree(obj)
}

// structOf returns a tree as a Go struct. It returns an error for a field that the struct does not have.
func structOf(gvk schema.GroupVersionKind, tree map[string]any) (runtime.Object, error) {
	obj, ok := NewObject(gvk)
	if !ok {
		return nil, fmt.Errorf("%s: expected a kind of k8s.io/api", gvk)
	}
	data, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	strict, err := kjson.UnmarshalStrict(data, obj, kjson.DisallowUnknownFields)
	if err == nil && len(strict) > 0 {
		err = strict[0]
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", gvk.Kind, err)
	}
	return obj, nil
}

// newTree returns the JSON value of an object.
func newTree(obj runtime.Object) (map[string]any, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	return out, kjson.UnmarshalCaseSensitivePreserveInts(data, &out)
}

// defaulterOf returns a function for plans.Options.Defaulter and fieldmanager.Options.Defaulter. It sets the defaults
// of objects of a kind in place, in Go structs and in trees. It does not change objects of kinds that [SetDefaults] and
// ofExtensions do not know. It also does not change trees that do not fit the Go type, for example because they have a
// field of a later version of Kubernetes.
func defaulterOf(gvk schema.GroupVersionKind) func(runtime.Object) {
	return func(obj runtime.Object) {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			SetDefaults(obj)
			return
		}
		if decode := ofExtensions[gvk]; decode != nil {
			u.Object = decode(u.Object)
		} else if out, err := treeOf(gvk, u.Object); err == nil {
			u.Object = out
		}
	}
}

// packages has the functions that add the Go types of built-in kinds to a scheme, by group version. Calling all of them
// takes milliseconds, so a program calls only those that it needs. The map has the group versions that all supported
// versions of k8s.io/api have, except storagemigration.k8s.io/v1, whose only kind has no defaults.
var packages = map[schema.GroupVersion]func(*runtime.Scheme) error{
	admissionregistrationv1.SchemeGroupVersion: admissionregistrationv1.AddToScheme,
	appsv1.SchemeGroupVersion:                  appsv1.AddToScheme,
	authenticationv1.SchemeGroupVersion:        authenticationv1.AddToScheme,
	authorizationv1.SchemeGroupVersion:         authorizationv1.AddToScheme,
	autoscalingv1.SchemeGroupVersion:           autoscalingv1.AddToScheme,
	autoscalingv2.SchemeGroupVersion:           autoscalingv2.AddToScheme,
	batchv1.SchemeGroupVersion:                 batchv1.AddToScheme,
	certificatesv1.SchemeGroupVersion:          certificatesv1.AddToScheme,
	coordinationv1.SchemeGroupVersion:          coordinationv1.AddToScheme,
	corev1.SchemeGroupVersion:                  corev1.AddToScheme,
	discoveryv1.SchemeGroupVersion:             discoveryv1.AddToScheme,
	eventsv1.SchemeGroupVersion:                eventsv1.AddToScheme,
	flowcontrolv1.SchemeGroupVersion:           flowcontrolv1.AddToScheme,
	networkingv1.SchemeGroupVersion:            networkingv1.AddToScheme,
	nodev1.SchemeGroupVersion:                  nodev1.AddToScheme,
	policyv1.SchemeGroupVersion:                policyv1.AddToScheme,
	rbacv1.SchemeGroupVersion:                  rbacv1.AddToScheme,
	resourcev1.SchemeGroupVersion:              resourcev1.AddToScheme,
	schedulingv1.SchemeGroupVersion:            schedulingv1.AddToScheme,
	storagev1.SchemeGroupVersion:               storagev1.AddToScheme,
}
