package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strconv"

	"k8s.io/apimachinery/pkg/version"

	builtintypes "github.com/tenure-ssa/tenure/typed/openapi"

	"github.com/tenure-ssa/tenure/apiserver/internal/discovery"
	"github.com/tenure-ssa/tenure/apiserver/internal/openapi"
	"github.com/tenure-ssa/tenure/apiserver/internal/response"
)

// paths are the paths that are not resources.
func (s *Server) paths() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /version", s.serveVersion)
	mux.Handle("GET /metrics", s.metrics)
	others := []string{"/version", "/metrics"}
	for _, check := range []string{"healthz", "livez", "readyz"} {
		mux.HandleFunc("GET /"+check, s.serveHealth(check))
		mux.HandleFunc("GET /"+check+"/ping", func(w http.ResponseWriter, _ *http.Request) { text(w, "ok") })
		others = append(others, "/"+check, "/"+check+"/ping")
	}
	s.openapi.Register(mux)
	discovery.New(s.tables, append(others, openapi.Paths...)).Register(mux)
	return mux
}

// kubernetesVersion is the version of the API: that of the embedded documents and the Go types.
const kubernetesVersion = builtintypes.KubernetesVersion

func text(w http.ResponseWriter, s string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = fmt.Fprint(w, s)
}

// serveHealth reports whether the storage is available.
func (s *Server) serveHealth(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, err := s.store.Revision(r.Context())
		_, verbose := r.URL.Query()["verbose"]
		switch {
		case err != nil:
			http.Error(w, fmt.Sprintf("[+]ping ok\n[-]store failed: reason withheld\n%s check failed", name),
				http.StatusInternalServerError)
		case verbose:
			text(w, fmt.Sprintf("[+]ping ok\n[+]store ok\n%s check passed\n", name))
		default:
			text(w, "ok")
		}
	}
}

// minorOf returns the minor version of a Kubernetes version, such as 36 of v1.36.3.
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
