// Package process has the environment of a command: streams, clock, and environment variables.
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

// Env is the environment of a command. Tests replace some of its fields.
type Env struct {
	// Name is the name of the program, without its folder. If it is kubectl-tenure, the program is a kubectl plugin,
	// and its help calls it kubectl tenure.
	Name           string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Dir is the folder for relative paths; "" for the process's working directory.
	Dir string
	// Now is the clock; time.Now if nil. Now and NewUID may be called concurrently.
	Now func() time.Time
	// NewUID returns a UID for a new object; random if nil.
	NewUID func() string
	// Getenv reads environment variables; os.Getenv if nil.
	Getenv func(string) string
	// Color says when to print colors: always, never, or auto. With auto or "", colors are printed on terminals, unless
	// NO_COLOR is set.
	Color string
	// CommandLine is the complete command line, quoted for a shell. Like Color, it is set from the arguments.
	CommandLine string
	// Completes is true if a shell asks for completions. Like Color, it is set from the arguments.
	Completes bool
	// Terminal reports whether a stream (Stdin, Stdout or Stderr) is a terminal; if nil, the operating system is asked.
	Terminal func(stream any) bool
	// Context stops commands that run until they are interrupted; context.Background() if nil.
	Context context.Context
	// StoreTimeout limits the wait for a store that another process has open, or for an etcd; 0 means DefaultTimeout
	// of the respective package.
	StoreTimeout time.Duration
	// Server provides the API server of the program; nil if the program contains none.
	Server *Server
	// AllowPrivileged sets whether Pods may have privileged containers. It must be called before an API server
	// starts.
	AllowPrivileged func(allow bool)
	// IsIncomplete is true after a call of NoteUnread. Like Color, it is set by Main.
	IsIncomplete *atomic.Bool
}

// NoteUnread prints to stderr what could not be read or was not sent to the server. The output of the command is then
// incomplete, and its exit status is not 0. If the remaining output would be useless, return an error instead.
func (e *Env) NoteUnread(err error) {
	e.IsIncomplete.Store(true)
	fmt.Fprintf(e.Stderr, "note: %v\n", err)
}

// Path returns the path of a file that the user named. A relative path is relative to Dir.
func (e *Env) Path(given string) string {
	if e.Dir == "" || filepath.IsAbs(given) {
		return given
	}
	return filepath.Join(e.Dir, given)
}

// RootVariable is the environment variable for a folder that must contain all inputs. The GitHub Action sets it,
// because a pull request may add symbolic links to any file of the runner.
const RootVariable = "TENURE_ROOT"

// CheckInside returns an error if a file, after symbolic links are followed, is outside of the folder that
// RootVariable names.
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
		return nil // the file does not exist
	}
	if file, err = filepath.Abs(file); err == nil {
		if within, err := filepath.Rel(root, file); err == nil && filepath.IsLocal(within) {
			return nil
		}
	}
	return fmt.Errorf("%s: not read, because it leads out of %s", e.Relative(path), root)
}

// Relative returns a text with paths in Dir as the user wrote them, relative to Dir.
func (e *Env) Relative(text string) string {
	if e.Dir == "" {
		return text
	}
	return strings.ReplaceAll(text, e.Dir+"/", "")
}

// Server has the functions of a program that contains an API server.
type Server struct {
	// Commands create the commands that run a server.
	Commands []func(*Env) *cobra.Command
	// Program returns the program that runs under a name; nil for the command itself.
	Program func(name string) func(*Env, []string) int
	// OpenStore opens a store. Programs without Env.Server have no stores.
	OpenStore func(e *Env, file string, missing MissingStore) (place.Server, error)
}

// MissingStore says what OpenStore does if the file of the store does not exist.
type MissingStore int

const (
	CreateStore MissingStore = iota // create it
	EmptyStore                      // use an empty store in memory, for commands that only read
	NoStore                         // return an error
)
