// Package custom implements custom resources and the lifecycle of CustomResourceDefinitions.
//
// A [Definition] is a CustomResourceDefinition that is served; it returns a resource for each of its versions. The
// [Controller] keeps the served definitions up to date with the storage. The module k8s.io/apiextensions-apiserver
// implements schemas, CEL rules, defaulting, pruning and webhook conversion.
package custom

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	structuraldefaulting "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/tenure-ssa/tenure/typed/openapi"

	"github.com/tenure-ssa/tenure/apiserver/admission"
	"github.com/tenure-ssa/tenure/apiserver/internal/builtin"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// Options configure custom resources.
type Options struct {
	Open   builtin.Opener
	Tables *resources.Current
	Now    func() time.Time
	// Default, if not nil, sets further defaults in objects, in place.
	Default    func(runtime.Object)
	Authorizer authorizer.Authorizer
	Convert    admission.Converter // nil: the conversion webhooks are called
	Converters Converters
	// MaxObject limits the size of the defaults of an object, and MaxBody the size of a request's body, in bytes.
	MaxObject, MaxBody int64
	// Types has the types of the kind. If it is nil, the types are compiled from the definition's schemas.
	Types *openapi.Registry
}

// A Definition is a CustomResourceDefinition that is served. It is immutable. It does not keep the definition's
// schemas, because they would take most of its memory. The first request for the kind reads the schemas and compiles
// them.
type Definition struct {
	crd     *apiextensionsv1.CustomResourceDefinition // without schemas
	read    func() (*apiextensionsv1.CustomResourceDefinition, error)
	options Options
	storage string // the storage version

	served   func() []*resources.Resource
	opened   sync.Mutex
	storages *storages       // nil until they are opened
	ended    context.Context // done when the resources are replaced or no longer served
	end      context.CancelFunc
}

// End ends the watches of the resources.
func (d *Definition) End() { d.end() }

// NewDefinition returns the Definition of a valid CustomResourceDefinition. The function read returns the stored
// CustomResourceDefinition with its schemas; the stored one may be newer than crd. If read is nil, the Definition keeps
// crd.
func NewDefinition(
	crd *apiextensionsv1.CustomResourceDefinition, read func() (*apiextensionsv1.CustomResourceDefinition, error),
	options Options,
) *Definition {
	options.MaxObject = cmp.Or(options.MaxObject, resources.MaxObject)
	if read == nil {
		read = func() (*apiextensionsv1.CustomResourceDefinition, error) { return crd, nil }
	}
	ended, end := context.WithCancel(context.Background())
	d := &Definition{crd: withoutSchemas(crd), read: read, options: options, ended: ended, end: end}
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			d.storage = v.Name
		}
	}
	d.served = sync.OnceValue(d.newResources)
	return d
}

// withoutSchemas returns a deep copy of a definition without its schemas.
func withoutSchemas(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	out := *crd
	out.Spec.Versions = slices.Clone(crd.Spec.Versions)
	for i := range out.Spec.Versions {
		out.Spec.Versions[i].Schema = nil
	}
	return out.DeepCopy()
}

// compileTypes returns the types of a definition's kind.
func (d *Definition) compileTypes(crd *apiextensionsv1.CustomResourceDefinition) (*openapi.Registry, error) {
	if d.options.Types != nil {
		return d.options.Types, nil
	}
	data, err := json.Marshal(crd)
	if err != nil {
		return nil, err
	}
	return openapi.CompileCRD(data)
}

// compileSchemas returns the compiled schemas of a definition.
func (d *Definition) compileSchemas(crd *apiextensionsv1.CustomResourceDefinition) (*schemas, error) {
	out := &schemas{
		kind:      schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Status.AcceptedNames.Kind},
		byVersion: map[string]*structuralschema.Structural{}, defaulters: map[string]*defaulter{},
		preserve: crd.Spec.PreserveUnknownFields, hook: d.options.Default,
	}
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		props, err := internalSchema(v)
		if err != nil {
			return nil, err
		}
		if props == nil {
			continue
		}
		s, err := structuralschema.NewStructural(props)
		if err != nil {
			if crd.Spec.PreserveUnknownFields {
				continue
			}
			return nil, fmt.Errorf("%s: version %s: %w", crd.Name, v.Name, err)
		}
		if !crd.Spec.PreserveUnknownFields {
			s = s.DeepCopy() // a copy, because the structural schema shares memory with the definition
			if err := structuraldefaulting.PruneDefaults(s); err != nil {
				return nil, fmt.Errorf("%s: version %s: defaults: %w", crd.Name, v.Name, err)
			}
		}
		out.byVersion[v.Name], out.defaulters[v.Name] = s, newDefaulter(s, d.options.MaxObject)
	}
	return out, nil
}

// internalSchema converts the schema of a version to the internal type. It returns nil if the version has no schema.
func internalSchema(v *apiextensionsv1.CustomResourceDefinitionVersion) (*apiextensions.JSONSchemaProps, error) {
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return nil, nil
	}
	out := &apiextensions.JSONSchemaProps{}
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, out, nil)
	return out, err
}

// Verbs of custom resources, in the order of discovery documents.
var (
	objectVerbs      = []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}
	subresourceVerbs = []string{"get", "patch", "update"}
)

// Resources returns a resource for each served version. Each call returns the same resources, so that documents that
// were computed from them can be reused for the next table.
func (d *Definition) Resources() []*resources.Resource { return d.served() }

func (d *Definition) newResources() []*resources.Resource {
	var out []*resources.Resource
	for i := range d.crd.Spec.Versions {
		if v := &d.crd.Spec.Versions[i]; v.Served {
			out = append(out, d.resource(v))
		}
	}
	return out
}

// Stored returns the resource at the storage version, even if this version is not served.
func (d *Definition) Stored() *resources.Resource {
	for i := range d.crd.Spec.Versions {
		if v := &d.crd.Spec.Versions[i]; v.Name == d.storage {
			return d.resource(v)
		}
	}
	return nil
}

func (d *Definition) resource(v *apiextensionsv1.CustomResourceDefinitionVersion) *resources.Resource {
	names := d.crd.Status.AcceptedNames
	r := &resources.Resource{
		Group: d.crd.Spec.Group, Version: v.Name, Custom: true,
		Plural: names.Plural, Singular: names.Singular, Kind: names.Kind,
		ShortNames: names.ShortNames, Categories: names.Categories,
		Namespaced: d.crd.Spec.Scope == apiextensionsv1.NamespaceScoped, Verbs: objectVerbs,
		Stored: schema.GroupVersionKind{Group: d.crd.Spec.Group, Version: d.storage, Kind: names.Kind},
		Prefix: resources.PrefixOf(schema.GroupResource{Group: d.crd.Spec.Group, Resource: names.Plural}),
		Ended:  d.ended, Terminating: d.crd.DeletionTimestamp != nil,
	}
	if v.Deprecated {
		r.Deprecated = d.deprecation(v)
	}
	if s := v.Subresources; s != nil && s.Status != nil {
		r.Subresources = append(r.Subresources, resources.Subresource{Name: "status", Kind: r.GVK(), Verbs: subresourceVerbs})
	}
	if s := v.Subresources; s != nil && s.Scale != nil {
		r.Subresources = append(r.Subresources,
			resources.Subresource{Name: "scale", Verbs: subresourceVerbs, Kind: resources.ScaleKind})
	}
	r.Open = func() (map[string]*resources.Endpoint, error) { return d.endpoints(v, r) }
	r.Definition = d.read
	return r
}

// Groups returns the built-in groups followed by the groups of the definitions, sorted by name. Versions are in
// priority order.
func Groups(builtin []resources.Group, definitions []*Definition) []resources.Group {
	byVersion := map[schema.GroupVersion][]*resources.Resource{}
	for _, d := range definitions {
		for _, r := range d.Resources() {
			byVersion[r.GroupVersion()] = append(byVersion[r.GroupVersion()], r)
		}
	}
	groups := map[string]*resources.Group{}
	for gv, list := range byVersion {
		slices.SortFunc(list, func(a, b *resources.Resource) int { return strings.Compare(a.Plural, b.Plural) })
		if groups[gv.Group] == nil {
			groups[gv.Group] = &resources.Group{Name: gv.Group}
		}
		g := groups[gv.Group]
		g.Versions = append(g.Versions, resources.Version{Name: gv.Version, Resources: list})
	}
	out := slices.Clone(builtin)
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		g := groups[name]
		slices.SortFunc(g.Versions, func(a, b resources.Version) int {
			return version.CompareKubeAwareVersionStrings(b.Name, a.Name)
		})
		out = append(out, *g)
	}
	return out
}

// deprecation returns the warning for a deprecated version.
func (d *Definition) deprecation(v *apiextensionsv1.CustomResourceDefinitionVersion) string {
	if v.DeprecationWarning != nil {
		return *v.DeprecationWarning
	}
	text := fmt.Sprintf("%s/%s %s is deprecated", d.crd.Spec.Group, v.Name, d.crd.Spec.Names.Kind)
	best := ""
	for _, other := range d.crd.Spec.Versions {
		if other.Served && !other.Deprecated && version.CompareKubeAwareVersionStrings(v.Name, other.Name) < 0 &&
			(best == "" || version.CompareKubeAwareVersionStrings(best, other.Name) < 0) {
			best = other.Name
		}
	}
	if best != "" {
		text += fmt.Sprintf("; use %s/%s %s", d.crd.Spec.Group, best, d.crd.Spec.Names.Kind)
	}
	return text
}
