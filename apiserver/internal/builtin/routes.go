package builtin

import (
	"errors"
	"fmt"

	"github.com/emicklei/go-restful/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/endpoints"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/routes"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	restclient "k8s.io/client-go/rest"
)

// Routes returns kube-apiserver's routes of the built-in resources, for their OpenAPI documents. kube-apiserver's own
// installer creates them. They must not be called, because their storages store nothing.
func Routes() (*restful.Container, error) {
	out := restful.NewContainer()
	options := Options{
		Open:       Opener{Open: openNothing},
		Authorizer: authorizerfactory.NewAlwaysDenyAuthorizer(), Client: &restclient.Config{},
		ServiceClusterIPRange: DefaultServiceClusterIPRange,
	}
	var errs []error
	for _, opener := range openers(options) {
		info, err := opener.info()
		if err != nil {
			return nil, fmt.Errorf("storages of group %q: %w", opener.served.Name, err)
		}
		root := genericapiserver.APIGroupPrefix
		if opener.served.Name == "" {
			root = genericapiserver.DefaultLegacyAPIPrefix
		} else {
			group := metav1.APIGroup{Name: opener.served.Name}
			out.Add(discovery.NewAPIGroupHandler(Codecs(), group).WebService())
		}
		for _, gv := range info.PrioritizedVersions {
			storages := info.VersionedResourcesStorageMap[gv.Version]
			if len(storages) == 0 {
				continue
			}
			version := endpoints.APIGroupVersion{
				Root: root, GroupVersion: gv, Storage: storages,
				Serializer: info.NegotiatedSerializer, ParameterCodec: info.ParameterCodec,
				Creater: info.Scheme, Convertor: info.Scheme, Defaulter: info.Scheme, Typer: info.Scheme,
				UnsafeConvertor: runtime.UnsafeObjectConvertor(info.Scheme), Namer: runtime.Namer(meta.NewAccessor()),
				EquivalentResourceRegistry: runtime.NewEquivalentResourceRegistry(),
				TypeConverter:              managedfields.NewDeducedTypeConverter(),
			}
			_, _, err := version.InstallREST(out)
			errs = append(errs, err)
		}
	}
	lists := aggregated.WrapAggregatedDiscoveryToHandler(nil, nil, nil)
	out.Add(lists.GenerateWebService(genericapiserver.DefaultLegacyAPIPrefix, metav1.APIVersions{}))
	out.Add(lists.GenerateWebService(genericapiserver.APIGroupPrefix, metav1.APIGroupList{}))
	routes.Version{Version: &version.Info{}}.Install(out)
	return out, errors.Join(errs...)
}

func openNothing(*storagebackend.ConfigForResource, string, func() runtime.Object, func() runtime.Object) (
	storage.Interface, factory.DestroyFunc, error) {
	return nil, func() {}, nil
}
