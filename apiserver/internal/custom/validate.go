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

// validators validate the objects of one version. They are compiled at the first write.
type validators struct {
	k      *kind
	object validation.SchemaValidator
	part   validation.SchemaValidator // of status only; nil if the schema has none
	rules  *cel.Validator             // of CEL rules; nil if there are none
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
		if status, ok := props.Properties["status"]; ok && k.hasStatusSubresource() {
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
	errs = append(errs, v.validateScale(u, true)...)
	errs = append(errs, schemaobjectmeta.Validate(nil, u.Object, v.k.schema, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, v.k.schema, u.Object)...)
	return v.addRuleErrors(ctx, errs, u, nil)
}

func (v *validators) update(ctx context.Context, u, before *unstructured.Unstructured) field.ErrorList {
	same := v.correlate(u, before)
	errs := apivalidation.ValidateObjectMetaAccessorUpdate(u, before, field.NewPath("metadata"))
	errs = append(errs, validation.ValidateCustomResourceUpdate(nil, u.Object, before.Object, v.object,
		validation.WithRatcheting(same))...)
	errs = append(errs, v.validateScale(u, true)...)
	errs = append(errs, schemaobjectmeta.Validate(nil, u.Object, v.k.schema, false)...)
	errs = append(errs, v.validateListTypes(u, before)...)
	return v.addRuleErrors(ctx, errs, u, before, cel.WithRatcheting(same))
}

func (v *validators) status(ctx context.Context, u, before *unstructured.Unstructured) field.ErrorList {
	same := v.correlate(u, before)
	errs := apivalidation.ValidateObjectMetaAccessorUpdate(u, before, field.NewPath("metadata"))
	if status, ok := u.Object["status"]; ok && v.part != nil {
		errs = append(errs,
			validation.ValidateCustomResourceUpdate(field.NewPath("status"), status, before.Object["status"], v.part,
				validation.WithRatcheting(same.Key("status")))...)
	}
	errs = append(errs, v.validateScale(u, false)...)
	errs = append(errs, v.validateListTypes(u, before)...)
	return v.addRuleErrors(ctx, errs, u, before, cel.WithRatcheting(same))
}

// correlate pairs the old and new values, for ratcheting validation: an invalid value that did
// not change is accepted.
func (v *validators) correlate(u, before *unstructured.Unstructured) *common.CorrelatedObject {
	return common.NewCorrelatedObject(u.Object, before.Object, &model.Structural{Structural: v.k.schema})
}

// validateListTypes checks lists of type set and map for duplicates, unless the old object had
// some.
func (v *validators) validateListTypes(u, before *unstructured.Unstructured) field.ErrorList {
	errs := listtype.ValidateListSetsAndMaps(nil, v.k.schema, u.Object)
	if len(errs) > 0 && len(listtype.ValidateListSetsAndMaps(nil, v.k.schema, before.Object)) > 0 {
		return nil
	}
	return errs
}

// addRuleErrors adds the errors of the CEL rules, if the object is valid enough to evaluate
// them.
func (v *validators) addRuleErrors(
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

// validateScale validates the fields of the scale subresource.
func (v *validators) validateScale(u *unstructured.Unstructured, spec bool) (errs field.ErrorList) {
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

// knownFinalizers are the valid finalizers without a domain.
var knownFinalizers = []string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents,
	string(corev1.FinalizerKubernetes)}

// finalizerWarnings returns warnings for new finalizers without a domain.
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
		if strings.Contains(name, "/") || slices.Contains(knownFinalizers, name) {
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
