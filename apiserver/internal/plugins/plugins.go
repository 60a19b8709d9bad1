// Package plugins implements the admission of a server ([Chain]) by plugins that are compiled into kube-apiserver
// (builtin.go), hooks of the host (hooks.go), and kube-apiserver's plugins for policies (policies.go) and webhooks
// (webhooks.go).
//
// kube-apiserver watches admission configurations with informers, so a configuration takes effect a moment after it is
// written. Here, [Plugins] reads a configuration from the storage after it is written and before the response
// ([Plugins.Reload]), so that the configuration takes effect from the next request on. Plugins read all other objects
// from the storage too.
//
// If no policies or webhooks are configured, their plugins cost a write only a few atomic loads. The first write that
// needs a plugin creates the plugin and its CEL environment.
package plugins

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"

	hooks "github.com/tenure-ssa/tenure/apiserver/admission"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/internal/webhooks"
)

// Options configure the plugins.
type Options struct {
	Tables *resources.Current
	// Client is a client of this server.
	Client *restclient.Config
	// Hooks are the admission hooks of the host.
	Hooks hooks.Hooks
	// Authorizer decides the checks of CEL expressions that use the variable "authorizer".
	Authorizer authorizer.Authorizer
	// OpenAPI returns the OpenAPI 3 document of a group version of this server, in JSON.
	OpenAPI func(schema.GroupVersion) ([]byte, error)
	// Webhooks limit the calls of webhooks. Services resolve the Services that webhooks name.
	Webhooks webhooks.Limits
	Services webhooks.Services
	// Disabled are the names of compiled plugins that are not called.
	Disabled map[string]bool
}

// Plugins are the admission plugins of a server. They are safe for concurrent use.
type Plugins struct {
	options Options

	lock      sync.Mutex // held during changes
	informers map[string]*informer
	// configured are the plural names of the configuration resources that have objects.
	configured atomic.Pointer[map[string]bool]
	// version counts the changes of configurations.
	version atomic.Int64

	client   func() (kubernetes.Interface, error)
	webhooks func() (*webhookPlugins, error)
	policies func() (*policyPlugins, error)
}

// New returns plugins without configurations. Load reads them.
func New(options Options) *Plugins {
	p := &Plugins{options: options, informers: newInformers()}
	p.configured.Store(&map[string]bool{})
	p.client = sync.OnceValues(func() (kubernetes.Interface, error) { return kubernetes.NewForConfig(options.Client) })
	p.webhooks = sync.OnceValues(p.newWebhookPlugins)
	p.policies = sync.OnceValues(p.newPolicyPlugins)
	return p
}

// initializer passes clients, informers and the authorizer to plugins.
func (p *Plugins) initializer() (admission.PluginInitializer, error) {
	client, err := p.client()
	return initializer.New(client, nil, &factory{plugins: p}, p.options.Authorizer, utilfeature.DefaultFeatureGate,
		compatibility.DefaultBuildEffectiveVersion(), nil, nil), err
}

// Load reads all configurations of one resource.
func (p *Plugins) Load(ctx context.Context, plural string) error {
	p.lock.Lock()
	defer p.lock.Unlock()
	i := p.informers[plural]
	list, err := p.resource(plural).Objects(ctx, "")
	if err != nil {
		return err
	}
	stored := map[string]bool{}
	for _, obj := range list {
		o := obj.(metav1.Object)
		stored[o.GetName()] = true
		if err := i.set(o.GetName(), o); err != nil {
			return err
		}
	}
	for _, name := range i.GetStore().ListKeys() {
		if !stored[name] {
			if err := i.set(name, nil); err != nil {
				return err
			}
		}
	}
	p.noteConfigured()
	return nil
}

// Configurations returns the plural names of the configuration resources.
func (p *Plugins) Configurations() []string { return slices.Sorted(maps.Keys(p.informers)) }

// resource returns the configuration resource with a plural name.
func (p *Plugins) resource(plural string) *resources.Resource {
	return p.options.Tables.Table().Resource(admissionregistrationv1.SchemeGroupVersion.WithResource(plural))
}

// Reload reads a configuration. Writes that start after Reload has returned see the configuration.
func (p *Plugins) Reload(ctx context.Context, plural, name string) error {
	i := p.informers[plural]
	if i == nil {
		return nil
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	obj, err := p.resource(plural).Get(ctx, "", name)
	switch {
	case apierrors.IsNotFound(err):
		err = i.set(name, nil)
	case err == nil:
		err = i.set(name, obj.(metav1.Object))
	}
	p.noteConfigured()
	return err
}

// noteConfigured sets configured. The caller holds the lock.
func (p *Plugins) noteConfigured() {
	configured := map[string]bool{}
	for plural, i := range p.informers {
		configured[plural] = len(i.GetStore().ListKeys()) > 0
	}
	p.configured.Store(&configured)
	p.version.Add(1)
}

// has reports whether objects of a resource exist.
func (p *Plugins) has(plural string) bool { return (*p.configured.Load())[plural] }

// mutate calls the mutating policies and webhooks, which [Chain] calls last.
func (p *Plugins) mutate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if p.has("mutatingadmissionpolicybindings") {
		policies, err := p.policies()
		if err != nil {
			return err
		}
		if err := policies.mutate(ctx, a, o); err != nil {
			return err
		}
	}
	if !p.has("mutatingwebhookconfigurations") {
		return nil
	}
	plugins, err := p.webhooks()
	if err != nil || !plugins.mutating.Handles(a.GetOperation()) {
		return err
	}
	return plugins.mutating.Admit(ctx, a, o)
}

// validate calls the validating policies and webhooks.
func (p *Plugins) validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if p.has("validatingadmissionpolicybindings") {
		policies, err := p.policies()
		if err != nil {
			return err
		}
		if err := policies.validate(ctx, a, o); err != nil {
			return err
		}
	}
	if !p.has("validatingwebhookconfigurations") {
		return nil
	}
	plugins, err := p.webhooks()
	if err != nil || !plugins.validating.Handles(a.GetOperation()) {
		return err
	}
	return plugins.validating.Validate(ctx, a, o)
}

// excluded are the resources that webhooks and policies do not get, as in kube-apiserver: a webhook or policy for these
// resources could lock users out of the cluster.
var excluded = []schema.GroupResource{
	{Group: "authentication.k8s.io", Resource: "selfsubjectreviews"},
	{Group: "authentication.k8s.io", Resource: "tokenreviews"},
	{Group: "authorization.k8s.io", Resource: "localsubjectaccessreviews"},
	{Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"},
	{Group: "authorization.k8s.io", Resource: "selfsubjectrulesreviews"},
	{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"},
}
