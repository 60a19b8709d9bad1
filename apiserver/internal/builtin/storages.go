package builtin

import (
	"context"
	"fmt"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/client-go/discovery"
	clientcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	apiservicerest "k8s.io/kube-aggregator/pkg/registry/apiservice/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	// These packages register the kinds of all groups, with their conversions and defaults. Two of these groups are not
	// served, but OpenAPI documents name them.
	_ "k8s.io/kubernetes/pkg/apis/admission/install"
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	_ "k8s.io/kubernetes/pkg/apis/apiserverinternal/install"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/authentication/install"
	_ "k8s.io/kubernetes/pkg/apis/authorization/install"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/certificates/install"
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/discovery/install"
	_ "k8s.io/kubernetes/pkg/apis/events/install"
	_ "k8s.io/kubernetes/pkg/apis/flowcontrol/install"
	_ "k8s.io/kubernetes/pkg/apis/imagepolicy/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/node/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	_ "k8s.io/kubernetes/pkg/apis/storagemigration/install"

	admissionregistrationrest "k8s.io/kubernetes/pkg/registry/admissionregistration/rest"
	appsrest "k8s.io/kubernetes/pkg/registry/apps/rest"
	authenticationrest "k8s.io/kubernetes/pkg/registry/authentication/rest"
	authorizationrest "k8s.io/kubernetes/pkg/registry/authorization/rest"
	autoscalingrest "k8s.io/kubernetes/pkg/registry/autoscaling/rest"
	batchrest "k8s.io/kubernetes/pkg/registry/batch/rest"
	certificatesrest "k8s.io/kubernetes/pkg/registry/certificates/rest"
	coordinationrest "k8s.io/kubernetes/pkg/registry/coordination/rest"
	discoveryrest "k8s.io/kubernetes/pkg/registry/discovery/rest"
	eventsrest "k8s.io/kubernetes/pkg/registry/events/rest"
	flowcontrolrest "k8s.io/kubernetes/pkg/registry/flowcontrol/rest"
	networkingrest "k8s.io/kubernetes/pkg/registry/networking/rest"
	noderest "k8s.io/kubernetes/pkg/registry/node/rest"
	policyrest "k8s.io/kubernetes/pkg/registry/policy/rest"
	rbacrest "k8s.io/kubernetes/pkg/registry/rbac/rest"
	resourcerest "k8s.io/kubernetes/pkg/registry/resource/rest"
	schedulingrest "k8s.io/kubernetes/pkg/registry/scheduling/rest"
	storagerest "k8s.io/kubernetes/pkg/registry/storage/rest"
	storagemigrationrest "k8s.io/kubernetes/pkg/registry/storagemigration/rest"
)

// eventTTL is how long Events are kept: the default of kube-apiserver's flag --event-ttl.
const eventTTL = time.Hour

// maxTokenLife is the maximum lifetime of ServiceAccount tokens.
const maxTokenLife = 24 * time.Hour

// A provider opens the storages of a group.
type provider interface {
	NewRESTStorage(serverstorage.APIResourceConfigSource, generic.RESTOptionsGetter) (genericapiserver.APIGroupInfo, error)
}

// provider returns kube-apiserver's provider of a group, or nil for groups that other functions open.
func (o *opener) provider(name string) (provider, error) {
	c := o.options
	switch name {
	case "admissionregistration.k8s.io":
		client, err := discovery.NewDiscoveryClientForConfig(c.Client)
		return admissionregistrationrest.RESTStorageProvider{Authorizer: c.Authorizer, DiscoveryClient: client}, err
	case "apps":
		return appsrest.StorageProvider{}, nil
	case "authentication.k8s.io":
		return authenticationrest.RESTStorageProvider{Authenticator: c.Authenticator, APIAudiences: c.Audiences}, nil
	case "authorization.k8s.io":
		rules, ok := c.Authorizer.(authorizer.RuleResolver)
		if !ok {
			rules = noRules{c.Authorizer}
		}
		return authorizationrest.RESTStorageProvider{Authorizer: c.Authorizer, RuleResolver: rules}, nil
	case "autoscaling":
		return autoscalingrest.RESTStorageProvider{}, nil
	case "batch":
		return batchrest.RESTStorageProvider{}, nil
	case "certificates.k8s.io":
		return certificatesrest.RESTStorageProvider{Authorizer: c.Authorizer}, nil
	case "coordination.k8s.io":
		return coordinationrest.RESTStorageProvider{}, nil
	case "discovery.k8s.io":
		return discoveryrest.StorageProvider{}, nil
	case "events.k8s.io":
		return eventsrest.RESTStorageProvider{TTL: eventTTL}, nil
	case "flowcontrol.apiserver.k8s.io":
		return flowcontrolrest.RESTStorageProvider{}, nil
	case "networking.k8s.io":
		return networkingrest.RESTStorageProvider{}, nil
	case "node.k8s.io":
		return noderest.RESTStorageProvider{}, nil
	case "policy":
		return policyrest.RESTStorageProvider{}, nil
	case "rbac.authorization.k8s.io":
		// These storages (pkg/registry/rbac/clusterrole/policybased and the like) reject grants that exceed the user's
		// permissions.
		return rbacrest.RESTStorageProvider{Authorizer: c.Authorizer}, nil
	case "resource.k8s.io":
		client, err := clientcorev1.NewForConfig(c.Client)
		if err != nil {
			return nil, err
		}
		return resourcerest.RESTStorageProvider{NamespaceClient: client.Namespaces(), Authorizer: c.Authorizer}, nil
	case "scheduling.k8s.io":
		return schedulingrest.RESTStorageProvider{}, nil
	case "storage.k8s.io":
		return storagerest.RESTStorageProvider{}, nil
	case "storagemigration.k8s.io":
		return storagemigrationrest.RESTStorageProvider{}, nil
	}
	return nil, fmt.Errorf("no storages of group %q", name)
}

// noRules is the RuleResolver for authorizers that do not implement RuleResolver.
type noRules struct{ wrapped authorizer.Authorizer }

func (r noRules) RulesFor(context.Context, user.Info, string) (
	[]authorizer.ResourceRuleInfo, []authorizer.NonResourceRuleInfo, bool, error) {
	return nil, nil, true, fmt.Errorf("%T does not list rules", r.wrapped)
}

// open opens the storages of a group.
func (o *opener) open(name string) (genericapiserver.APIGroupInfo, error) {
	switch name {
	case "":
		return o.core()
	case apiextensions.GroupName:
		return o.definitions()
	case apiregistration.GroupName:
		options := o.group(aggregatorscheme.Scheme)
		return apiservicerest.NewRESTStorage(o, options, true), nil
	}
	p, err := o.provider(name)
	if err != nil {
		return genericapiserver.APIGroupInfo{}, err
	}
	return p.NewRESTStorage(o, o.group(legacyscheme.Scheme))
}

func (o *opener) group(scheme *runtime.Scheme) group {
	return group{scheme: scheme, open: o.options.Open, defaulter: defaulter{scheme, o.options.Default}}
}

// definitions opens the storages of CustomResourceDefinitions.
func (o *opener) definitions() (genericapiserver.APIGroupInfo, error) {
	scheme := DefinitionScheme()
	info := genericapiserver.NewDefaultAPIGroupInfo(apiextensions.GroupName, scheme, runtime.NewParameterCodec(scheme),
		newCodecs(scheme))
	crds, err := customresourcedefinition.NewREST(scheme, o.group(scheme))
	if err != nil {
		return info, err
	}
	info.VersionedResourcesStorageMap["v1"] = map[string]rest.Storage{
		"customresourcedefinitions":        crds,
		"customresourcedefinitions/status": customresourcedefinition.NewStatusREST(scheme, crds),
	}
	return info, nil
}
