package process

import (
	"context"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tenure-ssa/tenure/typed/openapi"
)

// Server is what a program that contains an API server adds to the command.
type Server struct {
	// Commands make the commands that run a server.
	Commands []func(*Env) *cobra.Command
	// Program returns the program to run under a name, or nil for the command itself.
	Program func(name string) func(*Env, []string) int
	// OpenStore opens a store. Without Env.Server, there are none.
	OpenStore func(e *Env, file string, missing MissingStore) (Store, error)
}

// Store is an API server of this process on the objects in a file, without a listener. Close closes the file too.
type Store interface {
	// LoopbackConfig leads to the server.
	LoopbackConfig() *rest.Config
	// Define serves the kind of a definition without storing the definition. Its types are those of the schema if nil.
	Define(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, types *openapi.Registry) error
	// Resources returns the resources of which objects are stored, in the order of their keys.
	Resources() ([]Resource, error)
	Close() error
}

// A Resource is a resource of which objects are stored.
type Resource struct {
	Group, Plural string // the group is empty for the core group
	Namespaced    bool
	First         string // the key of the first object
	Kind          metav1.TypeMeta
}

// MissingStore says what OpenStore does if the file does not exist.
type MissingStore int

const (
	CreateStore MissingStore = iota // create it
	EmptyStore                      // use an empty store in memory, for commands that only read
	NoStore                         // return an error
)
