package custom

import (
	"context"
	"encoding/json"
	"fmt"
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
	"github.com/tenure-ssa/tenure/fieldpath"

	"github.com/tenure-ssa/tenure/apiserver/internal/builtin"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// kind is the kind of a definition at one version.
type kind struct {
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

	lock     sync.Mutex
	managers map[string]*fieldmanager.FieldManager // by subresource
}

func open(d *Definition, v *apiextensionsv1.CustomResourceDefinitionVersion, r *resources.Resource) (resources.Kind, error) {
	schemas, err := d.schemas()
	if err != nil {
		return nil, err
	}
	k := &kind{
		definition: d, version: v, resource: r, gvk: r.GVK(), schemas: schemas, schema: schemas[v.Name],
		converter: converter{d}, managers: map[string]*fieldmanager.FieldManager{}, defaulters: map[string]*defaulter{},
	}
	for name, s := range schemas {
		k.defaulters[name] = newDefaulter(s, d.options.MaxObject)
	}
	if k.columns, err = columnsOf(v, d.options.Now); err != nil {
		return nil, err
	}
	if k.selectable, err = selectables(v); err != nil {
		return nil, err
	}
	k.validators = sync.OnceValues(k.newValidators)
	return k, nil
}

// New returns an object that has an apiVersion and a kind.
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

// Admit prunes an object and sets its defaults.
func (k *kind) Admit(decoded runtime.Object) (resources.Object, []string, error) {
	u, ok := decoded.(*unstructured.Unstructured)
	if !ok {
		return nil, nil, fmt.Errorf("expected an object without a Go type, got a %T", decoded)
	}
	gvk := u.GroupVersionKind()
	switch {
	case gvk.GroupVersion() != k.gvk.GroupVersion():
		return nil, nil, apierrors.NewBadRequest((&resources.VersionError{Got: gvk.GroupVersion(), Expected: k.gvk.GroupVersion()}).Error())
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

// DecodeStored reads an object at the version that it was stored as, which may be
// one that was the stored version once, and converts it.
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

// convert returns an object at a version of the definition, pruned.
func (k *kind) convert(u *unstructured.Unstructured, version string) (*unstructured.Unstructured, error) {
	out, err := k.converter.Convert(u, schema.GroupVersion{Group: k.gvk.Group, Version: version})
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

func (k *kind) Fields(subresource string) (*fieldmanager.FieldManager, error) {
	k.lock.Lock()
	defer k.lock.Unlock()
	if m := k.managers[subresource]; m != nil {
		return m, nil
	}
	m, err := k.newManager(subresource)
	if err == nil {
		k.managers[subresource] = m
	}
	return m, err
}

func (k *kind) newManager(subresource string) (*fieldmanager.FieldManager, error) {
	if subresource == "scale" {
		return builtin.ScaleFields(k.definition.options.Now)
	}
	types, err := k.definition.types()
	if err != nil {
		return nil, err
	}
	return fieldmanager.New(k.gvk, types,
		fieldmanager.WithClock(k.definition.options.Now),
		fieldmanager.WithSubresource(subresource),
		fieldmanager.WithConverter(k.converter),
		fieldmanager.WithResetFields(k.definition.reset(subresource, k.gvk.Version)),
	)
}

// reset returns what a write through a subresource never comes to own. A write to
// the object resets fields at its own version, one to the status at all.
func (d *Definition) reset(subresource, version string) map[string]fieldpath.Filter {
	out := map[string]fieldpath.Filter{}
	for _, v := range d.crd.Spec.Versions {
		if v.Subresources == nil || v.Subresources.Status == nil {
			continue
		}
		gv := d.crd.Spec.Group + "/" + v.Name
		switch {
		case subresource == "status":
			out[gv] = fieldpath.Excluding(fieldpath.NewSet(fieldpath.Fields("spec"), fieldpath.Fields("metadata")))
		case v.Name == version:
			out[gv] = fieldpath.Excluding(fieldpath.NewSet(fieldpath.Fields("status")))
		}
	}
	return out
}

// Strategic returns nil: there is no Go type that says how patches merge.
func (k *kind) Strategic() any { return nil }

// PrepareCreate drops the status if it is a subresource.
func (k *kind) PrepareCreate(_ context.Context, obj resources.Object) {
	if k.hasStatus() {
		delete(obj.(*unstructured.Unstructured).Object, "status")
	}
	obj.SetGeneration(1)
}

func (k *kind) hasStatus() bool {
	return k.version.Subresources != nil && k.version.Subresources.Status != nil
}

// PrepareUpdate keeps the status, or everything else.
func (k *kind) PrepareUpdate(obj, live resources.Object, subresource string) {
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
	if k.hasStatus() {
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
	out := make(map[string]any, len(tree))
	for name, v := range tree {
		if name != "metadata" {
			out[name] = v
		}
	}
	return out
}

// Unconditional returns false, as for all custom resources.
func (k *kind) Unconditional() bool { return false }

// Grace returns no time, as for all custom resources.
func (k *kind) Grace(resources.Object, *int64) (int64, bool) { return 0, false }

// AnswersDeleted returns false, as for all custom resources.
func (k *kind) AnswersDeleted() bool { return false }

// CreatesOnUpdate returns false, as for all custom resources.
func (k *kind) CreatesOnUpdate() bool { return false }

// Validate checks an object as its schema, its rules and its metadata demand.
func (k *kind) Validate(ctx context.Context, obj, live resources.Object, subresource string) (field.ErrorList, []string) {
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

// Table returns the columns that the definition asks for.
func (k *kind) Table() resources.Columns { return k.columns }

// pathOf splits a simple JSON path, such as .spec.replicas.
func pathOf(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }
