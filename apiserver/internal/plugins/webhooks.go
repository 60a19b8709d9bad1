package plugins

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	"k8s.io/apiserver/pkg/util/webhook"
)

// webhookPlugins are kube-apiserver's plugins MutatingAdmissionWebhook and
// ValidatingAdmissionWebhook.
type webhookPlugins struct {
	mutating   *mutating.Plugin
	validating *validating.Plugin
}

// newWebhookPlugins creates the plugins. It takes the lock, because the plugins add handlers to the informers.
func (p *Plugins) newWebhookPlugins() (*webhookPlugins, error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	setUp, err := p.initializer()
	if err != nil {
		return nil, err
	}
	mutate, err := mutating.NewMutatingWebhook(nil)
	if err != nil {
		return nil, err
	}
	validate, err := validating.NewValidatingAdmissionWebhook(nil)
	if err != nil {
		return nil, err
	}
	for _, plugin := range []webhookPlugin{mutate, validate} {
		setUp.Initialize(plugin)
		plugin.SetServiceResolver(p.options.Services)
		plugin.SetAuthenticationInfoResolverWrapper(p.options.Webhooks.Wrap)
		if e, ok := plugin.(excluder); ok {
			e.SetExcludedAdmissionResources(excluded)
		}
		if err := plugin.ValidateInitialization(); err != nil {
			return nil, err
		}
	}
	return &webhookPlugins{mutate, validate}, nil
}

// webhookPlugin has the methods that mutating.Plugin and validating.Plugin share.
type webhookPlugin interface {
	admission.Interface
	admission.InitializationValidator
	SetServiceResolver(webhook.ServiceResolver)
	SetAuthenticationInfoResolverWrapper(webhook.AuthenticationInfoResolverWrapper)
}

// excluder is implemented by plugins that exclude resources, such as the webhook plugins of Kubernetes 1.37 and later.
type excluder interface {
	SetExcludedAdmissionResources([]schema.GroupResource)
}
