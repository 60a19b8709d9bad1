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

	"github.com/tenure-ssa/tenure/internal/planning/place"
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
	// IsIncomplete says that NoteUnread was called. Like Color, it is set by Main.
	IsIncomplete *atomic.Bool
}

// NoteUnread names something that could not be read, or that was not sent to the server, on stderr. The output of the
// command is then incomplete, and its exit status is not 0. If the output would be useless, return an error instead.
func (e *Env) NoteUnread(err error) {
	e.IsIncomplete.Store(true)
	fmt.Fprintf(e.Stderr, "note: %v\n", err)
}

// Path returns a path of the user, relative to Dir.
func (e *Env) Path(given string) string {
	if e.Dir == "" || filepath.IsAbs(given) {
		return given
	}
	return filepath.Join(e.Dir, given)
}

// RootVariable is the variable with the folder that all inputs have to be in. The Action sets it, because a pull
// request may add links to any file of the runner.
const RootVariable = "TENURE_ROOT"

// CheckInside returns an error for a file that is outside of the folder of RootVariable once its links are followed.
func (e *Env) CheckInside(path string) error {
	if e.Getenv == nil || e.Getenv(RootVariable) == "" {
		return nil
	}
	root, err := filepath.EvalSymlinks(e.Getenv(RootVariable))
	if err != nil {
		return fmt.Errorf("%s: %w", RootVariable, err)
	}
	file, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil // there is nothing to read
	}
	if file, err = filepath.Abs(file); err == nil {
		if within, err := filepath.Rel(root, file); err == nil && filepath.IsLocal(within) {
			return nil
		}
	}
	return fmt.Errorf("%s: not read, because it leads out of %s", e.Relative(path), root)
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
	OpenStore func(e *Env, file string, missing MissingStore) (place.Server, error)
}

// MissingStore says what OpenStore does if the file does not exist.
type MissingStore int

const (
	CreateStore MissingStore = iota // create it
	EmptyStore                      // use an empty store in memory, for commands that only read
	NoStore                         // return an error
)
