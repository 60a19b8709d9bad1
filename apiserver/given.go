package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"

	"github.com/tenure-ssa/tenure/apiserver/internal/builtin"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// createGiven stores an object with all its fields, including fields that a create resets, such as status, uid and
// deletionTimestamp. It sets defaults and validates the object, but calls no admission. It does not change an object
// that exists.
func (s *Server) createGiven(ctx context.Context, given runtime.Object) error {
	kind := given.GetObjectKind().GroupVersionKind()
	r := s.tables.Table().ResourceOf(kind)
	if r == nil {
		return fmt.Errorf("expected a kind that is served, found %s", kind)
	}
	e, err := r.Endpoint("")
	if err != nil {
		return err
	}
	creater, ok := e.Storage.(rest.Creater)
	if !ok || r.Prefix == "" {
		return fmt.Errorf("%s: expected a resource that is stored", r.GroupResource())
	}
	obj, err := decodeGiven(e, given)
	if err != nil {
		return err
	}
	o, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	if err := checkDeleted(r, o); err != nil {
		return err
	}
	if _, err := r.Get(ctx, o.GetNamespace(), o.GetName()); !apierrors.IsNotFound(err) {
		return err // nil if the object exists
	}
	if err := s.checkNamespace(ctx, o.GetNamespace()); err != nil {
		return err
	}
	stored, err := e.Scope.Convertor.ConvertToVersion(obj.DeepCopyObject(), r.Stored.GroupVersion())
	if err != nil {
		return err
	}
	ctx = r.Context(ctx, "create", o.GetNamespace())
	rest.WipeObjectMetaSystemFields(o)
	o.SetResourceVersion("")
	_, err = creater.Create(ctx, obj, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil // another server of this store created it
	}
	if err != nil {
		return err
	}
	return s.keepGiven(ctx, r, stored)
}

// decodeGiven decodes an object strictly, like the body of a request.
func decodeGiven(e *resources.Endpoint, given runtime.Object) (runtime.Object, error) {
	data, err := json.Marshal(given)
	if err != nil {
		return nil, err
	}
	s := e.Scope.Serializer
	info, ok := runtime.SerializerInfoForMediaType(s.SupportedMediaTypes(), runtime.ContentTypeJSON)
	if !ok {
		return nil, fmt.Errorf("%s is not served as JSON", e.Scope.Kind)
	}
	kind := e.Scope.Kind
	obj, _, err := s.DecoderToVersion(info.StrictSerializer, e.Scope.HubGroupVersion).Decode(data, &kind, e.Storage.New())
	return obj, err
}

// checkDeleted rejects an object that a server would have removed: an object with a deletionTimestamp, but without
// finalizers and without a grace period.
func checkDeleted(r *resources.Resource, o metav1.Object) error {
	grace := o.GetDeletionGracePeriodSeconds()
	if o.GetDeletionTimestamp() == nil || len(o.GetFinalizers()) > 0 || grace != nil && *grace > 0 ||
		r.GroupResource().String() == "namespaces" {
		return nil
	}
	return apierrors.NewInvalid(r.GroupKind(), o.GetName(), field.ErrorList{field.Invalid(
		field.NewPath("metadata", "deletionTimestamp"), o.GetDeletionTimestamp(),
		"expected finalizers or a grace period, without which the object does not exist any more")})
}

// checkNamespace returns an error if a namespace does not exist.
func (s *Server) checkNamespace(ctx context.Context, name string) error {
	if name == "" || s.options.DisableNamespaceLifecycle {
		return nil
	}
	_, err := s.tables.Table().Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Get(ctx, "", name)
	return err
}

// keptMetadata are the fields of metadata that a create resets.
var keptMetadata = []string{"uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds"}

// keepGiven restores the fields that a create resets. It copies them from given, which has the storage version, to the
// stored object.
func (s *Server) keepGiven(ctx context.Context, r *resources.Resource, given runtime.Object) error {
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(given)
	if err != nil {
		return err
	}
	metadata, _ := tree["metadata"].(map[string]any)
	kept := map[string]any{}
	for _, name := range keptMetadata {
		if v := metadata[name]; v != nil {
			kept[name] = v
		}
	}
	status, _ := tree["status"].(map[string]any)
	if len(kept) == 0 && len(status) == 0 {
		return nil
	}
	raw, destroy, err := s.openStored(r)
	if err != nil {
		return err
	}
	defer destroy()
	namespace, _ := metadata["namespace"].(string)
	name, _ := metadata["name"].(string)
	change := func(obj runtime.Object) (runtime.Object, error) {
		current, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			return nil, err
		}
		into, _ := current["metadata"].(map[string]any)
		maps.Copy(into, kept)
		if before, ok := current["status"].(map[string]any); ok {
			maps.Copy(before, status)
		} else if len(status) > 0 {
			current["status"] = status
		}
		out := newStored(r)
		return out, runtime.DefaultUnstructuredConverter.FromUnstructured(current, out)
	}
	return raw.GuaranteedUpdate(ctx, path.Join(r.Prefix, namespace, name), newStored(r), false, nil,
		storage.SimpleUpdate(change), nil)
}

// openStored opens the storage of a resource for objects at the storage version.
func (s *Server) openStored(r *resources.Resource) (storage.Interface, factory.DestroyFunc, error) {
	config := &storagebackend.ConfigForResource{GroupResource: r.GroupResource()}
	if r.Custom {
		config.Codec = runtime.NewCodec(unstructured.UnstructuredJSONScheme, unstructured.UnstructuredJSONScheme)
	} else {
		scheme, gv := builtin.SchemeOf(r.Group), r.Stored.GroupVersion()
		config.Codec = builtin.StorageCodec(scheme, scheme, gv, gv)
	}
	return s.open(config, r.Prefix, func() runtime.Object { return newStored(r) },
		func() runtime.Object { return &unstructured.UnstructuredList{} })
}

// newStored returns an empty object at the storage version.
func newStored(r *resources.Resource) runtime.Object {
	if !r.Custom {
		if obj, err := builtin.SchemeOf(r.Group).New(r.Stored); err == nil {
			return obj
		}
	}
	return &unstructured.Unstructured{Object: map[string]any{}}
}

// Define serves the custom resources of a CustomResourceDefinition without storing the definition. It replaces a stored
// definition of the same name. The server uses types for the kind. If types is nil, it uses the types that the schemas
// of the definition define. The error reports what is wrong with the definition.
func (s *Server) Define(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition,
	types *openapi.Registry) error {
	return s.definitions.Add(ctx, crd, types)
}
