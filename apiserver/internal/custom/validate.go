package custom

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	schemaobjectmeta "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

// validators check objects of one kind; they are made at the first write.
type validators struct {
	k      *kind
	object validation.SchemaValidator
	part   validation.SchemaValidator // the status alone; nil: not declared
	rules  *cel.Validator             // nil: no rules
}

func (k *kind) newValidators() (*validators, error) {
	v := &validators{k: k}
	props, err := internalSchema(k.version)
	if err != nil {
		return nil, err
	}
	if v.object, _, err = validation.NewSchemaValidator(props); err != nil {
		return nil, err
	}
	if props != nil {
		if status, ok := props.Properties["status"]; ok && k.hasStatus() {
			if v.part, _, err = validation.NewSchemaValidator(&status); err != nil {
				return nil, err
			}
		}
	}
	v.rules = cel.NewValidator(k.schema, true, celconfig.PerCallLimit)
	return v, nil
}

func (v *validators) create(ctx context.Context, u *unstructured.Unstructured) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaAccessor(u, v.k.resource.Namespaced, apivalidation.NameIsDNSSubdomain,
		field.NewPath("metadata"))
	errs = append(errs, validation.ValidateCustomResource(nil, u.Object, v.object)...)
	errs = append(errs, v.scale(u, true)...)
	errs = append(errs, schemaobjectmeta.Validate(ctx, nil, u.Object, v.k.schema, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, v.k.schema, u.Object)...)
	return v.withRules(ctx, errs, u, nil)
}

func (v *validators) update(ctx context.Context, u, before *unstructured.Unstructured) field.ErrorList {
	same := v.correlated(u, before)
	errs := apivalidation.ValidateObjectMetaAccessorUpdate(u, before, field.NewPath("metadata"))
	errs = append(errs, validation.ValidateCustomResourceUpdate(nil, u.Object, before.Object, v.object,
		validation.WithRatcheting(same))...)
	errs = append(errs, v.scale(u, true)...)
	errs = append(errs, schemaobjectmeta.Validate(ctx, nil, u.Object, v.k.schema, false)...)
	errs = append(errs, v.lists(u, before)...)
	return v.withRules(ctx, errs, u, before, cel.WithRatcheting(same))
}

func (v *validators) status(ctx context.Context, u, before *unstructured.Unstructured) field.ErrorList {
	same := v.correlated(u, before)
	errs := apivalidation.ValidateObjectMetaAccessorUpdate(u, before, field.NewPath("metadata"))
	if status, ok := u.Object["status"]; ok && v.part != nil {
		errs = append(errs,
			validation.ValidateCustomResourceUpdate(field.NewPath("status"), status, before.Object["status"], v.part,
				validation.WithRatcheting(same.Key("status")))...)
	}
	errs = append(errs, v.scale(u, false)...)
	errs = append(errs, v.lists(u, before)...)
	return v.withRules(ctx, errs, u, before, cel.WithRatcheting(same))
}

// correlated pairs the values of two states of an object, so that what was wrong
// before and did not change is let through.
func (v *validators) correlated(u, before *unstructured.Unstructured) *common.CorrelatedObject {
	return common.NewCorrelatedObject(u.Object, before.Object, &model.Structural{Structural: v.k.schema})
}

// lists checks sets and maps for duplicates, unless there were some before.
func (v *validators) lists(u, before *unstructured.Unstructured) field.ErrorList {
	errs := listtype.ValidateListSetsAndMaps(nil, v.k.schema, u.Object)
	if len(errs) > 0 && len(listtype.ValidateListSetsAndMaps(nil, v.k.schema, before.Object)) > 0 {
		return nil
	}
	return errs
}

// withRules adds what the rules say, if the object is sound enough to ask them.
func (v *validators) withRules(
	ctx context.Context, errs field.ErrorList, u, before *unstructured.Unstructured, options ...cel.Option,
) field.ErrorList {
	if v.rules == nil {
		return errs
	}
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany,
			field.ErrorTypeTypeInvalid:
			return append(errs, field.Invalid(nil, nil,
				"some validation rules were not checked because the object was invalid; correct the existing errors to complete "+
					"validation"))
		}
	}
	var old any
	if before != nil {
		old = before.Object
	}
	more, _ := v.rules.Validate(ctx, nil, v.k.schema, u.Object, old, celconfig.RuntimeCELCostBudget, options...)
	return append(errs, more...)
}

// scale checks what the scale subresource reads.
func (v *validators) scale(u *unstructured.Unstructured, spec bool) (errs field.ErrorList) {
	s, err := v.k.scale()
	if err != nil {
		return nil
	}
	paths := []string{s.StatusReplicasPath}
	if spec {
		paths = []string{s.SpecReplicasPath, s.StatusReplicasPath}
	}
	for _, path := range paths {
		n, _, err := unstructured.NestedInt64(u.Object, pathOf(path)...)
		switch {
		case err != nil:
			errs = append(errs, field.Invalid(field.NewPath(path), n, err.Error()))
		case n < 0:
			errs = append(errs, field.Invalid(field.NewPath(path), n, "should be a non-negative integer"))
		case n > math.MaxInt32:
			errs = append(errs,
				field.Invalid(field.NewPath(path), n, fmt.Sprintf("should be less than or equal to %v", math.MaxInt32)))
		}
	}
	if s.LabelSelectorPath != nil {
		if text, _, err := unstructured.NestedString(u.Object, pathOf(*s.LabelSelectorPath)...); err != nil {
			errs = append(errs, field.Invalid(field.NewPath(*s.LabelSelectorPath), text, err.Error()))
		}
	}
	return errs
}

// ownFinalizers are those without a domain that are as they should be.
var ownFinalizers = []string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents,
	string(corev1.FinalizerKubernetes)}

// finalizerWarnings warn of new finalizers whose names others may choose too.
func finalizerWarnings(u, before *unstructured.Unstructured) (out []string) {
	var old []string
	if before != nil {
		old = before.GetFinalizers()
	}
	names := slices.Clone(u.GetFinalizers())
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if slices.Contains(old, name) {
			continue
		}
		for _, message := range utilvalidation.IsQualifiedName(name) {
			out = append(out, fmt.Sprintf("metadata.finalizers: %q: %s", name, message))
		}
		if strings.Contains(name, "/") || slices.Contains(ownFinalizers, name) {
			continue
		}
		path := ""
		if strings.Contains(name, ".") {
			path = " including a path (/)"
		}
		out = append(out, fmt.Sprintf("metadata.finalizers: %q: prefer a domain-qualified finalizer name%s to avoid "+
			"accidental conflicts with other finalizer writers", name, path))
	}
	return out
}

// deprecation is what a client of a deprecated version is told.
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
