// Package plugins runs kube-apiserver's admission plugins for webhook configurations and
// admission policies, with the packages of k8s.io/apiserver.
//
// kube-apiserver follows the configurations with informers: a configuration takes effect a
// moment after it is written. [Plugins] reads them from the server's own store when they are
// written, before the response ([Plugins.Changed]), so that it takes effect with the next
// request. Namespaces and params of policies are read from the store when a plugin asks for
// them. [Plugins.Watch] sees the writes of other servers that share the store.
//
// Without configurations a write costs one atomic load. The plugins and their CEL environments
// are made by the first write that needs them.
package plugins

import (
	"context"
	"fmt"
	"path"
	"sync"
	"sync/atomic"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/internal/webhooks"
	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// Options configure the plugins.
type Options struct {
	Store  storage.Store
	Tables *resources.Current
	// StrategyOf returns the strategy of a kind that is not stored, such as Eviction.
	StrategyOf func(schema.GroupVersionKind) (resources.Strategy, error)
	// Default, if not nil, sets the host's defaults after a mutation.
	Default func(resources.Object)
	// Authorizer answers the variable authorizer of CEL expressions.
	Authorizer authorizer.Authorizer
	// OpenAPI returns the OpenAPI 3 document of a group version of this server, in JSON.
	OpenAPI func(schema.GroupVersion) ([]byte, error)
	// Webhooks limits calls of webhooks, Services resolves the Services that they name.
	Webhooks webhooks.Limits
	Services webhooks.Services
}

// Prefix is the storage prefix of the configurations.
const Prefix = "/" + admissionregistrationv1.GroupName + "/"

// Plugins are the admission plugins of a server. They are safe for concurrent use.
type Plugins struct {
	options Options

	lock      sync.Mutex // of changes
	informers map[string]*informer
	// configured are the plural names of the resources that have an object.
	configured atomic.Pointer[map[string]bool]
	// version counts the changes of configurations.
	version atomic.Int64

	webhooks func() (*webhookPlugins, error)
	policies func() *policyPlugins
}

// New returns plugins without configurations. Load reads them.
func New(options Options) *Plugins {
	p := &Plugins{options: options, informers: newInformers()}
	p.configured.Store(&map[string]bool{})
	p.webhooks = sync.OnceValues(p.newWebhookPlugins)
	p.policies = sync.OnceValue(p.newPolicyPlugins)
	return p
}

// Load reads all configurations and returns the revision at which it read them.
func (p *Plugins) Load(ctx context.Context) (int64, error) {
	page, err := p.options.Store.List(ctx, Prefix, storage.ListOptions{})
	if err != nil {
		return 0, err
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	stored := map[string]bool{}
	for i := range page.Records {
		stored[page.Records[i].Key] = true
		if err := p.set(page.Records[i].Key, &page.Records[i]); err != nil {
			return 0, err
		}
	}
	for plural, i := range p.informers {
		for _, name := range i.GetStore().ListKeys() {
			if key := Prefix + plural + "/" + name; !stored[key] {
				if err := p.set(key, nil); err != nil {
					return 0, err
				}
			}
		}
	}
	return page.Revision, nil
}

// Watch reads configurations that change until ctx ends. It sees the writes of all servers;
// Changed is called for those of this server before.
func (p *Plugins) Watch(ctx context.Context, after int64) error {
	w, err := p.options.Store.Watch(ctx, Prefix, after)
	if err != nil {
		return err
	}
	for event := range w.Events() {
		if event.Key == "" {
			continue
		}
		if err := p.Changed(ctx, event.Key); err != nil {
			return err
		}
	}
	return w.Err()
}

// Changed reads the configuration at a storage key. Writes that start after it returned see
// the configuration.
func (p *Plugins) Changed(ctx context.Context, key string) error {
	p.lock.Lock()
	defer p.lock.Unlock()
	record, _, err := p.options.Store.Get(ctx, key, 0)
	if err != nil {
		return err
	}
	return p.set(key, record)
}

// set replaces the configuration at a storage key; record is nil if it does not exist. The
// lock is held.
func (p *Plugins) set(key string, record *storage.Record) error {
	plural, name := path.Base(path.Dir(key)), path.Base(key)
	i := p.informers[plural]
	if i == nil {
		return nil // of a later version of Kubernetes
	}
	var obj resources.Object
	if record != nil {
		var err error
		gvr := admissionregistrationv1.SchemeGroupVersion.WithResource(plural)
		if obj, err = p.decode(p.options.Tables.Table().Resource(gvr), record); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	if err := i.set(name, obj); err != nil {
		return err
	}
	configured := map[string]bool{}
	for plural, i := range p.informers {
		configured[plural] = len(i.GetStore().ListKeys()) > 0
	}
	p.configured.Store(&configured)
	p.version.Add(1)
	return nil
}

// decode decodes the record of an object of r.
func (p *Plugins) decode(r *resources.Resource, record *storage.Record) (resources.Object, error) {
	strategy, err := r.Strategy()
	if err != nil {
		return nil, err
	}
	obj, err := strategy.DecodeStored(record.Value)
	if err != nil {
		return nil, err
	}
	if p.options.Default != nil {
		p.options.Default(obj)
	}
	obj.SetResourceVersion(fmt.Sprint(record.Revision))
	return obj, nil
}

// has reports whether there is an object of a resource.
func (p *Plugins) has(plural string) bool { return (*p.configured.Load())[plural] }

// Mutating reports whether a configuration may mutate writes.
func (p *Plugins) Mutating() bool {
	return p.has("mutatingwebhookconfigurations") || p.has("mutatingadmissionpolicybindings")
}

// Validating reports whether a configuration may reject writes.
func (p *Plugins) Validating() bool {
	return p.has("validatingwebhookconfigurations") || p.has("validatingadmissionpolicybindings")
}

// Admit mutates the object of a write. Its reinvocation context says whether it wants to be
// called again; see verbs.
func (p *Plugins) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if p.has("mutatingadmissionpolicybindings") {
		if err := p.policies().mutate(ctx, a, o); err != nil {
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

// Validate returns an error for a write that a configuration rejects.
func (p *Plugins) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if p.has("validatingadmissionpolicybindings") {
		if err := p.policies().validate(ctx, a, o); err != nil {
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

// excluded are resources that no plugin intercepts: kube-apiserver excludes them, lest a
// cluster locks itself out.
var excluded = []schema.GroupResource{
	{Group: "authentication.k8s.io", Resource: "selfsubjectreviews"},
	{Group: "authentication.k8s.io", Resource: "tokenreviews"},
	{Group: "authorization.k8s.io", Resource: "localsubjectaccessreviews"},
	{Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"},
	{Group: "authorization.k8s.io", Resource: "selfsubjectrulesreviews"},
	{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"},
}
