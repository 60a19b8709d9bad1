package builtin

import (
	"cmp"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

func mutatingWebhooks() printer {
	type object = *admissionregistrationv1.MutatingWebhookConfiguration
	return withCount("Webhooks", "Webhooks indicates the number of webhooks registered in this configuration",
		func(c object) int { return len(c.Webhooks) })
}

func validatingWebhooks() printer {
	type object = *admissionregistrationv1.ValidatingWebhookConfiguration
	return withCount("Webhooks", "Webhooks indicates the number of webhooks registered in this configuration",
		func(c object) int { return len(c.Webhooks) })
}

// withCount returns a printer with the name, a number and the age.
func withCount[T resources.Object](title, description string, count func(T) int) printer {
	return newPrinter(name[T](), col(title, "integer", description, func(obj T) any {
		return int64(count(obj))
	}), age[T]())
}

func validatingPolicies() printer {
	type object = *admissionregistrationv1.ValidatingAdmissionPolicy
	return policies("Validations", "Validations indicates the number of validation rules defined in this configuration",
		func(p object) int { return len(p.Spec.Validations) },
		func(p object) *admissionregistrationv1.ParamKind { return p.Spec.ParamKind })
}

func mutatingPolicies() printer {
	type object = *admissionregistrationv1.MutatingAdmissionPolicy
	return policies("Mutations", "Mutation indicates the number of mutations rules defined in this configuration",
		func(p object) int { return len(p.Spec.Mutations) },
		func(p object) *admissionregistrationv1.ParamKind { return p.Spec.ParamKind })
}

func policies[T resources.Object](
	title, description string, count func(T) int, params func(T) *admissionregistrationv1.ParamKind,
) printer {
	return newPrinter(
		name[T](),
		col(title, "integer", description, func(p T) any { return int64(count(p)) }),
		col("ParamKind", "string", "ParamKind specifies the kind of resources used to parameterize this policy",
			func(p T) any {
				kind := params(p)
				if kind == nil {
					return unset
				}
				return kind.APIVersion + "/" + kind.Kind
			}),
		age[T](),
	)
}

func validatingPolicyBindings() printer {
	type object = *admissionregistrationv1.ValidatingAdmissionPolicyBinding
	return policyBindings(
		func(b object) string { return b.Spec.PolicyName },
		func(b object) *admissionregistrationv1.ParamRef { return b.Spec.ParamRef })
}

func mutatingPolicyBindings() printer {
	type object = *admissionregistrationv1.MutatingAdmissionPolicyBinding
	return policyBindings(
		func(b object) string { return b.Spec.PolicyName },
		func(b object) *admissionregistrationv1.ParamRef { return b.Spec.ParamRef })
}

func policyBindings[T resources.Object](
	policy func(T) string, params func(T) *admissionregistrationv1.ParamRef,
) printer {
	return newPrinter(
		name[T](),
		col("PolicyName", "string", "PolicyName indicates the policy definition which the policy binding binded to",
			func(b T) any { return policy(b) }),
		col("ParamRef", "string", "ParamRef indicates the param resource which sets the configuration param", func(b T) any {
			switch ref := params(b); {
			case ref == nil:
				return unset
			case ref.Name != "":
				return cmp.Or(ref.Namespace, "*") + "/" + ref.Name
			case ref.Selector != nil:
				return ref.Selector.String()
			}
			return unset
		}),
		age[T](),
	)
}
