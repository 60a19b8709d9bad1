// Package kinds knows the built-in kinds of every version.
package kinds

import (
	_ "embed"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
)

// empty has a line for each kind: the API version, the kind, and the zero value of its Go type in JSON. The Go types
// themselves would be all of k8s.io/api: a cluster may have a version that the server of this command does not serve,
// and a release has no Go types for alpha and beta versions. go test -update writes it.
//
//go:embed empty.txt
var empty string

// Empty returns an object of a built-in kind before it is created: the zero value of its Go type, with
// its kind. It returns nil for custom resources and other kinds without a Go type in client-go.
func Empty(kind schema.GroupVersionKind) runtime.Object {
	_, rest, found := strings.Cut(empty, "\n"+prefix(kind))
	if !found {
		return nil
	}
	line, _, _ := strings.Cut(rest, "\n")
	obj := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(line), &obj.Object); err != nil {
		panic(fmt.Sprintf("empty.txt: %s: %v", kind, err)) // a bug: the file is a part of the program
	}
	obj.SetGroupVersionKind(kind)
	return obj
}

// prefix is what the line of a kind begins with.
func prefix(kind schema.GroupVersionKind) string {
	return kind.GroupVersion().String() + " " + kind.Kind + " "
}
