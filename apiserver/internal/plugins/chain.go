package plugins

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/metrics"
)

// A Chain is the admission of a server, in the order of kube-apiserver: compiled plugins, hooks, policies, webhooks. It
// implements admission.MutationInterface and admission.ValidationInterface.
type Chain struct {
	plugins *Plugins
	lock    sync.RWMutex
	made    map[string]admission.Interface // the compiled plugins that exist, by name
	chains  map[string]pluginChain         // the compiled plugins of a resource, by "group/plural/subresource"
}

// A pluginChain calls compiled plugins one after the other.
type pluginChain interface {
	admission.MutationInterface
	admission.ValidationInterface
}

// Admission returns the admission of a server.
func (p *Plugins) Admission() admission.Interface {
	chain := &Chain{plugins: p, made: map[string]admission.Interface{}, chains: map[string]pluginChain{}}
	return metrics.WithStepMetrics(chain)
}

// Handles returns true, because webhooks and policies may handle all operations.
func (c *Chain) Handles(admission.Operation) bool { return true }

// Admit calls everything that may mutate the object of a write. If the reinvocationPolicy of a webhook or policy
// requires a second call, Admit calls the compiled plugins and hooks a second time, and then this webhook or policy.
func (c *Chain) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if err := c.admit(ctx, a, o); err != nil {
		return err
	}
	again := a.GetReinvocationContext()
	if !again.ShouldReinvoke() {
		return nil
	}
	again.SetIsReinvoke()
	return c.admit(ctx, a, o)
}

func (c *Chain) admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	compiled, err := c.compiled(a)
	if err != nil {
		return err
	}
	if err := compiled.Admit(ctx, a, o); err != nil {
		return err
	}
	if err := c.plugins.mutateByHook(ctx, a, o); err != nil {
		return err
	}
	return c.plugins.mutate(ctx, a, o)
}

// Validate calls everything that may reject a write.
func (c *Chain) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	compiled, err := c.compiled(a)
	if err != nil {
		return err
	}
	if err := compiled.Validate(ctx, a, o); err != nil {
		return err
	}
	if err := c.plugins.validateByHook(ctx, a, o); err != nil {
		return err
	}
	return c.plugins.validate(ctx, a, o)
}

// compiled returns the compiled plugins for a write. The first write that needs a plugin creates it.
func (c *Chain) compiled(a admission.Attributes) (pluginChain, error) {
	r := a.GetResource()
	key := strings.TrimSuffix(r.Group+"/"+r.Resource+"/"+a.GetSubresource(), "/")
	c.lock.RLock()
	known, ok := c.chains[key]
	c.lock.RUnlock()
	if ok {
		return known, nil
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	var list []admission.Interface
	for _, each := range compiledPlugins {
		if c.plugins.options.Disabled[each.name] || !each.looksAt(key) {
			continue
		}
		plugin, err := c.plugin(each.name)
		if err != nil {
			return nil, fmt.Errorf("admission plugin %s: %w", each.name, err)
		}
		list = append(list, plugin)
	}
	c.chains[key] = admission.NewChainHandler(list...)
	return c.chains[key], nil
}

// plugin returns the plugin with a name.
func (c *Chain) plugin(name string) (admission.Interface, error) {
	if made := c.made[name]; made != nil {
		return made, nil
	}
	setUp, err := c.plugins.initializer()
	if err != nil {
		return nil, err
	}
	plugin, err := registry().InitPlugin(name, nil, setUp)
	if err != nil {
		return nil, err
	}
	c.made[name] = metrics.WithControllerMetrics(plugin, name)
	return c.made[name], nil
}
