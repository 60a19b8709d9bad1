// Package process is the environment of a command: streams, clock, environment variables.
package process

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tenure-ssa/tenure/typed/openapi"
)

// Env is the environment of a command. Tests replace parts of it.
type Env struct {
	// Name is the name of the program, without its folder. As kubectl-tenure it is a
	// plugin, and its help calls it kubectl tenure.
	Name           string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Dir is the folder that relative paths start from; "" for the process's own.
	Dir string
	// Now is the clock; time.Now if nil. Like NewUID, it may be called from several
	// goroutines at once.
	Now func() time.Time
	// NewUID returns the uid of a new object; a random one if nil.
	NewUID func() string
	// Getenv reads the environment; os.Getenv if nil.
	Getenv func(string) string
	// Color is when to print colors: always, never, or auto, which is also "": on terminals, unless NO_COLOR
	// is set.
	Color string
	// CommandLine is the whole command, for a shell. Like Color, it is set from the arguments.
	CommandLine string
	// Completes says that a shell asks for completions. Like Color, it is set from the arguments.
	Completes bool
	// Terminal reports whether one of the three streams is a terminal; if nil, it asks
	// the operating system.
	Terminal func(stream any) bool
	// Context ends commands that run until they are interrupted; context.Background() if nil.
	Context context.Context
	// StoreTimeout limits the wait for a store that another process has open, or for an
	// etcd; 0 is the DefaultTimeout of their packages.
	StoreTimeout time.Duration
	// Server is the API server of the program; nil if it contains none.
	Server *Server
	// AllowPrivileged says whether Pods may have privileged containers, before there is an API server.
	AllowPrivileged func(allow bool)
	// HasHole says that NoteUnread was called. Like Color, it is set by Main.
	HasHole *atomic.Bool
}

// NoteUnread names something that could not be read, or that the server was not asked for, on stderr. The answer of the
// command has a hole then: its exit status is not 0. It is for what leaves an answer that is useful; else it is an error.
func (e *Env) NoteUnread(err error) {
	e.HasHole.Store(true)
	fmt.Fprintf(e.Stderr, "note: %v\n", err)
}

// Path returns a path of the user, relative to Dir.
func (e *Env) Path(given string) string {
	if e.Dir == "" || filepath.IsAbs(given) {
		return given
	}
	return filepath.Join(e.Dir, given)
}

// Relative returns a text with paths as the user wrote them, relative to Dir.
func (e *Env) Relative(text string) string {
	if e.Dir == "" {
		return text
	}
	return strings.ReplaceAll(text, e.Dir+"/", "")
}

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
