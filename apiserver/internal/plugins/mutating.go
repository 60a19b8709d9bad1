package plugins

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/kube-openapi/pkg/spec3"
)

// mutate calls the MutatingAdmissionPolicies.
func (p *policyPlugins) mutate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if ignoresPolicies(a) || a.GetObject() == nil {
		return nil
	}
	hooks := p.mutatingPolicies.list()
	for i := range hooks {
		if err := hooks[i].Evaluator.Error; err != nil {
			return fmt.Errorf("MutatingAdmissionPolicy %s: %w", hooks[i].Policy.Name, err)
		}
	}
	return p.mutating.Dispatch(ctx, a, o, hooks)
}

// compileMutatingPolicy compiles the expressions of a policy. Errors in the expressions are reported when they are
// evaluated.
func compileMutatingPolicy(policy *mutating.Policy) mutating.PolicyEvaluator {
	spec := &policy.Spec
	declarations := cel.OptionalVariableDeclarations{HasParams: spec.ParamKind != nil, HasAuthorizer: true}
	c, err := newCompiler(spec.Variables, declarations)
	if err != nil {
		return mutating.PolicyEvaluator{Error: err}
	}
	out := mutating.PolicyEvaluator{
		Matcher:            newConditions(c, spec.MatchConditions, declarations, spec.FailurePolicy, policy.Name),
		CompositedCompiler: c,
	}
	declarations.HasPatchTypes = true
	for i, m := range spec.Mutations {
		var patcher patch.Patcher
		switch {
		case m.PatchType == admissionregistrationv1.PatchTypeJSONPatch && m.JSONPatch != nil:
			condition := &patch.JSONPatchCondition{Expression: m.JSONPatch.Expression}
			patcher = patch.NewJSONPatcher(c.CompileMutatingEvaluator(condition, declarations, environment.StoredExpressions))
		case m.PatchType == admissionregistrationv1.PatchTypeApplyConfiguration && m.ApplyConfiguration != nil:
			condition := &patch.ApplyConfigurationCondition{Expression: m.ApplyConfiguration.Expression}
			patcher = patch.NewApplyConfigurationPatcher(
				c.CompileMutatingEvaluator(condition, declarations, environment.StoredExpressions))
		default:
			out.Error = fmt.Errorf("spec.mutations[%d]: expected an expression for patchType %q", i, m.PatchType)
			return out
		}
		out.Mutators = append(out.Mutators, patcher)
	}
	return out
}

// typeConverters returns types from the server's OpenAPI documents. Apply configurations of policies are merged with
// these types. typeConverters implements patch.TypeConverterManager. kube-apiserver's implementation fetches changed
// documents once a minute.
type typeConverters struct {
	plugins *Plugins

	lock  sync.Mutex
	table int64 // generation of the resource table from which made was computed
	made  map[schema.GroupVersion]managedfields.TypeConverter
}

// Run does nothing: documents are read when they are needed.
func (t *typeConverters) Run(context.Context) {}

// GetTypeConverter returns the types of a kind, or nil if the server does not have the kind.
func (t *typeConverters) GetTypeConverter(gvk schema.GroupVersionKind) managedfields.TypeConverter {
	t.lock.Lock()
	defer t.lock.Unlock()
	if generation := t.plugins.options.Tables.Table().Generation(); t.table != generation || t.made == nil {
		t.table, t.made = generation, map[schema.GroupVersion]managedfields.TypeConverter{}
	}
	gv := gvk.GroupVersion()
	if c := t.made[gv]; c != nil {
		return c
	}
	c, err := t.read(gv)
	if err != nil {
		utilruntime.HandleError(fmt.Errorf("types of %s: %w", gv, err))
		return nil
	}
	t.made[gv] = c
	return c
}

// read returns the types in the OpenAPI document of a group version.
func (t *typeConverters) read(gv schema.GroupVersion) (managedfields.TypeConverter, error) {
	data, err := t.plugins.options.OpenAPI(gv)
	if err != nil {
		return nil, err
	}
	document := &spec3.OpenAPI{}
	if err := json.Unmarshal(data, document); err != nil {
		return nil, err
	}
	if document.Components == nil {
		return nil, errors.New("the OpenAPI document has no schemas")
	}
	return managedfields.NewTypeConverter(document.Components.Schemas, false)
}
