// Package kinds has the zero values of built-in kinds of all versions.
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

// empty has a line for each kind: its API version, its kind, and the zero value of its Go type in JSON. The Go types
// themselves would link all of k8s.io/api. They would also not be enough: a cluster may have versions that the server
// of this command does not serve, and released programs have no Go types for alpha and beta versions. The command
// go test -update writes the file.
//
//go:embed empty.txt
var empty string

// Empty returns the zero value of a built-in kind's Go type, with its kind. It returns nil for custom resources and
// other kinds without a Go type in client-go.
func Empty(kind schema.GroupVersionKind) runtime.Object {
	_, rest, found := strings.Cut(empty, "\n"+prefix(kind))
	if !found {
		return nil
	}
	line, _, _ := strings.Cut(rest, "\n")
	obj := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(line), &obj.Object); err != nil {
		panic(fmt.Sprintf("empty.txt: %s: %v", kind, err)) // a bug: the file is embedded
	}
	obj.SetGroupVersionKind(kind)
	return obj
}

// prefix is the prefix of a kind's line.
func prefix(kind schema.GroupVersionKind) string {
	return kind.GroupVersion().String() + " " + kind.Kind + " "
}
