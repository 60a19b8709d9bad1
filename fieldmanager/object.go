package fieldmanager

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/internal/gostruct"
	"github.com/tenure-ssa/tenure/internal/trees"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
)

// object is the tree of an object at a version, with the type of its kind at that version. The tree of an unstructured
// object may have managed fields, which [object.stripped] removes.
type object struct {
	tree    map[string]any
	version string
	typ     *typed.Type
}

func isUnstructured(obj runtime.Object) bool {
	_, ok := obj.(runtime.Unstructured)
	return ok
}

// checkMetadata rejects metadata that can't have managed fields.
func checkMetadata(tree map[string]any) error {
	switch v := tree["metadata"].(type) {
	case nil, map[string]any:
		return nil
	default:
		return fmt.Errorf("metadata: expected a map, got %T", v)
	}
}

// withinLimits is like the function [withinLimits], but its error names the object.
func (o object) withinLimits() error {
	o.typ = typed.Deduced()
	return o.validate()
}

// withinLimits rejects a tree that is not JSON or exceeds the limits on a value.
func withinLimits(tree map[string]any) error {
	return typed.Deduced().Validate(tree, typed.Rules{})
}

// hasMetadata reports whether obj has metadata that can have managed fields.
func hasMetadata(obj runtime.Object) bool {
	_, isObject := obj.(metav1.Object)
	_, isAccessor := obj.(metav1.ObjectMetaAccessor)
	return isObject || isAccessor
}

// objectOf returns obj at the version of the FieldManager. If obj is a Go struct of that version, the tree has no
// managed fields; any other tree may have them.
func (m *FieldManager) objectOf(ctx context.Context, obj runtime.Object) (object, error) {
	if m.isOwnStruct(obj) {
		tree, err := gostruct.Tree(obj, managedFieldsPath...)
		return object{tree, m.version, m.typ}, err
	}
	tree, err := gostruct.Tree(obj)
	if err != nil {
		return object{}, err
	}
	if version, _ := tree["apiVersion"].(string); version != m.version && !(version == "" && m.options.Converter == nil) {
		// A converter walks its argument, and may not check limits.
		if err := withinLimits(tree); err != nil {
			return object{}, err
		}
		if tree, err = m.convertTree(ctx, obj, m.kind.GroupVersion()); err != nil {
			return object{}, err
		}
	}
	return object{tree, m.version, m.typ}, nil
}

// isOwnStruct reports whether obj is a Go struct of the FieldManager's kind and version, with metadata.
func (m *FieldManager) isOwnStruct(obj runtime.Object) bool {
	if isUnstructured(obj) || gostruct.IsNil(obj) {
		return false
	}
	_, err := meta.Accessor(obj)
	return err == nil && obj.GetObjectKind().GroupVersionKind() == m.kind
}

// managedFieldsPath is omitted from trees of Go structs.
var managedFieldsPath = []string{"metadata", "managedFields"}

// stripped returns o without its managed fields.
func (o object) stripped() object {
	o.tree = managedfields.With(o.tree, nil)
	return o
}

// emptyObject returns the empty object that a create uses as live.
func (m *FieldManager) emptyObject(ctx context.Context) (object, error) {
	o, err := m.stripped(ctx, m.before)
	if isUnstructured(m.before) && err == nil {
		o.tree, _ = trees.Copy(o.tree).(map[string]any) // the caller owns the result of a create
	}
	return o, err
}

// At returns obj at a version (group/version) as a tree without managed fields, and the type of its kind at that
// version. The tree shares memory with obj. If the version does not exist, the error is [ErrVersionGone].
func (m *FieldManager) At(ctx context.Context, obj runtime.Object, version string) (
	tree map[string]any, t *typed.Type, err error) {
	o, err := m.stripped(ctx, obj)
	if err == nil {
		o, err = m.atVersion(ctx, o, version)
	}
	return o.tree, o.typ, err
}

// stripped returns obj without its managed fields, at the version of the FieldManager.
func (m *FieldManager) stripped(ctx context.Context, obj runtime.Object) (object, error) {
	o, err := m.objectOf(ctx, obj)
	return o.stripped(), err
}

func (m *FieldManager) convertTree(ctx context.Context, obj runtime.Object, to schema.GroupVersion) (
	map[string]any, error) {
	if m.options.Converter == nil {
		return nil, &NoConverterError{Version: to.String()}
	}
	converted, err := m.options.Converter.Convert(ctx, obj, to)
	if err != nil {
		return nil, err
	}
	tree, err := gostruct.Tree(converted)
	if err != nil {
		return nil, fmt.Errorf("converter: %w", err)
	}
	// The tree is not validated against the type of its version, because a comparison also works for invalid objects.
	if err := withinLimits(tree); err != nil {
		return nil, fmt.Errorf("converter: %w", err)
	}
	// A Go struct may omit apiVersion and kind.
	version, _ := tree["apiVersion"].(string)
	kind, _ := tree["kind"].(string)
	if version != "" && version != to.String() || kind != "" && kind != m.kind.Kind {
		return nil, fmt.Errorf("converter: expected %s %s, got %s %s", to, m.kind.Kind, version, kind)
	}
	return tree, nil
}

// typeAt returns the type of the FieldManager's kind at a version. If the version does not exist, the error is
// [ErrVersionGone].
func (m *FieldManager) typeAt(version string) (*typed.Type, error) {
	if version == m.version {
		return m.typ, nil
	}
	gv, err := schema.ParseGroupVersion(version)
	if err != nil {
		return nil, ErrVersionGone
	}
	t, err := m.types.Type(gv.WithKind(m.kind.Kind))
	if runtime.IsNotRegisteredError(err) {
		return nil, ErrVersionGone
	}
	return t, err
}

// atVersion returns o at another version. If the version does not exist, the error is [ErrVersionGone].
func (m *FieldManager) atVersion(ctx context.Context, o object, version string) (object, error) {
	if o.version == version {
		return o, nil
	}
	t, err := m.typeAt(version)
	if err != nil {
		return object{}, err
	}
	gv, _ := schema.ParseGroupVersion(version) // typeAt has already parsed it
	// The converter may keep the Unstructured that it gets, so it gets a new one, which shares the tree.
	tree, err := m.convertTree(ctx, &unstructured.Unstructured{Object: o.stripped().tree}, gv)
	if runtime.IsNotRegisteredError(err) {
		return object{}, ErrVersionGone
	}
	if err != nil {
		return object{}, fmt.Errorf("converting to %s: %w", version, err)
	}
	return object{managedfields.With(tree, nil), version, t}, nil
}

// maxName is the maximum length of an object's name in an error, in bytes.
const maxName = 512

// name returns the name of a tree for an error, as in upstream: (namespace/name; group/version, Kind=kind).
func (o object) name() string {
	// The getters of unstructured objects format a value that is not a string into an error. Such a value may be huge
	// or contain itself, so name reads the map.
	metadata, _ := o.tree["metadata"].(map[string]any)
	namespace, _ := metadata["namespace"].(string)
	name, _ := metadata["name"].(string)
	apiVersion, _ := o.tree["apiVersion"].(string)
	kind, _ := o.tree["kind"].(string)
	if namespace != "" {
		name = namespace + "/" + name
	}
	if name != "" {
		name += "; "
	}
	full := fmt.Sprintf("(%s%s, Kind=%s)", name, apiVersion, kind)
	if len(full) > maxName {
		return strings.ToValidUTF8(full[:maxName], "") + "…"
	}
	return full
}

// Role is the role of an object in a write.
type Role string

// The roles of objects.
const (
	LiveObject    Role = "live"
	AppliedObject Role = "applied"
	NewObject     Role = "new"
)

// NoConverterError reports an object that must be converted to a version, although [Options] have no Converter.
type NoConverterError struct{ Version string }

func (e *NoConverterError) Error() string { return "no converter to version " + e.Version }

// ObjectError says which object of a write is at fault. For the applied or new object, which the client can correct, a
// server responds with 400 or 422; for the live object, with 500. An object that exceeds a limit is at fault
// (spec rule 12.8): then Err is a typed.Errors or *managedfields.Error.
type ObjectError struct {
	// Role is the role of the object in the write.
	Role Role
	// Object is the name of the object, as (namespace/name; group/version, Kind=kind); empty if the object could not be
	// read.
	Object string
	// Err is the fault. If the object does not fit its type, Err is a typed.Errors with the path of each violation.
	Err error
}

func (e *ObjectError) Error() string {
	if e.Object == "" {
		return fmt.Sprintf("%s object: %v", e.Role, e.Err)
	}
	return fmt.Sprintf("%s object %s: %v", e.Role, e.Object, e.Err)
}

// Unwrap returns Err.
func (e *ObjectError) Unwrap() error { return e.Err }
