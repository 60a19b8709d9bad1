package recorded

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tenure-ssa/tenure/internal/folder"
	"github.com/tenure-ssa/tenure/internal/secrets"
)

// A Trace is the life of one object on a server.
type Trace struct {
	Name   string         `json:"name"`
	About  string         `json:"about"`
	Server string         `json:"server"`
	CRD    map[string]any `json:"crd,omitempty"`
	Steps  []Step         `json:"steps"`
}

// A Step is a request and its response.
type Step struct {
	Note    string `json:"note"`
	Request Asked  `json:"request"`
	// Now is the server's clock in RFC 3339; empty if the server wrote nothing.
	Now      string   `json:"now,omitempty"`
	Response Answered `json:"response"`
}

// Asked is a recorded request. If the method is CRD, the step sends no request: from this step on, the trace uses the
// CustomResourceDefinition in Body.
type Asked struct {
	Method      string `json:"method"`
	Path        string `json:"path"`
	Query       string `json:"query,omitempty"`
	ContentType string `json:"contentType,omitempty"`
	UserAgent   string `json:"userAgent,omitempty"`
	Body        any    `json:"body,omitempty"`
}

// Answered is a recorded response.
type Answered struct {
	Code     int            `json:"code"`
	Warnings []string       `json:"warnings,omitempty"`
	Body     map[string]any `json:"body,omitempty"`
}

// UnmarshalJSON decodes integers as int64.
func (r *Asked) UnmarshalJSON(data []byte) error {
	type plain Asked
	return unmarshalWhole(data, (*plain)(r), func(body any) { r.Body = body })
}

// UnmarshalJSON decodes integers as int64.
func (r *Answered) UnmarshalJSON(data []byte) error {
	type plain Answered
	return unmarshalWhole(data, (*plain)(r), func(body any) { r.Body, _ = body.(map[string]any) })
}

func unmarshalWhole(data []byte, into any, setBody func(any)) error {
	if err := json.Unmarshal(data, into); err != nil {
		return err
	}
	var tree map[string]any
	if err := utiljson.Unmarshal(data, &tree); err != nil {
		return err
	}
	setBody(tree["body"])
	return nil
}

// Load reads the traces at paths, sorted by path. Paths are files, or directories with .json files at any depth. The
// name of a trace is its path.
func Load(paths ...string) ([]*Trace, error) {
	files, err := folder.Files(paths, func(name string) bool { return filepath.Ext(name) == ".json" })
	if err != nil {
		return nil, err
	}
	return load(files, os.ReadFile)
}

// LoadFS reads the .json files of a file system, as Load does.
func LoadFS(files fs.FS) ([]*Trace, error) {
	var names []string
	err := fs.WalkDir(files, ".", func(name string, _ fs.DirEntry, err error) error {
		if path.Ext(name) == ".json" {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return load(names, func(name string) ([]byte, error) { return fs.ReadFile(files, name) })
}

func load(names []string, read func(string) ([]byte, error)) (out []*Trace, err error) {
	for _, name := range names {
		data, err := read(name)
		if err != nil {
			return nil, err
		}
		t := &Trace{}
		if err := json.Unmarshal(data, t); err != nil {
			err = secrets.Unreadable(err, 0, "requests and responses in JSON")
			return nil, fmt.Errorf("%s: not a trace: %w", name, err)
		}
		if len(t.Steps) == 0 {
			return nil, fmt.Errorf("%s: not a trace: no steps", name)
		}
		t.Name = name
		out = append(out, t)
	}
	return out, nil
}

// A Target is the resource and the object of a request.
type Target struct {
	Group, Version, Namespace, Resource, Name, Subresource string
}

// ParseTarget parses the path of a request, /api/v1/namespaces/N/RESOURCE/NAME/SUB or /apis/GROUP/VERSION/….
func ParseTarget(path string) (t Target, err error) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		t.Version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		t.Group, t.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return t, fmt.Errorf("path %q: expected /api/VERSION/… or /apis/GROUP/VERSION/…", path)
	}
	ofNamespace := len(parts) == 3 && (parts[2] == "status" || parts[2] == "finalize")
	if len(parts) >= 3 && parts[0] == "namespaces" && !ofNamespace {
		t.Namespace, parts = parts[1], parts[2:]
	}
	for i, into := range []*string{&t.Resource, &t.Name, &t.Subresource} {
		if i < len(parts) {
			if *into, err = url.PathUnescape(parts[i]); err != nil {
				return t, fmt.Errorf("path %q: %w", path, err)
			}
		}
	}
	return t, nil
}

// Collection returns the path of all objects of the resource in the namespace.
func (t Target) Collection() string {
	path := "/api/" + t.Version
	if t.Group != "" {
		path = "/apis/" + t.Group + "/" + t.Version
	}
	if t.Namespace != "" {
		path += "/namespaces/" + t.Namespace
	}
	return path + "/" + t.Resource
}

// Target returns the target of the request.
func (r *Asked) Target() (Target, error) { return ParseTarget(r.Path) }
