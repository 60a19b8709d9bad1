package plugins

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/registry/rest"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/utils/ptr"

	hooks "github.com/tenure-ssa/tenure/apiserver/admission"
	"github.com/tenure-ssa/tenure/apiserver/internal/builtin"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
)

// A world has plugins for the built-in resources of a store in memory.
type world struct {
	*Plugins
	t *testing.T
}

func newWorld(t *testing.T, options Options) *world {
	store := memory.New(memory.Options{})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	options.Tables, options.Authorizer = &resources.Current{}, authorizerfactory.NewAlwaysAllowAuthorizer()
	options.Client = &restclient.Config{Host: "http://127.0.0.1:1"} // no plugin calls it
	options.OpenAPI = func(schema.GroupVersion) ([]byte, error) { return []byte(podDocument), nil }
	groups := builtin.Groups(builtin.Options{
		Open: builtin.Opener{Open: store.Open}, Tables: options.Tables, Client: options.Client,
		Authorizer: options.Authorizer, Now: time.Now, ServiceClusterIPRange: builtin.DefaultServiceClusterIPRange,
	})
	options.Tables.Replace(resources.NewTable(groups, 1))
	w := &world{New(options), t}
	w.store(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
	return w
}

// podDocument is an OpenAPI document of the kind Pod with arbitrary fields.
const podDocument = `{"openapi":"3.0.0","components":{"schemas":{"Pod":{"type":"object",
	"x-kubernetes-preserve-unknown-fields":true,
	"x-kubernetes-group-version-kind":[{"group":"","version":"v1","kind":"Pod"}]}}}}`

// endpoint returns the resource and the endpoint of a Go struct, and the struct at the hub version, with defaults.
func (w *world) endpoint(obj runtime.Object) (*resources.Resource, *resources.Endpoint, runtime.Object) {
	kinds, _, err := builtin.SchemeOf("").ObjectKinds(obj)
	require.NoError(w.t, err)
	obj = obj.DeepCopyObject()
	builtin.SchemeOf("").Default(obj)
	r := w.options.Tables.Table().ResourceOf(kinds[0])
	e, err := r.Endpoint("")
	require.NoError(w.t, err)
	hub, err := builtin.SchemeOf("").ConvertToVersion(obj, schema.GroupVersion{
		Group: kinds[0].Group, Version: runtime.APIVersionInternal,
	})
	require.NoError(w.t, err)
	return r, e, hub
}

// store creates an object and, if the object is a configuration, reloads it.
func (w *world) store(obj metav1.Object) {
	r, e, hub := w.endpoint(obj.(runtime.Object))
	ctx := r.Context(w.t.Context(), "create", obj.GetNamespace())
	_, err := e.Storage.(rest.Creater).Create(ctx, hub, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	require.NoError(w.t, err)
	if r.Group == admissionregistrationv1.GroupName {
		require.NoError(w.t, w.Reload(w.t.Context(), r.Plural, obj.GetName()))
	}
}

func (w *world) remove(obj metav1.Object) {
	r, e, _ := w.endpoint(obj.(runtime.Object))
	ctx := r.Context(w.t.Context(), "delete", obj.GetNamespace())
	_, _, err := e.Storage.(rest.GracefulDeleter).Delete(ctx, obj.GetName(), rest.ValidateAllObjectFunc,
		&metav1.DeleteOptions{})
	require.NoError(w.t, err)
	require.NoError(w.t, w.Reload(w.t.Context(), r.Plural, obj.GetName()))
}

// admit mutates and validates the create of an object, and returns the mutated object.
func (w *world) admit(obj metav1.Object) (runtime.Object, error) {
	r, e, hub := w.endpoint(obj.(runtime.Object))
	a := admission.NewAttributesRecord(hub, nil, r.GVK(), obj.GetNamespace(), obj.GetName(), r.GVR(), "",
		admission.Create, &metav1.CreateOptions{}, false, &user.DefaultInfo{Name: "ann"})
	chain := w.Admission()
	err := chain.(admission.MutationInterface).Admit(w.t.Context(), a, e.Scope)
	if err == nil {
		err = chain.(admission.ValidationInterface).Validate(w.t.Context(), a, e.Scope)
	}
	return a.GetObject(), err
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }

var pod = &corev1.Pod{ObjectMeta: named("p"), Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}}

// everything matches all resources.
var everything = &admissionregistrationv1.MatchResources{
	ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
		RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{"*"},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*"},
			},
		},
	}},
}

// policy returns a policy that rejects writes for which an expression is false.
func policy(expression string) *admissionregistrationv1.ValidatingAdmissionPolicy {
	return &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "v"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: everything, Validations: []admissionregistrationv1.Validation{{Expression: expression}},
		},
	}
}

var binding = &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
	ObjectMeta: metav1.ObjectMeta{Name: "v"},
	Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName:        "v",
		ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
	},
}

// TestOrder checks that compiled plugins come before hooks, hooks before policies, and all mutation before validation.
func TestOrder(t *testing.T) {
	var seen []string
	w := newWorld(t, Options{Hooks: hooks.Hooks{
		Mutate: func(_ context.Context, h *hooks.Write) error {
			seen = append(seen, fmt.Sprint("mutate: priority ", *h.Object.(*corev1.Pod).Spec.Priority))
			if h.Object.GetLabels() == nil {
				h.Object.SetLabels(map[string]string{"by": "hook"})
			}
			return nil
		},
		Validate: func(_ context.Context, h *hooks.Write) ([]string, error) {
			seen = append(seen, fmt.Sprint("validate: ", h.Object.GetLabels()))
			return nil, nil
		},
	}})
	w.store(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "usual"}, Value: 3, GlobalDefault: true})
	w.store(&admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "m"},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			MatchConstraints: everything, ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType: admissionregistrationv1.PatchTypeJSONPatch,
				JSONPatch: &admissionregistrationv1.JSONPatch{
					Expression: `[JSONPatch{op: "replace", path: "/metadata/labels/by",
						value: object.metadata.labels.by + " and policy"}]`,
				},
			}},
		},
	})
	w.store(&admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "m"},
		Spec:       admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: "m"},
	})
	w.store(policy(`object.metadata.labels.by == "hook and policy"`))
	w.store(binding)
	obj, err := w.admit(pod)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"by": "hook and policy"}, obj.(*core.Pod).Labels)
	require.Equal(t, []string{"mutate: priority 3", "mutate: priority 3", "validate: map[by:hook and policy]"}, seen,
		"the hook is called again because the policy changed the object")
}

// TestDisabled checks that a disabled plugin is not called.
func TestDisabled(t *testing.T) {
	for name, want := range map[string]*int32{"Priority": nil, "other": ptr.To[int32](0)} {
		obj, err := newWorld(t, Options{Disabled: map[string]bool{name: true}}).admit(pod)
		require.NoError(t, err)
		require.Equal(t, want, obj.(*core.Pod).Spec.Priority)
	}
}

// TestReload checks that a configuration takes effect from the next write on, and no longer after it is deleted. Load
// finds both changes too.
func TestReload(t *testing.T) {
	w := newWorld(t, Options{})
	refused := policy("false")
	w.store(refused)
	_, err := w.admit(pod)
	require.NoError(t, err, "a policy without a binding")
	w.store(binding)
	_, err = w.admit(pod)
	require.ErrorContains(t, err,
		"ValidatingAdmissionPolicy 'v' with binding 'v' denied request: failed expression: false")
	_, err = w.admit(refused)
	require.NoError(t, err, "a policy must not prevent its own removal")
	w.remove(binding)
	_, err = w.admit(pod)
	require.NoError(t, err)

	w.store(binding)
	other := &world{New(w.options), t} // another server on the store
	_, err = other.admit(pod)
	require.NoError(t, err, "it has not read the store")
	for _, plural := range other.Configurations() {
		require.NoError(t, other.Load(t.Context(), plural))
	}
	_, err = other.admit(pod)
	require.Error(t, err)
	w.remove(binding)
	require.NoError(t, other.Load(t.Context(), "validatingadmissionpolicybindings"))
	_, err = other.admit(pod)
	require.NoError(t, err)
	require.NoError(t, w.Reload(t.Context(), "pods", "p"), "no configuration")
}

// TestParams checks that a policy rejects writes if the kind of its params is not served, and reads its params
// otherwise.
func TestParams(t *testing.T) {
	const unknown = "failed to find resource referenced by paramKind"
	for kind, says := range map[string]string{"ConfigMap": "", "Unknown": unknown} {
		w := newWorld(t, Options{})
		w.store(&corev1.ConfigMap{ObjectMeta: named("params"), Data: map[string]string{"name": "p"}})
		withParams := policy("object.metadata.name == params.data.name")
		withParams.Spec.ParamKind = &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: kind}
		w.store(withParams)
		bound := binding.DeepCopy()
		bound.Spec.ParamRef = &admissionregistrationv1.ParamRef{
			Name: "params", Namespace: "default", ParameterNotFoundAction: ptr.To(admissionregistrationv1.DenyAction),
		}
		w.store(bound)
		if _, err := w.admit(pod); says == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, says)
		}
	}
}

// TestInformers checks that set calls the handlers for a change before it returns, and that a handler that is added
// later gets all objects.
func TestInformers(t *testing.T) {
	i := newInformer(&corev1.ConfigMap{})
	var seen []string
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { seen = append(seen, "add") },
		UpdateFunc: func(any, any) { seen = append(seen, "update") },
		DeleteFunc: func(any) { seen = append(seen, "delete") },
	}
	_, err := i.AddEventHandler(handler)
	require.NoError(t, err)
	for _, row := range []struct{ version, seen string }{
		{"1", "add"}, {"1", ""}, {"2", "update"}, {"", "delete"}, {"", ""}, {"3", "add"},
	} {
		seen = nil
		if row.version == "" {
			require.NoError(t, i.set("a", nil))
		} else {
			metadata := metav1.ObjectMeta{Name: "a", ResourceVersion: row.version}
			require.NoError(t, i.set("a", &corev1.ConfigMap{ObjectMeta: metadata}))
		}
		if row.seen == "" {
			require.Empty(t, seen, row)
		} else {
			require.Equal(t, []string{row.seen}, seen, row)
		}
	}
	seen = nil
	registration, err := i.AddEventHandler(handler)
	require.NoError(t, err)
	require.True(t, registration.HasSynced() && i.HasSynced())
	require.Equal(t, []string{"add"}, seen)
}

// TestLive checks that plugins read objects of other kinds from the store.
func TestLive(t *testing.T) {
	w := newWorld(t, Options{})
	w.store(&corev1.ConfigMap{ObjectMeta: named("a")})
	l := &live{resource: w.options.Tables.Table().Resource(corev1.SchemeGroupVersion.WithResource("configmaps"))}
	for key, want := range map[string]bool{"default/a": true, "default/b": false, "other/a": false, "default/": false} {
		_, exists, err := l.GetByKey(key)
		require.NoError(t, err)
		require.Equal(t, want, exists, key)
	}
	require.Len(t, l.List(), 1)
	for namespace, want := range map[string]int{"default": 1, "other": 0} {
		list, err := l.Index("namespace", &metav1.ObjectMeta{Namespace: namespace})
		require.NoError(t, err)
		require.Len(t, list, want)
	}
	_, err := l.Index("namespace", "")
	require.Error(t, err)
}

// TestRejected checks the API errors for errors of hooks.
func TestRejected(t *testing.T) {
	a := admission.NewAttributesRecord(nil, nil, corev1.SchemeGroupVersion.WithKind("Pod"), "default", "p",
		corev1.SchemeGroupVersion.WithResource("pods"), "", admission.Create, nil, false, nil)
	wrong := field.Invalid(field.NewPath("spec"), "x", "no")
	busy := apierrors.NewTooManyRequests("busy", 1)
	for _, row := range []struct {
		why  string
		err  error
		want func(error) bool
	}{
		{"a Status is returned as it is", busy, func(err error) bool { return err == error(busy) }},
		{"an error of a field", wrong, apierrors.IsInvalid},
		{"several of them", utilerrors.NewAggregate([]error{wrong, wrong}), apierrors.IsInvalid},
		{"others beside it", utilerrors.NewAggregate([]error{wrong, errors.New("x")}), apierrors.IsForbidden},
		{"any other", errors.New("x"), apierrors.IsForbidden},
	} {
		require.True(t, row.want(rejected(a, row.err)), row.why)
	}
}
