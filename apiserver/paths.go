package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/pprof"
	"runtime"
	"strconv"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/endpoints/metrics"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/component-base/metrics/legacyregistry"

	builtintypes "github.com/tenure-ssa/tenure/typed/openapi"

	"github.com/tenure-ssa/tenure/apiserver/internal/discovery"
	"github.com/tenure-ssa/tenure/apiserver/internal/openapi"
	"github.com/tenure-ssa/tenure/apiserver/internal/response"
)

// paths are the paths that are not resources.
func (s *Server) paths() *http.ServeMux {
	metrics.Register()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /version", s.serveVersion)
	mux.Handle("GET /metrics", legacyregistry.Handler())
	checks := []healthz.HealthChecker{
		healthz.PingHealthz,
		healthz.NamedCheck("storage", func(r *http.Request) error { return s.store.Ready(r.Context()) }),
	}
	healthz.InstallHandler(mux, checks...)
	healthz.InstallLivezHandler(mux, checks...)
	healthz.InstallReadyzHandler(mux, checks...)
	for path, handler := range map[string]http.HandlerFunc{
		"": pprof.Index, "cmdline": pprof.Cmdline, "profile": pprof.Profile, "symbol": pprof.Symbol, "trace": pprof.Trace,
	} {
		mux.HandleFunc("/debug/pprof/"+path, handler)
	}
	others := []string{"/version", "/metrics"}
	for _, health := range []string{"/healthz", "/livez", "/readyz"} {
		others = append(others, health, health+"/ping")
	}
	s.openapi.Register(mux)
	discovery.New(s.tables, append(others, openapi.Paths...)).Register(mux)
	return mux
}

// kubernetesVersion is the version of the API: that of the embedded documents and the Go types.
const kubernetesVersion = builtintypes.KubernetesVersion

// minorOf returns the minor version of a Kubernetes version, such as 37 of v1.37.2.
func minorOf(gitVersion string) int {
	var minor, patch int
	if _, err := fmt.Sscanf(gitVersion, "v1.%d.%d", &minor, &patch); err != nil {
		panic(fmt.Sprintf("apiserver: bug: version %q: %v", gitVersion, err)) // TestVersion asks for it
	}
	return minor
}

func (s *Server) serveVersion(w http.ResponseWriter, r *http.Request) {
	minor := minorOf(kubernetesVersion)
	data, err := json.MarshalIndent(version.Info{
		Major: "1", Minor: strconv.Itoa(minor), EmulationMajor: "1", EmulationMinor: strconv.Itoa(minor),
		MinCompatibilityMajor: "1", MinCompatibilityMinor: strconv.Itoa(minor - 1),
		GitVersion: s.options.Version, GitTreeState: "clean", BuildDate: "1970-01-01T00:00:00Z",
		GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}, "", "  ")
	if err != nil {
		response.Error(w, r, err)
		return
	}
	response.Bytes(w, r, "application/json", http.StatusOK, data)
}
