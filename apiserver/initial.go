package apiserver

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/apiserver/internal/builtin"
	"github.com/tenure-ssa/tenure/apiserver/internal/custom"
)

// createInitialObjects creates the default namespaces, the bootstrap objects and the objects of the options, unless
// they exist. It creates Namespaces and definitions first, because other objects need them.
func (s *Server) createInitialObjects(ctx context.Context) error {
	objects := make([]runtime.Object, 0, len(s.options.Definitions)+len(s.options.Objects))
	for _, definition := range s.options.Definitions {
		objects = append(objects, definition)
	}
	var namespaces, definitions, others []*unstructured.Unstructured
	for i, obj := range append(objects, s.options.Objects...) {
		o, err := s.readInitialObject(obj)
		if err != nil {
			return fmt.Errorf("object %d to begin with: %w", i, err)
		}
		switch o.GroupVersionKind().GroupKind() {
		case schema.GroupKind{Kind: "Namespace"}:
			namespaces = append(namespaces, o)
		case definitionKind:
			definitions = append(definitions, o)
		default:
			others = append(others, o)
		}
	}
	if err := s.createEach(ctx, namespaces); err != nil {
		return err
	}
	if !s.options.DisableNamespaceLifecycle {
		if err := s.createNamespaces(ctx); err != nil {
			return err
		}
	}
	if err := s.bootstrap(ctx); err != nil {
		return err
	}
	if err := s.createEach(ctx, definitions); err != nil {
		return err
	}
	return s.createEach(ctx, others)
}

var definitionKind = schema.GroupKind{Group: custom.Plural.Group, Kind: "CustomResourceDefinition"}

func (s *Server) readInitialObject(obj runtime.Object) (*unstructured.Unstructured, error) {
	if v := reflect.ValueOf(obj); obj == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, errors.New("expected an object, got nil")
	}
	kind, err := s.kindOf(obj)
	if err != nil {
		return nil, err
	}
	metadata, err := meta.Accessor(obj)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kind.Kind, err)
	}
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj.DeepCopyObject())
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", kind.Kind, metadata.GetName(), err)
	}
	out := &unstructured.Unstructured{Object: tree}
	out.SetGroupVersionKind(kind)
	return out, nil
}

// kindOf returns the kind of an object, from its TypeMeta, from the scheme of the options, or from the Go type of a
// built-in kind.
func (s *Server) kindOf(obj runtime.Object) (schema.GroupVersionKind, error) {
	if kind := obj.GetObjectKind().GroupVersionKind(); kind.Kind != "" && kind.Version != "" {
		return kind, nil
	}
	if s.options.Scheme != nil {
		if kinds, _, err := s.options.Scheme.ObjectKinds(obj); err == nil {
			return kinds[0], nil
		}
	}
	for _, group := range []string{"", custom.Plural.Group, "apiregistration.k8s.io"} { // one group of each scheme
		if kinds, _, err := builtin.SchemeOf(group).ObjectKinds(obj); err == nil {
			return kinds[0], nil
		}
	}
	return schema.GroupVersionKind{},
		fmt.Errorf("expected apiVersion and kind in a %T, or its kind in Options.Scheme", obj)
}

// createEach creates the objects that do not exist.
func (s *Server) createEach(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		if err := s.createInitialObject(ctx, o); err != nil {
			return fmt.Errorf("%s %s to begin with: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

func (s *Server) createInitialObject(ctx context.Context, o *unstructured.Unstructured) error {
	kind, namespace := o.GroupVersionKind(), o.GetNamespace()
	r := s.tables.Table().ResourceOf(kind)
	switch {
	case r == nil:
		return fmt.Errorf("expected a kind that is served, found %s", kind)
	case o.GetName() == "":
		return errors.New("expected metadata.name")
	case r.Namespaced && namespace == "":
		return errors.New("expected metadata.namespace")
	case !r.Namespaced && namespace != "":
		return fmt.Errorf("expected no metadata.namespace, found %s", namespace)
	}
	if err := s.createGiven(ctx, o); err != nil {
		return err
	}
	if kind.GroupKind() != definitionKind {
		return nil
	}
	// Reload reports why a definition can't be served. Without it, requests for its resources would only get a 404.
	return s.definitions.Reload(ctx, o.GetName())
}

// createNamespaces creates the namespaces that every cluster has. As in kube-apiserver, the field manager
// "kube-apiserver" owns their label.
func (s *Server) createNamespaces(ctx context.Context) error {
	now := metav1.NewTime(s.options.Now())
	fields := `{"f:metadata":{"f:labels":{".":{},"f:` + corev1.LabelMetadataName + `":{}}}}`
	owned := metav1.ManagedFieldsEntry{
		Manager: "kube-apiserver", Operation: metav1.ManagedFieldsOperationUpdate,
		APIVersion: corev1.SchemeGroupVersion.String(), Time: &now,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
	for _, name := range []string{"default", "kube-node-lease", "kube-public", "kube-system"} {
		n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{corev1.LabelMetadataName: name},
			ManagedFields: []metav1.ManagedFieldsEntry{owned},
		}}
		n.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
		if err := s.createGiven(ctx, n); err != nil {
			return err
		}
	}
	return nil
}
