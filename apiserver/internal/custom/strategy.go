package custom

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/typed/fieldpath"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// kind implements resources.Strategy for a version of a CustomResourceDefinition.
type kind struct {
	resources.FieldManagers
	definition *Definition
	version    *apiextensionsv1.CustomResourceDefinitionVersion
	resource   *resources.Resource
	gvk        schema.GroupVersionKind
	schemas    map[string]*structuralschema.Structural
	schema     *structuralschema.Structural // of this version
	defaulters map[string]*defaulter        // by version
	converter  converter
	columns    *columns
	selectable []selectable
	validators func() (*validators, error)
}

func open(
	d *Definition, v *apiextensionsv1.CustomResourceDefinitionVersion, r *resources.Resource,
) (resources.Strategy, error) {
	schemas, err := d.schemas()
	if err != nil {
		return nil, err
	}
	k := &kind{
		definition: d, version: v, resource: r, gvk: r.GVK(), schemas: schemas, schema: schemas[v.Name],
		converter: converter{d}, defaulters: map[string]*defaulter{},
	}
	k.FieldManagers = resources.FieldManagers{New: k.newFieldManager, Now: d.options.Now}
	for name, s := range schemas {
		k.defaulters[name] = newDefaulter(s, d.options.MaxObject)
	}
	if k.columns, err = columnsOf(v); err != nil {
		return nil, err
	}
	if k.selectable, err = selectables(v); err != nil {
		return nil, err
	}
	k.validators = sync.OnceValues(k.newValidators)
	return k, nil
}

// New returns an object with apiVersion and kind.
func (k *kind) New() resources.Object {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(k.gvk)
	return u
}

// List returns an UnstructuredList.
func (k *kind) List(items []resources.Object, list metav1.ListMeta) runtime.Object {
	metadata := map[string]any{"continue": list.Continue, "resourceVersion": list.ResourceVersion}
	if list.RemainingItemCount != nil {
		metadata["remainingItemCount"] = *list.RemainingItemCount
	}
	out := &unstructured.UnstructuredList{
		Object: map[string]any{"apiVersion": k.gvk.GroupVersion().String(), "kind": k.resource.List(), "metadata": metadata},
		Items:  make([]unstructured.Unstructured, len(items)),
	}
	for i, item := range items {
		out.Items[i] = *item.(*unstructured.Unstructured)
	}
	return out
}

func (k *kind) Serializers() []runtime.SerializerInfo { return serializers() }

// Decode prunes unknown fields and sets defaults.
func (k *kind) Decode(decoded runtime.Object) (resources.Object, []string, error) {
	u, ok := decoded.(*unstructured.Unstructured)
	if !ok {
		return nil, nil, fmt.Errorf("expected an object without a Go type, got a %T", decoded)
	}
	gvk := u.GroupVersionKind()
	switch {
	case gvk.GroupVersion() != k.gvk.GroupVersion():
		return nil, nil, apierrors.NewBadRequest((&resources.VersionError{Got: gvk.GroupVersion(),
			Expected: k.gvk.GroupVersion()}).Error())
	case gvk.Kind != k.gvk.Kind:
		return nil, nil, apierrors.NewInvalid(k.gvk.GroupKind(), u.GetName(), field.ErrorList{
			field.Invalid(field.NewPath("kind"), gvk.Kind, "must be "+k.gvk.Kind),
		})
	}
	unknown, err := k.coerce(u, true)
	if err != nil {
		return nil, nil, err
	}
	for i, path := range unknown {
		unknown[i] = fmt.Sprintf("unknown field %q", path)
	}
	if err := k.defaulters[k.gvk.Version].fill(u.Object); err != nil {
		return nil, nil, err
	}
	return u, unknown, nil
}

// DecodeStored decodes an object and converts it to this version. The stored version may be a
// former storage version.
func (k *kind) DecodeStored(data []byte) (resources.Object, error) {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		return nil, err
	}
	stored := u.GroupVersionKind().Version
	if err := coerceStored(u, k.schemas[stored], k.definition.crd.Spec.PreserveUnknownFields); err != nil {
		return nil, err
	}
	if err := k.defaulters[stored].fill(u.Object); err != nil {
		return nil, err
	}
	if stored == k.gvk.Version {
		return u, nil
	}
	return k.convert(u, k.gvk.Version)
}

// convert converts an object to a version of the definition and prunes it.
func (k *kind) convert(u *unstructured.Unstructured, version string) (*unstructured.Unstructured, error) {
	out, err := k.converter.Convert(context.TODO(), u, schema.GroupVersion{Group: k.gvk.Group, Version: version})
	if err != nil {
		return nil, err
	}
	converted, ok := out.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("converting to %s: expected an object without a Go type, got a %T", version, out)
	}
	if err := prune(converted, k.schemas[version], k.definition.crd.Spec.PreserveUnknownFields); err != nil {
		return nil, err
	}
	return converted, nil
}

func (k *kind) EncodeStored(obj resources.Object) ([]byte, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("expected an object without a Go type, got a %T", obj)
	}
	if k.definition.storage != k.gvk.Version {
		converted, err := k.convert(u.DeepCopy(), k.definition.storage)
		if err != nil {
			return nil, err
		}
		u = converted
	}
	return json.Marshal(u.Object)
}

func (k *kind) newFieldManager(subresource string) (*fieldmanager.FieldManager, error) {
	types, err := k.definition.types()
	if err != nil {
		return nil, err
	}
	return fieldmanager.New(k.gvk, types,
		fieldmanager.Options{Clock: k.definition.options.Now,
			Subresource: subresource,
			Converter:   k.converter,
			ResetFields: k.definition.resetFields(subresource, k.gvk.Version)},
	)
}

// resetFields returns the reset fields of a subresource, by version. As in kube-apiserver, a
// write to the main resource resets status at its own version only, a write to status resets
// spec and metadata at all versions.
func (d *Definition) resetFields(subresource, version string) map[string]fieldpath.Filter {
	out := map[string]fieldpath.Filter{}
	for _, v := range d.crd.Spec.Versions {
		if v.Subresources == nil || v.Subresources.Status == nil {
			continue
		}
		gv := d.crd.Spec.Group + "/" + v.Name
		switch {
		case subresource == "status":
			out[gv] = fieldpath.Excluding{Set: fieldpath.NewSet(fieldpath.Fields("spec"), fieldpath.Fields("metadata"))}
		case v.Name == version:
			out[gv] = fieldpath.Excluding{Set: fieldpath.NewSet(fieldpath.Fields("status"))}
		}
	}
	return out
}

// PatchMetaStruct returns nil: custom resources have no strategic merge patch.
func (k *kind) PatchMetaStruct() any { return nil }

// PrepareForCreate drops the status if it is a subresource.
func (k *kind) PrepareForCreate(_ context.Context, obj resources.Object) {
	if k.hasStatusSubresource() {
		delete(obj.(*unstructured.Unstructured).Object, "status")
	}
	obj.SetGeneration(1)
}

func (k *kind) hasStatusSubresource() bool {
	return k.version.Subresources != nil && k.version.Subresources.Status != nil
}

// Canonicalize does nothing: defaults do not depend on what the server sets.
func (k *kind) Canonicalize(resources.Object) {}

// PrepareForUpdate resets the status or, for the status subresource, everything else.
func (k *kind) PrepareForUpdate(obj, live resources.Object, subresource string) {
	u, before := obj.(*unstructured.Unstructured), live.(*unstructured.Unstructured)
	if subresource == "status" {
		status, has := u.Object["status"]
		fields := u.GetManagedFields()
		u.Object = before.DeepCopy().Object
		u.SetManagedFields(fields)
		delete(u.Object, "status")
		if has {
			u.Object["status"] = status
		}
		return
	}
	if k.hasStatusSubresource() {
		delete(u.Object, "status")
		if status, ok := before.Object["status"]; ok {
			u.Object["status"] = runtime.DeepCopyJSONValue(status)
		}
	}
	u.SetGeneration(before.GetGeneration())
	if !apiequality.Semantic.DeepEqual(withoutMetadata(u.Object), withoutMetadata(before.Object)) {
		u.SetGeneration(before.GetGeneration() + 1)
	}
}

func withoutMetadata(tree map[string]any) map[string]any {
	out := maps.Clone(tree)
	delete(out, "metadata")
	return out
}

// AllowUnconditionalUpdate returns false, as for all custom resources.
func (k *kind) AllowUnconditionalUpdate() bool { return false }

// GracefulDelete returns no grace period, as for all custom resources.
func (k *kind) GracefulDelete(resources.Object, *int64) (int64, bool) { return 0, false }

// AllowCreateOnUpdate returns false, as for all custom resources.
func (k *kind) AllowCreateOnUpdate() bool { return false }

// Validate validates metadata, the schema, and the CEL rules of the schema.
func (k *kind) Validate(
	ctx context.Context, obj, live resources.Object, subresource string,
) (field.ErrorList, []string) {
	v, err := k.validators()
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}, nil
	}
	u := obj.(*unstructured.Unstructured)
	if live == nil {
		return v.create(ctx, u), finalizerWarnings(u, nil)
	}
	before := live.(*unstructured.Unstructured)
	if subresource == "status" {
		return v.status(ctx, u, before), nil
	}
	return v.update(ctx, u, before), finalizerWarnings(u, before)
}

// TableColumns returns the columns in additionalPrinterColumns.
func (k *kind) TableColumns() resources.Columns { return k.columns }

// pathOf splits a simple JSON path, such as .spec.replicas.
func pathOf(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }
