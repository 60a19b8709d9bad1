package custom

import (
	"fmt"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/client-go/scale"
	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/typed/openapi"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// storages are the storages of a definition, one for each version that is served or stored.
type storages struct {
	types        *openapi.Registry
	schemas      *schemas
	safe, unsafe runtime.ObjectConvertor
	byVersion    map[string]customresource.CustomResourceStorage
}

// open returns the storages of a definition, and opens them if no earlier request did. An error is not kept: the next
// request tries again, because it may be able to read the definition.
func (d *Definition) open() (*storages, error) {
	d.opened.Lock()
	defer d.opened.Unlock()
	if d.storages == nil {
		out, err := d.openStorages()
		if err != nil {
			return nil, err
		}
		d.storages = out
	}
	return d.storages, nil
}

func (d *Definition) openStorages() (*storages, error) {
	crd, err := d.read()
	if err != nil {
		return nil, err
	}
	out := &storages{byVersion: map[string]customresource.CustomResourceStorage{}}
	if out.types, err = d.compileTypes(crd); err != nil {
		return nil, err
	}
	if out.schemas, err = d.compileSchemas(crd); err != nil {
		return nil, err
	}
	if out.safe, out.unsafe, err = d.converters(); err != nil {
		return nil, err
	}
	for i := range crd.Spec.Versions {
		if v := &crd.Spec.Versions[i]; v.Served || v.Storage {
			if out.byVersion[v.Name], err = d.openVersion(out, v); err != nil {
				return nil, fmt.Errorf("%s: version %s: %w", crd.Name, v.Name, err)
			}
		}
	}
	return out, nil
}

// getter implements generic.RESTOptionsGetter for a version of a definition.
type getter struct {
	definition *Definition
	storages   *storages
	version    string
}

func (g getter) GetRESTOptions(r schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	stored := schema.GroupVersion{Group: r.Group, Version: g.definition.storage}
	memory := schema.GroupVersion{Group: r.Group, Version: g.version}
	codec := g.storages.schemas.storedCodec(g.storages.safe, stored, memory)
	return g.definition.options.Open.RESTOptions(r, codec), nil
}

// openVersion opens the storage of a version, with kube-apiserver's strategy.
func (d *Definition) openVersion(
	s *storages, v *apiextensionsv1.CustomResourceDefinitionVersion,
) (out customresource.CustomResourceStorage, err error) {
	names := d.crd.Status.AcceptedNames
	kind := schema.GroupVersionKind{Group: d.crd.Spec.Group, Version: v.Name, Kind: names.Kind}
	props, err := internalSchema(v)
	if err != nil {
		return out, err
	}
	validator, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		return out, err
	}
	var status *apiextensions.CustomResourceSubresourceStatus
	var statusValidator validation.SchemaValidator
	var scaling *apiextensions.CustomResourceSubresourceScale
	if sub := v.Subresources; sub != nil && sub.Status != nil {
		status = &apiextensions.CustomResourceSubresourceStatus{}
		if props != nil {
			if statusSchema, ok := props.Properties["status"]; ok {
				if statusValidator, _, err = validation.NewSchemaValidator(&statusSchema); err != nil {
					return out, err
				}
			}
		}
	}
	if sub := v.Subresources; sub != nil && sub.Scale != nil {
		scaling = &apiextensions.CustomResourceSubresourceScale{
			SpecReplicasPath: sub.Scale.SpecReplicasPath, StatusReplicasPath: sub.Scale.StatusReplicasPath,
			LabelSelectorPath: sub.Scale.LabelSelectorPath,
		}
	}
	// A definition may have columns whose paths can't be parsed. The table shows the other columns.
	table, _ := tableconvertor.New(columnsOf(v))
	strategy := customresource.NewStrategy(newTyper(kind.GroupVersion()),
		d.crd.Spec.Scope == apiextensionsv1.NamespaceScoped, kind, validator, statusValidator, s.schemas.byVersion[v.Name],
		status, scaling, v.SelectableFields)
	return customresource.NewStorage(schema.GroupResource{Group: kind.Group, Resource: names.Plural},
		schema.GroupResource{Group: kind.Group, Resource: names.Singular}, kind, kind.GroupVersion().WithKind(names.ListKind),
		strategy, getter{d, s, v.Name}, names.Categories, table, d.replicasPaths())
}

// replicasPaths returns the path of the field that the scale subresource writes, by apiVersion.
func (d *Definition) replicasPaths() managedfields.ResourcePathMappings {
	out := managedfields.ResourcePathMappings{}
	for _, v := range d.crd.Spec.Versions {
		gv := d.crd.Spec.Group + "/" + v.Name
		out[gv] = nil
		if v.Subresources == nil || v.Subresources.Scale == nil {
			continue
		}
		path := smdpath.Path{}
		for step := range strings.SplitSeq(strings.TrimPrefix(v.Subresources.Scale.SpecReplicasPath, "."), ".") {
			path = append(path, smdpath.PathElement{FieldName: &step})
		}
		out[gv] = path
	}
	return out
}

// creationColumn is the column of kinds that define no columns.
var creationColumn = apiextensionsv1.CustomResourceColumnDefinition{
	Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp",
	Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"],
}

func columnsOf(v *apiextensionsv1.CustomResourceDefinitionVersion) []apiextensionsv1.CustomResourceColumnDefinition {
	if len(v.AdditionalPrinterColumns) > 0 {
		return v.AdditionalPrinterColumns
	}
	return []apiextensionsv1.CustomResourceColumnDefinition{creationColumn}
}

// endpoints returns the endpoints of a version.
func (d *Definition) endpoints(v *apiextensionsv1.CustomResourceDefinitionVersion, r *resources.Resource) (
	map[string]*resources.Endpoint, error) {
	s, err := d.open()
	if err != nil {
		return nil, err
	}
	opened, ok := s.byVersion[v.Name]
	if !ok {
		return nil, fmt.Errorf("%s: version %s is not in the definition any more", d.crd.Name, v.Name)
	}
	typer := newTyper(r.GroupVersion())
	codecs := newCodecs(s.schemas, s.safe, typer)
	scope := handlers.RequestScope{
		Namer:      handlers.ContextBasedNaming{Namer: runtime.Namer(meta.NewAccessor()), ClusterScoped: !r.Namespaced},
		Serializer: codecs, StandardSerializers: codecs.standard(), ParameterCodec: runtime.NewParameterCodec(typer.options),
		Creater: creater{}, Convertor: s.safe, Defaulter: s.schemas, Typer: typer, UnsafeConvertor: s.unsafe,
		Authorizer: d.options.Authorizer, EquivalentResourceMapper: d.options.Tables,
		TableConvertor: opened.CustomResource,
		Resource:       r.GVR(), Kind: r.GVK(), HubGroupVersion: r.GroupVersion(),
		MetaGroupVersion:    metav1.SchemeGroupVersion,
		MaxRequestBodyBytes: d.options.MaxBody,
	}
	out := map[string]*resources.Endpoint{}
	add := func(subresource string, storage resources.Storage, scope handlers.RequestScope) {
		if err == nil {
			served := fieldmanager.Types(s.types)
			if scope.Subresource = subresource; scope.Kind == resources.ScaleKind {
				served = openapi.Builtin()
			}
			out[subresource], err = resources.NewEndpoint(storage, &scope, served, d.options.Now, true)
		}
	}
	add("", opened.CustomResource, scope)
	if opened.Status != nil {
		add("status", statusStorage{opened.Status, s}, scope)
	}
	if opened.Scale != nil {
		add("scale", opened.Scale, scaleScope(scope, v))
	}
	return out, err
}

// statusStorage is the storage of a status subresource. Its GetResetFields returns the fields that a write of the
// status resets, for all versions.
type statusStorage struct {
	*customresource.StatusREST
	storages *storages
}

func (s statusStorage) GetResetFields() map[smdpath.APIVersion]*smdpath.Set {
	out := map[smdpath.APIVersion]*smdpath.Set{}
	for _, version := range s.storages.byVersion {
		if version.Status != nil {
			for gv, set := range version.Status.GetResetFields() {
				out[gv] = set
			}
		}
	}
	return out
}

// scaleScope returns the scope of the scale subresource.
func scaleScope(scope handlers.RequestScope, v *apiextensionsv1.CustomResourceDefinitionVersion) handlers.RequestScope {
	column := func(name, description, path string) apiextensionsv1.CustomResourceColumnDefinition {
		return apiextensionsv1.CustomResourceColumnDefinition{
			Name: name, Type: "integer", Description: description, JSONPath: path,
		}
	}
	var columns []apiextensionsv1.CustomResourceColumnDefinition
	if v.Subresources.Scale.SpecReplicasPath != "" {
		columns = append(columns, column("Desired", "Number of desired replicas", ".spec.replicas"))
	}
	if v.Subresources.Scale.StatusReplicasPath != "" {
		columns = append(columns, column("Available", "Number of actual replicas", ".status.replicas"))
	}
	scope.TableConvertor, _ = tableconvertor.New(append(columns, creationColumn)) // the paths of these columns are valid
	scope.Kind, scope.HubGroupVersion = resources.ScaleKind, resources.ScaleKind.GroupVersion()
	scope.Serializer = serializer.NewCodecFactory(scale.NewScaleConverter().Scheme())
	scope.StandardSerializers = nil
	return scope
}
