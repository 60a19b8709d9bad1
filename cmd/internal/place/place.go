// Package place reads and writes objects where they are: in files, in a store, or in a cluster. A store is a
// cluster whose API server runs in this process.
package place

import (
	"context"
	"errors"

	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
)

// Place is where live objects are: files, a store, or a cluster. Move, Apply and Reload of different
// targets may run at the same time; the others may not.
type Place interface {
	// String returns the name of the place for messages.
	String() string
	// Live returns the target of an intent, and the intent with its namespace. The object
	// of the target is nil if it does not exist.
	Live(ctx context.Context, intent map[string]any) (*Target, map[string]any, error)
	// Prefetch reads the live objects of intents, many at once, for the calls of Live that follow.
	Prefetch(ctx context.Context, intents []map[string]any, concurrency int)
	// Find returns the objects of a selection. It may return some along with an error.
	Find(ctx context.Context, s Selection) ([]*Target, error)
	// Candidates returns the objects that could be pruned. It may return some along with an error.
	Candidates(ctx context.Context, c Candidates) ([]*Target, error)
	// Reload reads a target again.
	Reload(ctx context.Context, t *Target) error
	// Move stores the result of a move. The error is [ErrStale] if the object has changed
	// since it was read.
	Move(ctx context.Context, t *Target, m Moved) error
	// Apply applies an intent to a target.
	Apply(ctx context.Context, t *Target, intent map[string]any, o cluster.WriteOptions) (map[string]any, error)
	// Update replaces the object of a target, or creates it.
	Update(ctx context.Context, t *Target, tree map[string]any, o cluster.WriteOptions) (map[string]any, error)
	// Defined is called after a CustomResourceDefinition was written: the documents after it can use its kind. In a dry
	// run, it was not stored.
	Defined(tree map[string]any, isDryRun bool) error
	// Define adds or replaces a kind that the input defines.
	Define(d *Definition)
	// InOrder reports whether only the documents after a definition can use its kind.
	InOrder() bool
	Close() error
}

// ErrStale reports that an object has changed since a move was computed.
var ErrStale = errors.New("the object has changed since it was read")

// Selection selects objects.
type Selection = cluster.Selection
