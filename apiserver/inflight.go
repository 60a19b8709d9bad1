package apiserver

import (
	"net/http"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiserver/pkg/authentication/user"
)

// A load is a number of requests in flight and the size of their bodies.
type load struct {
	requests int
	bytes    int64 // of bodies, by Content-Length: a body without a length has the maximum size
}

func (l load) plus(m load) load { return load{l.requests + m.requests, l.bytes + m.bytes} }

func (l load) isWithin(most load) bool { return l.requests <= most.requests && l.bytes <= most.bytes }

// share divides each limit: one user may use 1/share of it.
const share = 4

// inFlight limits the requests in flight of all users together, and of each user. A user may use 1/share of each limit,
// so that a single user with slow bodies or long watches can't use up a limit. If a single request needs more than
// 1/share, the user may have only this one request in flight.
type inFlight struct {
	most   load
	mu     sync.Mutex
	all    load
	byUser map[string]load
}

func newInFlight(most load) *inFlight { return &inFlight{most: most, byUser: map[string]load{}} }

// enter adds a request of a user, and returns a function that removes it; ok is false if the request exceeds a limit.
func (f *inFlight) enter(as user.Info, added load) (leave func(), ok bool) {
	name := tenantOf(as)
	f.mu.Lock()
	defer f.mu.Unlock()
	most := load{max(f.most.requests/share, 1), max(f.most.bytes/share, added.bytes)}
	if !f.all.plus(added).isWithin(f.most) || !f.byUser[name].plus(added).isWithin(most) {
		return nil, false
	}
	f.add(name, added)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.add(name, load{-added.requests, -added.bytes})
	}, true
}

func (f *inFlight) add(name string, added load) {
	f.all = f.all.plus(added)
	if f.byUser[name] = f.byUser[name].plus(added); f.byUser[name] == (load{}) {
		delete(f.byUser, name)
	}
}

// tenantOf returns the name under which a request is counted. This is the user or, for a ServiceAccount, its namespace:
// a user who may create one ServiceAccount in a namespace may create many.
func tenantOf(as user.Info) string {
	const prefix = "system:serviceaccount:"
	if namespace, ok := strings.CutPrefix(as.GetName(), prefix); ok {
		namespace, _, _ = strings.Cut(namespace, ":")
		return prefix + namespace
	}
	return as.GetName()
}

// isUnlimited reports whether a request is exempt from limits: a request of an administrator, or a health check without
// a body.
func isUnlimited(as user.Info, r *http.Request) bool {
	if slices.Contains(as.GetGroups(), user.SystemPrivilegedGroup) {
		return true
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	return r.ContentLength == 0 && slices.Contains([]string{"healthz", "livez", "readyz"}, first)
}
