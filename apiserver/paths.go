package apiserver

import (
	"net"
	"net/http"
	"runtime"
	"strconv"

	utilversion "k8s.io/apimachinery/pkg/util/version"

	"github.com/emicklei/go-restful/v3"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/server/healthz"
	apimux "k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
	kuberoutes "k8s.io/kubernetes/pkg/routes"
	"k8s.io/kubernetes/pkg/serviceaccount"

	builtintypes "github.com/tenure-ssa/tenure/typed/openapi"

	"github.com/tenure-ssa/tenure/apiserver/internal/discovery"
	"github.com/tenure-ssa/tenure/apiserver/internal/openapi"
)

// paths returns the handler of the paths that are not resources.
func (s *Server) paths(documents *openapi.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /version", s.serveVersion)
	checks := []healthz.HealthChecker{
		healthz.PingHealthz,
		healthz.NamedCheck("storage", func(r *http.Request) error { return s.store.Ready(r.Context()) }),
	}
	healthz.InstallHandler(mux, checks...)
	healthz.InstallLivezHandler(mux, checks...)
	healthz.InstallReadyzHandler(mux, checks...)
	installed := apimux.NewPathRecorderMux("apiserver")
	routes.DefaultMetrics{}.Install(installed)
	routes.Profiling{}.Install(installed)
	mux.Handle("GET /metrics", installed)
	mux.Handle("/debug/pprof/", installed)
	others := []string{"/version", "/metrics"}
	for _, health := range []string{"/healthz", "/livez", "/readyz"} {
		others = append(others, health, health+"/ping")
	}
	if h := s.openIDMetadata(); h != nil {
		for _, path := range []string{serviceaccount.OpenIDConfigPath, serviceaccount.JWKSPath} {
			mux.Handle("GET "+path, h)
			others = append(others, path)
		}
	}
	documents.Register(mux)
	discovery.New(s.tables, append(others, openapi.Paths...)).Register(mux)
	return mux
}

// openIDMetadata returns the handler of the documents that other services need to verify ServiceAccount tokens. As in
// kube-apiserver, it is nil for an issuer that can't have such documents, for example an issuer without https.
func (s *Server) openIDMetadata() http.Handler {
	address := "localhost"
	if endpoint := s.options.endpoint(); endpoint.Port() != 0 {
		address = endpoint.String()
		if hosts := s.options.Hosts; len(hosts) > 0 {
			address = net.JoinHostPort(hosts[0], strconv.Itoa(int(endpoint.Port())))
		}
	}
	provider, err := serviceaccount.NewOpenIDMetadataProvider(s.accounts.audiences[0], "", address, s.accounts.keys)
	if err != nil {
		s.options.Log.Warn("no OpenID configuration", "err", err)
		return nil
	}
	container := restful.NewContainer()
	kuberoutes.NewOpenIDMetadataServer(provider).Install(container)
	return container
}

// kubernetesVersion is the version of the API, of the embedded documents and of the Go types.
const kubernetesVersion = builtintypes.KubernetesVersion

func (s *Server) serveVersion(w http.ResponseWriter, _ *http.Request) {
	minor := int(utilversion.MustParseGeneric(kubernetesVersion).Minor())
	responsewriters.WriteRawJSON(http.StatusOK, version.Info{
		Major: "1", Minor: strconv.Itoa(minor), EmulationMajor: "1", EmulationMinor: strconv.Itoa(minor),
		MinCompatibilityMajor: "1", MinCompatibilityMinor: strconv.Itoa(minor - 1),
		GitVersion: s.options.Version, GitTreeState: "clean", BuildDate: "1970-01-01T00:00:00Z",
		GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}, w)
}
