package apiserver_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/auth/rbac"
)

var recordRoutes = flag.Bool("record-routes", false, "with KUBE_APISERVER, record the codes of that server")

// routeCodes has the recorded codes of a kube-apiserver: each line has a path, and the codes of its requests.
const routeCodes = "testdata/routes.txt.gz"

var (
	routeMethods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT"}
	// routeUsers are the administrator, "", and users with different rights: nobody has none, owner may do everything in
	// namespace a, viewer may read Namespaces in namespace a, reader may read everything, and namer may do everything with
	// objects named a.
	routeUsers = []string{"", "nobody", "owner", "viewer", "reader", "namer"}
	// routePlurals are the plurals of custom resources, with each scope. All except the first have a meaning of their own
	// in a path.
	routePlurals = []string{"widgets", "namespaces", "status", "finalize", "watch", "proxy"}
)

// routeServer is a server whose routes are compared.
type routeServer struct {
	t       *testing.T
	send    func(r *http.Request) int
	ask     func(method, path, body string) (int, []byte)
	isStock bool
}

// TestRoutesLikeKubeAPIServer sends requests to all paths made of prefixes, groups, resources, namespaces, names,
// subresources and unusual segments, with every method, as users with different rights, and compares the status codes
// with the codes of a kube-apiserver. Requests that write are dry runs. By default it sends a 16th of the requests;
// ROUTES=all sends all 560,352. To record the codes, run
//
//	go run ./hosts/kube-apiserver serve --rbac
//	KUBE_APISERVER=URL KUBE_TOKEN=loopback go test ./apiserver -run TestRoutesLikeKubeAPIServer -record-routes
func TestRoutesLikeKubeAPIServer(t *testing.T) {
	s := newRouteServer(t)
	s.begin()
	paths := s.paths()
	if s.isStock && *recordRoutes {
		s.record(paths)
		return
	}
	want := readRouteCodes(t)
	require.Equal(t, slices.Sorted(maps.Keys(want)), paths, "other paths than were recorded")
	var mu sync.Mutex
	differences := map[string][]string{}
	sent := 0
	s.each(paths, func(i int, path string) {
		part := (i + 1) % 16
		var lines []string
		count := 0
		for m, method := range routeMethods {
			for u, name := range routeUsers {
				n := m*len(routeUsers) + u
				if os.Getenv("ROUTES") != "all" && !s.isStock && n%16 != part {
					continue
				}
				count++
				got := s.code(method, path, name)
				if expected := want[path][n]; got != expected && !excusedRoute(path, got, expected) {
					lines = append(lines, fmt.Sprintf("%s %s as %q: %d, expected %d", method, path, name, got, expected))
				}
			}
		}
		mu.Lock()
		defer mu.Unlock()
		sent += count
		if len(lines) > 0 {
			differences[path] = lines
		}
	})
	t.Logf("%d requests to %d paths", sent, len(paths))
	total := 0
	for _, path := range slices.Sorted(maps.Keys(differences)) {
		total += len(differences[path])
		if total < 400 || os.Getenv("ROUTES") == "all" {
			t.Error(strings.Join(differences[path], "\n"))
		}
	}
	require.Zero(t, total, "differences")
}

// excusedRoute reports whether difference 571 explains the other code: the path ends with watch or proxy, which should
// begin it.
func excusedRoute(path string, got, want int) bool {
	last := strings.Split(strings.Trim(path, "/"), "/")[3:]
	return want == http.StatusInternalServerError && len(last) == 1 && (last[0] == "watch" || last[0] == "proxy") &&
		slices.Contains([]int{http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed}, got)
}

func newRouteServer(t *testing.T) *routeServer {
	s := &routeServer{t: t}
	token := "token"
	var handler http.Handler
	if address := os.Getenv("KUBE_APISERVER"); address != "" {
		s.isStock, token = true, os.Getenv("KUBE_TOKEN")
		target, err := url.Parse(address)
		require.NoError(t, err)
		two := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
		http1 := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // in HTTP/2, CONNECT has no path
		handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.URL.Scheme, r.URL.Host, r.RequestURI, r.Host = target.Scheme, target.Host, "", target.Host
			transport := two
			if r.Method == http.MethodConnect {
				transport = http1
			}
			response, err := transport.RoundTrip(r)
			require.NoError(t, err, "%s %s", r.Method, r.URL)
			defer response.Body.Close()
			w.WriteHeader(response.StatusCode)
			_, _ = io.Copy(w, response.Body)
		})
	} else {
		store := newStore(t)
		authorizer, err := rbac.New(t.Context(), store)
		require.NoError(t, err)
		handler = newHost(t, apiserver.Options{
			Store: store, Authorizer: authorizer, Bootstrap: apiserver.BootstrapAll(),
		}).Server
	}
	s.send = func(r *http.Request) int {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		r.Header.Set("Authorization", "Bearer "+token)
		w := &codeWriter{header: http.Header{}, ended: cancel}
		handler.ServeHTTP(w, r.WithContext(ctx))
		return w.code
	}
	s.ask = func(method, path, body string) (int, []byte) {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code, w.Body.Bytes()
	}
	return s
}

// codeWriter records the code of a response and then ends the request, because a watch would continue.
type codeWriter struct {
	header http.Header
	code   int
	ended  func()
}

func (w *codeWriter) Header() http.Header { return w.header }

func (w *codeWriter) WriteHeader(code int) {
	if w.code == 0 {
		w.code = code
		w.ended()
	}
}

func (w *codeWriter) Write(data []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return len(data), nil
}

func (w *codeWriter) Flush() {}

// code sends a request, and returns the status code.
func (s *routeServer) code(method, path, as string) int {
	body := ""
	if slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch}, method) { // DELETE has options
		body = "{}"
	}
	r := httptest.NewRequest(http.MethodGet, "/", strings.NewReader(body))
	r.Method = method
	r.URL = &url.URL{Path: path, RawQuery: "dryRun=All"}
	r.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", mergePatch)
	}
	if as != "" {
		r.Header.Set("Impersonate-User", as)
	}
	return s.send(r)
}

func (s *routeServer) must(method, path, body string) []byte {
	code, data := s.ask(method, path, body)
	if method == http.MethodPost && code == http.StatusConflict {
		return data
	}
	require.Less(s.t, code, 300, "%s %s: %s", method, path, data)
	return data
}

// begin creates the objects and the permissions that the requests need.
func (s *routeServer) begin() {
	for _, name := range []string{"a", "b"} {
		s.must("POST", "/api/v1/namespaces", `{"metadata":{"name":"`+name+`"}}`)
	}
	s.must("POST", "/api/v1/namespaces/a/configmaps", `{"metadata":{"name":"a"}}`)
	for group, scope := range map[string]string{"c.example.com": "Cluster", "n.example.com": "Namespaced"} {
		for _, plural := range routePlurals {
			s.must("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", fmt.Sprintf(`{"metadata":{"name":"%s.%s"},
"spec":{"group":"%[2]s","scope":"%s","names":{"plural":"%[1]s","kind":"K%[1]s"},"versions":[{"name":"v1","served":true,
"storage":true,"subresources":{"status":{},"scale":{"specReplicasPath":".spec.a","statusReplicasPath":".status.a"}},
"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`, plural, group, scope))
		}
		path := "/apis/" + group + "/v1/"
		if scope == "Namespaced" {
			path += "namespaces/a/"
		}
		require.Eventually(s.t, func() bool {
			for _, plural := range []string{"widgets", "namespaces"} {
				code, _ := s.ask("POST", path+plural,
					`{"apiVersion":"`+group+`/v1","kind":"K`+plural+`","metadata":{"name":"a"}}`)
				if code != http.StatusCreated && code != http.StatusConflict {
					return false
				}
			}
			return true
		}, wait, tick)
	}
	const api = "/apis/rbac.authorization.k8s.io/v1/"
	bind := func(path, kind, role, name string) {
		s.must("POST", api+path, `{"metadata":{"name":"`+name+`"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"`+
			kind+`","name":"`+role+`"},"subjects":[{"kind":"User","name":"`+name+`","apiGroup":"rbac.authorization.k8s.io"}]}`)
	}
	bind("namespaces/a/rolebindings", "ClusterRole", "cluster-admin", "owner")
	s.must("POST", api+"namespaces/a/roles", `{"metadata":{"name":"viewer"},"rules":[{"apiGroups":["*"],
"resources":["namespaces"],"verbs":["get","list","watch"]}]}`)
	bind("namespaces/a/rolebindings", "Role", "viewer", "viewer")
	s.must("POST", api+"clusterroles", `{"metadata":{"name":"reader"},"rules":[{"apiGroups":["*"],"resources":["*"],
"verbs":["get","list","watch"]}]}`)
	bind("clusterrolebindings", "ClusterRole", "reader", "reader")
	s.must("POST", api+"clusterroles", `{"metadata":{"name":"namer"},"rules":[{"apiGroups":["*"],"resources":["*"],
"resourceNames":["a"],"verbs":["*"]}]}`)
	bind("clusterrolebindings", "ClusterRole", "namer", "namer")
}

// paths returns the paths to test, for all group versions of the server.
func (s *routeServer) paths() []string {
	roots := []string{"/api/v1", "/apis/unknown.example.com/v1", "/api/v2", "/apis/apps/v1beta1"}
	var groups metav1.APIGroupList
	require.NoError(s.t, json.Unmarshal(s.must("GET", "/apis", ""), &groups))
	for _, g := range groups.Groups {
		for _, v := range g.Versions {
			roots = append(roots, "/apis/"+v.GroupVersion)
		}
	}
	seen := map[string]bool{}
	for _, root := range roots {
		subresources := map[string][]string{"unknowns": nil, "namespaces": nil}
		if code, data := s.ask("GET", root, ""); code == http.StatusOK {
			var list metav1.APIResourceList
			require.NoError(s.t, json.Unmarshal(data, &list))
			for _, r := range list.APIResources {
				plural, subresource, isSub := strings.Cut(r.Name, "/")
				known := subresources[plural]
				if isSub {
					known = append(known, subresource)
				}
				subresources[plural] = known
			}
		}
		for plural, own := range subresources {
			for _, path := range pathsOf(plural, own) {
				seen[root+"/"+path] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// oddRoutes are the resources whose paths are also made with unusual segments.
var oddRoutes = append([]string{"namespaces", "configmaps", "pods", "nodes", "subjectaccessreviews"}, routePlurals...)

// pathsOf returns the paths of a resource below its group version.
func pathsOf(plural string, subresources []string) (out []string) {
	prefixes, namespaces := []string{"", "watch/", "proxy/"}, []string{"", "namespaces/a/"}
	tails := []string{"", "/a", "/none", "/a/status", "/a/unknown"}
	for _, name := range subresources {
		tails = append(tails, "/a/"+name, "/a/"+name+"/more")
	}
	if slices.Contains(oddRoutes, plural) {
		prefixes, namespaces = append(prefixes, "watch/watch/"), append(namespaces, "namespaces//")
		tails = append(tails, "/", "/a/", "//a", "/a//", "/a:b", "/a/scale", "/a/finalize", "/a/proxy", "/a/status/more",
			"/a/unknown/more", "//status")
	}
	for _, prefix := range prefixes {
		for _, namespace := range namespaces {
			for _, tail := range tails {
				out = append(out, prefix+namespace+plural+tail)
			}
		}
	}
	if plural == "namespaces" {
		out = append(out, "namespaces/a/namespaces/b", "namespaces/a/namespaces/b/status",
			"namespaces/a/namespaces/b/finalize", "watch/namespaces/a/namespaces/b", "namespaces/b", "namespaces/b/status")
	}
	return out
}

// each calls f for each path, with several calls at a time.
func (s *routeServer) each(paths []string, f func(i int, path string)) {
	var all sync.WaitGroup
	next := make(chan int)
	for range 4 {
		all.Go(func() {
			for i := range next {
				f(i, paths[i])
			}
		})
	}
	for i := range paths {
		next <- i
	}
	close(next)
	all.Wait()
}

// record writes the server's codes to routeCodes.
func (s *routeServer) record(paths []string) {
	lines := make([]string, len(paths))
	s.each(paths, func(i int, path string) {
		line := path
		for _, method := range routeMethods {
			for _, name := range routeUsers {
				line += fmt.Sprintf(" %d", s.code(method, path, name))
			}
		}
		lines[i] = line
	})
	file, err := os.Create(routeCodes)
	require.NoError(s.t, err)
	w := gzip.NewWriter(file)
	_, err = io.WriteString(w, strings.Join(lines, "\n")+"\n")
	require.NoError(s.t, err)
	require.NoError(s.t, w.Close())
	require.NoError(s.t, file.Close())
	s.t.Logf("recorded %d requests", len(paths)*len(routeMethods)*len(routeUsers))
}

// readRouteCodes reads the recorded codes: for each path, the codes of each method for each user.
func readRouteCodes(t *testing.T) map[string][]int {
	file, err := os.Open(routeCodes)
	require.NoError(t, err)
	defer file.Close()
	r, err := gzip.NewReader(file)
	require.NoError(t, err)
	out := map[string][]int{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		path, rest, _ := strings.Cut(lines.Text(), " ")
		var codes []int
		for text := range strings.FieldsSeq(rest) {
			var code int
			_, err := fmt.Sscan(text, &code)
			require.NoError(t, err)
			codes = append(codes, code)
		}
		out[path] = codes
	}
	require.NoError(t, lines.Err())
	return out
}
