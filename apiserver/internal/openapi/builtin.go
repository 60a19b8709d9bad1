package openapi

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/emicklei/go-restful/v3"
	"k8s.io/apimachinery/pkg/util/version"
	apinames "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
	utilopenapi "k8s.io/apiserver/pkg/util/openapi"
	"k8s.io/apiserver/pkg/util/responsewriter"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	"k8s.io/kube-openapi/pkg/builder"
	"k8s.io/kube-openapi/pkg/common/restfuladapter"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	generated "k8s.io/kubernetes/pkg/generated/openapi"

	"github.com/tenure-ssa/tenure/typed/openapi"

	"github.com/tenure-ssa/tenure/apiserver/internal/builtin"
)

// kube-apiserver's configuration of its documents.
var (
	definitions = utilopenapi.GetOpenAPIDefinitionsWithoutDisabledFeatures(generated.GetOpenAPIDefinitions)
	namer       = sync.OnceValue(func() *apinames.DefinitionNamer {
		return apinames.NewDefinitionNamer(legacyscheme.Scheme, builtin.DefinitionScheme(), aggregatorscheme.Scheme)
	})
	security = spec.SecuritySchemeProps{
		Type: "apiKey", Name: "authorization", In: "header", Description: "Bearer Token authentication",
	}
)

func info() *spec.Info {
	v := version.MustParseGeneric(openapi.KubernetesVersion)
	return &spec.Info{InfoProps: spec.InfoProps{
		Title: "Kubernetes", Version: fmt.Sprintf("%d.%d", v.Major(), v.Minor()),
	}}
}

// builtinV3 returns the OpenAPI 3 documents without custom resources, by path. All servers of the process share them.
var builtinV3 = sync.OnceValues(func() (map[string]*document, error) {
	container, err := builtin.Routes()
	if err != nil {
		return nil, err
	}
	config := genericapiserver.DefaultOpenAPIV3Config(definitions, namer())
	config.Info = info()
	config.SecuritySchemes = spec3.SecuritySchemes{"BearerToken": {SecuritySchemeProps: spec3.SecuritySchemeProps{
		Type: security.Type, Name: security.Name, In: security.In, Description: security.Description,
	}}}
	config.CommonResponses = map[int]*spec3.Response{
		http.StatusUnauthorized: {ResponseProps: spec3.ResponseProps{Description: "Unauthorized"}},
	}
	out := map[string]*document{}
	for _, s := range container.RegisteredWebServices() {
		// Each document has its own service, because a service computes one document at a time.
		single := restful.NewContainer()
		single.Add(s)
		service := routes.OpenAPI{V3Config: config}.InstallV3(single, mux.NewPathRecorderMux("openapi"))
		out[strings.TrimPrefix(s.RootPath(), "/")] = newDocument(func() (content, error) {
			w := responsewriter.NewInMemoryResponseWriter()
			service.HandleGroupVersion(w, &http.Request{URL: &url.URL{Path: "/openapi/v3" + s.RootPath()}})
			if len(w.Data()) == 0 {
				return content{}, fmt.Errorf("kube-apiserver's code makes no OpenAPI document of %s", s.RootPath())
			}
			return contentOf(w.Data()), nil
		}, handler3.ToV3ProtoBinary)
	}
	return out, nil
})

// builtinV2 returns the OpenAPI 2 document without custom resources. Callers must not change it.
var builtinV2 = sync.OnceValues(func() (*spec.Swagger, error) {
	container, err := builtin.Routes()
	if err != nil {
		return nil, err
	}
	config := genericapiserver.DefaultOpenAPIConfig(definitions, namer())
	config.Info = info()
	config.SecurityDefinitions = &spec.SecurityDefinitions{"BearerToken": {SecuritySchemeProps: security}}
	config.DefaultSecurity = []map[string][]string{{"BearerToken": {}}}
	config.CommonResponses = map[int]spec.Response{
		http.StatusUnauthorized: {ResponseProps: spec.ResponseProps{Description: "Unauthorized"}},
	}
	services := restfuladapter.AdaptWebServices(container.RegisteredWebServices())
	out, err := builder.BuildOpenAPISpecFromRoutes(services, config)
	if err != nil {
		return nil, err
	}
	out.Definitions = handler.PruneDefaults(out.Definitions)
	return out, nil
})
