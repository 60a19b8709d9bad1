package openapi

import (
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenure-ssa/tenure/apiserver/internal/builtin"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// Subresources that connect to something, and the logs of a Pod. Their responses are text of any type.

// connects reports whether a subresource connects to something: its kind is that of options.
func connects(s *resources.Subresource) bool {
	return s.Kind.GroupVersion() == corev1.SchemeGroupVersion && strings.HasSuffix(s.Kind.Kind, "Options")
}

// connect returns the paths of a subresource that connects to something.
func (a *author) connect(s *resources.Subresource, item, scope string, inPath []parameter) []*path {
	obj, err := builtin.SchemeOf(s.Kind.Group).New(s.Kind)
	if err != nil {
		panic("openapi: bug: " + err.Error()) // connects has found the kind
	}
	options := reflect.ValueOf(obj).Elem().Interface().(documented)
	parameters := slices.Concat(optionParameters(options), []parameter{nameParameter(s.Kind.Kind)}, inPath)
	if s.Name != "proxy" {
		return []*path{a.connectPath(s, item+"/"+s.Name, scope, "", []string{"get", "post"}, parameters)}
	}
	methods := []string{"get", "put", "post", "delete", "options", "head", "patch"}
	below := append(slices.Clone(parameters),
		parameter{name: "path", in: "path", typ: "string", description: "path to the resource"})
	return []*path{
		a.connectPath(s, item+"/proxy", scope, "", methods, parameters),
		a.connectPath(s, item+"/proxy/{path}", scope, "WithPath", methods, below),
	}
}

func (a *author) connectPath(
	s *resources.Subresource, name, scope, suffix string, methods []string, parameters []parameter,
) *path {
	slices.SortFunc(parameters, compareParameters)
	p := &path{path: name, parameters: parameters}
	for _, method := range methods {
		p.operations = append(p.operations, &operation{
			method: method, action: "connect", tags: []string{a.tag}, kind: &s.Kind,
			id: "connect" + a.prefix + identifier(method, true) +
				identifier(scope+a.r.Kind+identifier(s.Name, true)+suffix, true),
			description: "connect " + strings.ToUpper(method) + " requests to " + s.Name + " of " + a.r.Kind,
			consumes:    []string{"*/*"}, produces: []string{"*/*"}, codes: map[int]string{200: ok},
		})
	}
	return p
}

// log returns the path of a Pod's logs.
func (a *author) log(item, scope string, inPath []parameter) *path {
	o := a.operation("get", "log", "get", "get", "read", scope, "")
	o.description = a.phrase("read", "log", " the specified ")
	o.answer, o.produces = "", slices.Concat([]string{"text/plain"}, builtinTypes)
	p := a.path(item+"/log", slices.Concat(optionParameters(corev1.PodLogOptions{}), []parameter{nameParameter(a.r.Kind)},
		inPath), o)
	return p
}
