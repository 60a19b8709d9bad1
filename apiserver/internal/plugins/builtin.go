package plugins

import (
	"slices"
	"sync"

	"k8s.io/apiserver/pkg/admission"
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

// A compiled is an admission plugin that is compiled into kube-apiserver.
type compiled struct {
	name     string
	register func(*admission.Plugins)
	// resources are the resources that the plugin handles, as "group/plural" or "group/plural/subresource"; nil means all.
	resources []string
}

// compiledPlugins are the plugins that kube-apiserver calls by default, in its order. ServiceAccount, LimitRanger and
// ResourceQuota are missing, because they need controllers beside the server.
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

func (p compiled) looksAt(key string) bool {
	return p.resources == nil || slices.Contains(p.resources, key)
}
