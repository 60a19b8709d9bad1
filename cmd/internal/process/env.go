// Package process holds what a command touches of its process: streams, clock, environment.
package process

import (
	"context"
	"io"
	"path/filepath"
	"time"
)

// Env is the world of a command.
type Env struct {
	// Name is what the command was called: the program's name, without its folder.
	// As kubectl-tenure it is a plugin, and calls itself kubectl tenure.
	Name           string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Dir is the folder that relative paths start from; "" for the process's own.
	Dir string
	// Now is the clock; time.Now when nil. As NewUID, it may be called from several
	// goroutines at once.
	Now func() time.Time
	// NewUID makes the uid of an object that is created; random ones when nil.
	NewUID func() string
	// Getenv reads the environment; os.Getenv when nil.
	Getenv func(string) string
	// Terminal reports whether a stream, one of the three, is a terminal; when nil,
	// files are that are one.
	Terminal func(stream any) bool
	// Context ends what runs until it is interrupted; context.Background() when nil.
	Context context.Context
	// StoreTimeout is how long to wait for a store that another process has
	// open, or for an etcd; their packages' DefaultTimeout for 0.
	StoreTimeout time.Duration
}

// Path returns where a path that the user gave is.
func (e *Env) Path(given string) string {
	if e.Dir == "" || filepath.IsAbs(given) {
		return given
	}
	return filepath.Join(e.Dir, given)
}

// Paths returns where paths that the user gave are.
func (e *Env) Paths(given []string) []string {
	out := make([]string, len(given))
	for i, path := range given {
		out[i] = e.Path(path)
	}
	return out
}
