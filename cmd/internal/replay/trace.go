// Package replay replays recorded traces of kube-apiserver: for each write, the engine must have the same
// managed fields and conflicts, and the same object as far as the engine decides it.
package replay

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/tenure-ssa/tenure/apiserver/recorded"
)

// Trace is the life of objects on a server, Step one request and its response.
type (
	Trace = recorded.Trace
	Step  = recorded.Step
)

// Load reads the traces at paths: files, or folders with .json files at any depth. They are sorted by
// path, which is their name.
func Load(paths ...string) ([]*Trace, error) { return recorded.Load(paths...) }

// target is the parsed path of a request.
type target struct {
	group, version, namespace, plural, name, subresource string
}

func (r target) gv() string {
	if r.group == "" {
		return r.version
	}
	return r.group + "/" + r.version
}

// parsePath parses /api/v1/namespaces/N/PLURAL/NAME/SUB or /apis/GROUP/VERSION/….
func parsePath(path string) (r target, err error) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		r.version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		r.group, r.version, parts = parts[1], parts[2], parts[3:]
	default:
		return r, fmt.Errorf("path %q: expected /api/VERSION/… or /apis/GROUP/VERSION/…", path)
	}
	ofNamespace := len(parts) == 3 && (parts[2] == "status" || parts[2] == "finalize")
	if len(parts) >= 3 && parts[0] == "namespaces" && !ofNamespace {
		r.namespace, parts = parts[1], parts[2:]
	}
	for i, into := range []*string{&r.plural, &r.name, &r.subresource} {
		if i < len(parts) {
			if *into, err = url.PathUnescape(parts[i]); err != nil {
				return r, err
			}
		}
	}
	return r, nil
}
