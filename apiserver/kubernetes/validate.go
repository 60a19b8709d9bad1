// Package kubernetes has kube-apiserver's own validation of built-in kinds, and its warnings, for those who write
// without a server: the strategies of k8s.io/kubernetes.
//
// A strategy works on internal types. [Validate] converts the object of a write and live to them, by
// Kubernetes' own conversions. So the Go types must be of the version of Kubernetes that go.mod requires: conversions
// copy memory where the types are the same.
//
// What is not in the strategies is not checked: allocated addresses and ports of Services, permissions for the objects
// that admission policies name as parameters, and whether a namespace allows administrative access to devices.
package kubernetes

import (
	"context"
	"errors"
	"reflect"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	clientcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/kubernetes/pkg/capabilities"

	"github.com/tenure-ssa/tenure/apiserver/admission"
)

var strategies = sync.OnceValue(func() map[schema.GroupKind]strategy {
	AllowPrivileged(true)
	return newStrategies()
})

// AllowPrivileged says whether Pods may have privileged containers, as kube-apiserver's flag --allow-privileged does.
// They may by default. It holds for the whole process; only the first call before the first [Validate] has an effect,
// as Kubernetes has one global variable for it.
func AllowPrivileged(allow bool) { capabilities.Setup(allow, 0) }

// Validate returns the errors of a create or update of a built-in kind, and warnings for the client. ok is false for
// other kinds. It is safe for concurrent use, and changes neither object.
func Validate(ctx context.Context, w *admission.Write) (errs field.ErrorList, warnings []string, ok bool) {
	s, ok := strategies()[w.Kind.GroupKind()]
	if !ok {
		return nil, nil, false
	}
	ctx = withRequest(ctx, w)
	obj, err := toInternal(w.Object)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}, nil, true
	}
	if w.Operation == admission.Create {
		if errs = s.Validate(ctx, obj); len(errs) > 0 {
			return errs, nil, true
		}
		return nil, s.WarningsOnCreate(ctx, obj), true
	}
	update, ok := s.update[w.Subresource]
	if !ok {
		return nil, nil, true // such as binding, which writes no object of the client's
	}
	live, err := toInternal(w.Live)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}, nil, true
	}
	dropEmpty(reflect.ValueOf(live))
	if errs = update.ValidateUpdate(ctx, obj, live); len(errs) > 0 {
		return errs, nil, true
	}
	return nil, update.WarningsOnUpdate(ctx, obj, live), true
}

// withRequest adds what strategies read from the context: the namespace, and the version and subresource, by which
// declarative validation finds its rules.
func withRequest(ctx context.Context, w *admission.Write) context.Context {
	verb := "create"
	if w.Operation != admission.Create {
		verb = "update"
	}
	if w.User != nil {
		ctx = apirequest.WithUser(ctx, w.User)
	}
	namespace := w.Object.GetNamespace()
	return apirequest.WithRequestInfo(apirequest.WithNamespace(ctx, namespace), &apirequest.RequestInfo{
		IsResourceRequest: true, Verb: verb, APIGroup: w.Resource.Group, APIVersion: w.Resource.Version,
		Namespace: namespace, Resource: w.Resource.Resource, Subresource: w.Subresource, Name: w.Object.GetName(),
	})
}

// toInternal converts an object to its internal type. The copy is needed because the internal object shares memory with
// what it was converted from, and because some conversions change it.
func toInternal(obj runtime.Object) (runtime.Object, error) {
	return scheme().ConvertToVersion(obj.DeepCopyObject(), internalVersions)
}

// dropEmpty replaces empty lists and maps of a live object by null, which is what kube-apiserver reads from its
// storage: protobuf can't tell them apart. Messages that compare two objects show it.
func dropEmpty(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			dropEmpty(v.Elem())
		}
	case reflect.Slice, reflect.Map:
		if v.Len() == 0 && v.CanSet() && v.Type().Elem().Kind() != reflect.Uint8 {
			v.SetZero()
		}
		for i := 0; v.Kind() == reflect.Slice && i < v.Len(); i++ {
			dropEmpty(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				dropEmpty(v.Field(i))
			}
		}
	}
}

// internalVersions picks the internal version of a kind, which for events is that of the core group.
var internalVersions = runtime.GroupVersioner(internal{})

type internal struct{}

func (internal) Identifier() string { return "tenure-internal" }

func (internal) KindForGroupVersionKinds(kinds []schema.GroupVersionKind) (schema.GroupVersionKind, bool) {
	if len(kinds) == 0 {
		return schema.GroupVersionKind{}, false
	}
	kind := kinds[0]
	if kind.Group == "events.k8s.io" {
		kind.Group = ""
	}
	kind.Version = runtime.APIVersionInternal
	return kind, true
}

// namespaces is what the strategies of claims ask whether a namespace allows administrative access: all do.
type namespaces struct {
	clientcorev1.NamespaceInterface
}

var errNoName = errors.New("a namespace without a name")

func (namespaces) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Namespace, error) {
	if name == "" {
		return nil, errNoName
	}
	labels := map[string]string{"resource.kubernetes.io/admin-access": "true"}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, nil
}
