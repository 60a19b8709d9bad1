// Package place knows where objects are: in files, in a store, or in a cluster. A store is a
// cluster whose API server runs in this process.
package place

import (
	"context"
	"errors"

	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
)

// Place is where live objects are: files, a store, or a cluster.
type Place interface {
	// String names it for a person.
	String() string
	// Live returns the object that an intent is about, and the intent with what the
	// place fills in. The object of the target is nil when there is none.
	Live(ctx context.Context, intent map[string]any) (*Target, map[string]any, error)
	// Find returns the objects that were asked for; some may come with an error.
	Find(ctx context.Context, s Selection) ([]*Target, error)
	// Again reads a target once more.
	Again(ctx context.Context, t *Target) error
	// Move stores what a move made of a target. The error is [ErrStale] when the
	// object has changed in the meantime.
	Move(ctx context.Context, t *Target, m Moved) error
	// Apply applies an intent to a target.
	Apply(ctx context.Context, t *Target, intent map[string]any, o cluster.WriteOptions) (map[string]any, error)
	// Define makes a kind known that the input defines, in the place of what is known
	// of it.
	Define(d *Definition)
	// InOrder reports whether a definition is known only to the documents behind it.
	InOrder() bool
	Close() error
}

// ErrStale says that an object is not any more what a move was made from.
var ErrStale = errors.New("the object has been changed in the meantime")

// Selection says which objects are meant.
type Selection struct {
	Args      []string
	Selector  string
	Namespace string
	All       bool
}
