package plugins

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/metrics"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	certapproval "k8s.io/kubernetes/plugin/pkg/admission/certificates/approval"
	certsigning "k8s.io/kubernetes/plugin/pkg/admission/certificates/signing"
	certsubject "k8s.io/kubernetes/plugin/pkg/admission/certificates/subjectrestriction"
	"k8s.io/kubernetes/plugin/pkg/admission/defaulttolerationseconds"
	"k8s.io/kubernetes/plugin/pkg/admission/network/defaultingressclass"
	"k8s.io/kubernetes/plugin/pkg/admission/nodetaint"
	"k8s.io/kubernetes/plugin/pkg/admission/podtopologylabels"
	"k8s.io/kubernetes/plugin/pkg/admission/priority"
	"k8s.io/kubernetes/plugin/pkg/admission/runtimeclass"
	"k8s.io/kubernetes/plugin/pkg/admission/security/podsecurity"
	"k8s.io/kubernetes/plugin/pkg/admission/storage/persistentvolume/resize"
	"k8s.io/kubernetes/plugin/pkg/admission/storage/storageclass/setdefault"
	"k8s.io/kubernetes/plugin/pkg/admission/storage/storageobjectinuseprotection"
)

// A compiled is a plugin that is compiled into kube-apiserver.
type compiled struct {
	name     string
	register func(*admission.Plugins)
	// resources are those that the plugin looks at, as "group/plural" or "group/plural/subresource"; nil means all.
	resources []string
}

// compiledPlugins are those that kube-apiserver calls by default, in its order. ServiceAccount, LimitRanger and
// ResourceQuota are missing: they need controllers beside the server.
var compiledPlugins = []compiled{
	{lifecycle.PluginName, lifecycle.Register, nil},
	{nodetaint.PluginName, nodetaint.Register, []string{"/nodes"}},
	{podsecurity.PluginName, podsecurity.Register, []string{
		"/namespaces", "/pods", "/pods/ephemeralcontainers", "/pods/resize", "/replicationcontrollers", "/podtemplates",
		"apps/replicasets", "apps/deployments", "apps/statefulsets", "apps/daemonsets", "batch/jobs", "batch/cronjobs",
	}},
	{priority.PluginName, priority.Register, []string{"/pods", "scheduling.k8s.io/priorityclasses"}},
	{defaulttolerationseconds.PluginName, defaulttolerationseconds.Register, []string{"/pods"}},
	{setdefault.PluginName, setdefault.Register, []string{"/persistentvolumeclaims"}},
	{storageobjectinuseprotection.PluginName, storageobjectinuseprotection.Register,
		[]string{"/persistentvolumeclaims", "/persistentvolumes"}},
	{resize.PluginName, resize.Register, []string{"/persistentvolumeclaims"}},
	{runtimeclass.PluginName, runtimeclass.Register, []string{"/pods"}},
	{certapproval.PluginName, certapproval.Register, []string{"certificates.k8s.io/certificatesigningrequests/approval"}},
	{certsigning.PluginName, certsigning.Register, []string{"certificates.k8s.io/certificatesigningrequests/status"}},
	{certsubject.PluginName, certsubject.Register, []string{"certificates.k8s.io/certificatesigningrequests"}},
	{defaultingressclass.PluginName, defaultingressclass.Register, []string{"networking.k8s.io/ingresses"}},
	{podtopologylabels.PluginName, podtopologylabels.Register, []string{"/pods", "/pods/binding", "/bindings"}},
}

// registry has the factories of all compiled plugins.
var registry = sync.OnceValue(func() *admission.Plugins {
	all := admission.NewPlugins()
	for _, c := range compiledPlugins {
		c.register(all)
	}
	return all
})

// A Chain is the admission of a server: all plugins and hooks, in the order of kube-apiserver. It implements
// admission.MutationInterface and admission.ValidationInterface.
type Chain struct {
	plugins *Plugins
	lock    sync.RWMutex
	made    map[string]admission.Interface   // by name
	of      map[string][]admission.Interface // by "group/plural/subresource"
}

// Admission returns the admission of a server.
func (p *Plugins) Admission() admission.Interface {
	chain := &Chain{plugins: p, made: map[string]admission.Interface{}, of: map[string][]admission.Interface{}}
	return metrics.WithStepMetrics(chain)
}

// Handles returns true: hooks see all operations.
func (c *Chain) Handles(admission.Operation) bool { return true }

// Admit calls what mutates the object of a write, and all a second time if a plugin asks for it.
func (c *Chain) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	err := c.admit(ctx, a, o)
	if again := a.GetReinvocationContext(); err == nil && again.ShouldReinvoke() {
		again.SetIsReinvoke()
		err = c.admit(ctx, a, o)
	}
	return err
}

func (c *Chain) admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	list, err := c.compiled(a)
	if err != nil {
		return err
	}
	for _, plugin := range list {
		if m, ok := plugin.(admission.MutationInterface); ok && plugin.Handles(a.GetOperation()) {
			if err := m.Admit(ctx, a, o); err != nil {
				return err
			}
		}
	}
	if err := c.plugins.mutateByHook(ctx, a, o); err != nil {
		return err
	}
	return c.plugins.mutate(ctx, a, o)
}

// Validate calls what may reject a write.
func (c *Chain) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	list, err := c.compiled(a)
	if err != nil {
		return err
	}
	for _, plugin := range list {
		if v, ok := plugin.(admission.ValidationInterface); ok && plugin.Handles(a.GetOperation()) {
			if err := v.Validate(ctx, a, o); err != nil {
				return err
			}
		}
	}
	if err := c.plugins.validateByHook(ctx, a, o); err != nil {
		return err
	}
	return c.plugins.validate(ctx, a, o)
}

// compiled returns the compiled plugins for a write. They are made by the first write that needs them.
func (c *Chain) compiled(a admission.Attributes) ([]admission.Interface, error) {
	r := a.GetResource()
	key := strings.TrimSuffix(r.Group+"/"+r.Resource+"/"+a.GetSubresource(), "/")
	c.lock.RLock()
	list, ok := c.of[key]
	c.lock.RUnlock()
	if ok {
		return list, nil
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	list = []admission.Interface{}
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
	c.of[key] = list
	return list, nil
}

func (p compiled) looksAt(key string) bool {
	if p.resources == nil {
		return true
	}
	for _, r := range p.resources {
		if r == key {
			return true
		}
	}
	return false
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
