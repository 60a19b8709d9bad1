// Package request parses requests: path, query and body.
package request

import (
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

var infos = &apirequest.RequestInfoFactory{
	APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
}

// Info returns what the path and the method of a request say. For paths that name no resource,
// such as /api/v1/watch, the resource is empty: it is not found.
func Info(r *http.Request) *apirequest.RequestInfo {
	info, _ := infos.NewRequestInfo(r) // an error leaves the resource empty
	return info
}

// GVR returns the group, version and plural of the resource of a request.
func GVR(i *apirequest.RequestInfo) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: i.APIGroup, Version: i.APIVersion, Resource: i.Resource}
}
