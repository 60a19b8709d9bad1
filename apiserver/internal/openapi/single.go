package openapi

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// readable are the media types of discovery documents.
var readable = []string{runtime.ContentTypeJSON, runtime.ContentTypeYAML, runtime.ContentTypeProtobuf}

// single is a path with a get operation only.
func single(name, text, id, tag, model string, types []string) *path {
	return &path{path: name, operations: []*operation{{
		method: "get", description: text, id: id, tags: []string{tag},
		consumes: types, produces: types, answer: model, codes: map[int]string{200: ok},
	}}}
}

func resourcesPath(gv schema.GroupVersion) *path {
	tag, prefix := names(gv)
	return single(rootOf(gv)+"/", "get available resources", "get"+prefix+"APIResources", tag,
		metaModels+"APIResourceList", builtinTypes)
}

func groupPath(group string) *path {
	tag, prefix := names(schema.GroupVersion{Group: group})
	if group == "" {
		return single("/api/", "get available API versions", "get"+prefix+"APIVersions", tag, metaModels+"APIVersions",
			readable)
	}
	return single("/apis/"+group+"/", "get information of a group", "get"+prefix+"APIGroup", tag, metaModels+"APIGroup",
		readable)
}

func groupsPath() *path {
	return single("/apis/", "get available API versions", "getAPIVersions", "apis", metaModels+"APIGroupList", readable)
}

func versionPath() *path {
	return single("/version/", "get the version information for this server", "getCodeVersion", "version",
		"io.k8s.apimachinery.pkg.version.Info", []string{runtime.ContentTypeJSON})
}

// describePath returns the description of a path without resources.
func describePath(p *path) (*description, error) {
	d := &description{schemas: map[string]tree{}, paths: []*path{p}}
	return d, complete(d.schemas, d.paths)
}
