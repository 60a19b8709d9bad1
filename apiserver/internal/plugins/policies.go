package plugins

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/client-go/informers"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"

	hooks "github.com/tenure-ssa/tenure/apiserver/admission"
)

// policyPlugins are kube-apiserver's dispatchers of policies. The plugins of kube-apiserver compile policies once a
// second; here, a policySource compiles changed policies when a write needs them.
type policyPlugins struct {
	mutating   generic.Dispatcher[mutating.PolicyHook]
	validating generic.Dispatcher[validating.PolicyHook]

	mutatingPolicies   *policySource[*mutating.Policy, *mutating.PolicyBinding, mutating.PolicyEvaluator]
	validatingPolicies *policySource[*validating.Policy, *validating.PolicyBinding, validating.Validator]
}

func (p *Plugins) newPolicyPlugins() (*policyPlugins, error) {
	client, err := p.client()
	if err != nil {
		return nil, err
	}
	matcher := matching.NewMatcher((&factory{plugins: p}).Core().V1().Namespaces().Lister(), client)
	return &policyPlugins{
		mutating:   mutating.NewDispatcher(p.options.Authorizer, matcher, &typeConverters{plugins: p}),
		validating: validating.NewDispatcher(p.options.Authorizer, generic.NewPolicyMatcher(matcher)),
		mutatingPolicies: &policySource[*mutating.Policy, *mutating.PolicyBinding, mutating.PolicyEvaluator]{
			plugins: p, policies: "mutatingadmissionpolicies", bindings: "mutatingadmissionpolicybindings",
			policyName: func(b *mutating.PolicyBinding) string { return b.Spec.PolicyName },
			paramKind:  func(o *mutating.Policy) *admissionregistrationv1.ParamKind { return o.Spec.ParamKind },
			compile:    compileMutatingPolicy,
		},
		validatingPolicies: &policySource[*validating.Policy, *validating.PolicyBinding, validating.Validator]{
			plugins: p, policies: "validatingadmissionpolicies", bindings: "validatingadmissionpolicybindings",
			policyName: func(b *validating.PolicyBinding) string { return b.Spec.PolicyName },
			paramKind:  func(o *validating.Policy) *admissionregistrationv1.ParamKind { return o.Spec.ParamKind },
			compile:    compileValidatingPolicy,
		},
	}, nil
}

// exempt are the resources of policies. Policies do not apply to them, so that a policy can't prevent its own deletion.
var exempt = []string{
	"validatingadmissionpolicies", "validatingadmissionpolicybindings", "mutatingadmissionpolicies",
	"mutatingadmissionpolicybindings",
}

// ignoresPolicies reports whether policies do not apply to a write.
func ignoresPolicies(a admission.Attributes) bool {
	r := a.GetResource().GroupResource()
	return slices.Contains(excluded, r) ||
		r.Group == admissionregistrationv1.GroupName && slices.Contains(exempt, r.Resource)
}

// A policySource compiles and lists policies of one kind. It omits policies without bindings.
type policySource[P, B hooks.Object, E any] struct {
	plugins            *Plugins
	policies, bindings string // plural names
	policyName         func(B) string
	paramKind          func(P) *admissionregistrationv1.ParamKind
	compile            func(P) E

	lock sync.Mutex
	// hooks was made from this version of the configurations and this generation of the table.
	hooks          []generic.PolicyHook[P, B, E]
	version, table int64
	compiled       map[string]compiledPolicy[E] // by name
}

type compiledPolicy[E any] struct {
	version string // resourceVersion
	E       E
}

// list returns the policies with their bindings. It sorts both by name.
func (s *policySource[P, B, E]) list() []generic.PolicyHook[P, B, E] {
	s.lock.Lock()
	defer s.lock.Unlock()
	version, table := s.plugins.version.Load(), s.plugins.options.Tables.Table()
	if s.version == version && s.table == table.Generation() {
		return s.hooks
	}
	bindings := map[string][]B{}
	for _, b := range listObjects[B](s.plugins.informers[s.bindings]) {
		name := s.policyName(b)
		bindings[name] = append(bindings[name], b)
	}
	compiled := map[string]compiledPolicy[E]{}
	s.hooks = nil
	for _, policy := range listObjects[P](s.plugins.informers[s.policies]) {
		name := policy.GetName()
		if len(bindings[name]) == 0 {
			continue
		}
		c, ok := s.compiled[name]
		if !ok || c.version != policy.GetResourceVersion() {
			c = compiledPolicy[E]{policy.GetResourceVersion(), s.compile(policy)}
		}
		compiled[name] = c
		hook := generic.PolicyHook[P, B, E]{Policy: policy, Bindings: bindings[name], Evaluator: c.E}
		hook.ParamInformer, hook.ParamScope, hook.ConfigurationError = s.plugins.params(table, s.paramKind(policy))
		s.hooks = append(s.hooks, hook)
	}
	s.version, s.table, s.compiled = version, table.Generation(), compiled
	return s.hooks
}

// listObjects returns the objects of an informer, sorted by name.
func listObjects[T hooks.Object](i *informer) []T {
	var out []T
	for _, obj := range i.GetStore().List() {
		out = append(out, obj.(T))
	}
	slices.SortFunc(out, func(a, b T) int { return strings.Compare(a.GetName(), b.GetName()) })
	return out
}

// params returns the informer and the scope of a policy's params; the informer is nil for a policy without params.
func (p *Plugins) params(
	table *resources.Table, kind *admissionregistrationv1.ParamKind,
) (informers.GenericInformer, meta.RESTScope, error) {
	if kind == nil {
		return nil, nil, nil
	}
	gv, err := schema.ParseGroupVersion(kind.APIVersion)
	if err != nil {
		return nil, nil, fmt.Errorf("paramKind: %w", err)
	}
	r := table.ResourceOf(gv.WithKind(kind.Kind))
	if r == nil || r.Prefix == "" {
		return nil, nil, fmt.Errorf("failed to find resource referenced by paramKind: '%v'", gv.WithKind(kind.Kind))
	}
	scope := meta.RESTScopeRoot
	if r.Namespaced {
		scope = meta.RESTScopeNamespace
	}
	return &paramInformer{r, newInformer(nil)}, scope, nil
}

// validate calls the ValidatingAdmissionPolicies.
func (p *policyPlugins) validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if ignoresPolicies(a) {
		return nil
	}
	return p.validating.Dispatch(ctx, a, o, p.validatingPolicies.list())
}

// newCompiler returns a compiler of CEL expressions that may refer to variables.
func newCompiler(
	variables []admissionregistrationv1.Variable, declarations cel.OptionalVariableDeclarations,
) (*cel.CompositedCompiler, error) {
	c, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		return nil, err
	}
	var named []cel.NamedExpressionAccessor
	for _, v := range variables {
		named = append(named, &validating.Variable{Name: v.Name, Expression: v.Expression})
	}
	c.CompileAndStoreVariables(named, declarations, environment.StoredExpressions)
	return c, nil
}

// newConditions returns the matcher of match conditions, or nil if there are none.
func newConditions(
	c *cel.CompositedCompiler, conditions []admissionregistrationv1.MatchCondition,
	declarations cel.OptionalVariableDeclarations, failure *admissionregistrationv1.FailurePolicyType, policy string,
) matchconditions.Matcher {
	if len(conditions) == 0 {
		return nil
	}
	var expressions []cel.ExpressionAccessor
	for i := range conditions {
		expressions = append(expressions, (*matchconditions.MatchCondition)(&conditions[i]))
	}
	return matchconditions.NewMatcher(c.CompileCondition(expressions, declarations, environment.StoredExpressions),
		failure, "policy", "validate", policy)
}

// compileValidatingPolicy compiles the expressions of a policy. Errors in the expressions are reported when they are
// evaluated.
func compileValidatingPolicy(policy *validating.Policy) validating.Validator {
	spec := &policy.Spec
	declarations := cel.OptionalVariableDeclarations{HasParams: spec.ParamKind != nil, HasAuthorizer: true}
	c, err := newCompiler(spec.Variables, declarations)
	if err != nil {
		return validating.NewValidator(nil, nil, nil, nil, spec.FailurePolicy, err)
	}
	// messages has an element for each validation; the element is nil if the validation has no messageExpression.
	var validations, messages, annotations []cel.ExpressionAccessor
	for _, v := range spec.Validations {
		validations = append(validations,
			&validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason})
		var message cel.ExpressionAccessor
		if v.MessageExpression != "" {
			message = &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression}
		}
		messages = append(messages, message)
	}
	for _, a := range spec.AuditAnnotations {
		annotations = append(annotations,
			&validating.AuditAnnotationCondition{Key: a.Key, ValueExpression: a.ValueExpression})
	}
	withoutAuthorizer := declarations
	withoutAuthorizer.HasAuthorizer = false
	return validating.NewValidator(
		c.CompileCondition(validations, declarations, environment.StoredExpressions),
		newConditions(c, spec.MatchConditions, declarations, spec.FailurePolicy, policy.Name),
		c.CompileCondition(annotations, declarations, environment.StoredExpressions),
		c.CompileCondition(messages, withoutAuthorizer, environment.StoredExpressions),
		spec.FailurePolicy, nil)
}
