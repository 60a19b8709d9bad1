package place

import (
	"context"
	"errors"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
)

// What a user confirmed is written to the object that was shown, at the version that was shown, or not at all. An apply
// has no way to say that its object must not exist: for an object that would be created, the server is asked again
// just before.

// AsShown returns an intent for the object of the target as it was read: if the server has another one, or another
// version of it, it responds with 409.
func (t *Target) AsShown(intent map[string]any) map[string]any {
	version := manifest.TextAt(t.Object, "resourceVersion")
	if version == "" {
		return intent
	}
	metadata, _ := intent["metadata"].(map[string]any)
	metadata, intent = maps.Clone(metadata), maps.Clone(intent)
	metadata["resourceVersion"], metadata["uid"] = version, manifest.TextAt(t.Object, "uid")
	intent["metadata"] = metadata
	return intent
}

// errCreated reports an object that was shown as one that an apply creates.
var errCreated = errors.New("the object did not exist when this was shown, and does now: run the command again")

// ApplyShown applies an intent to the object of a target as it was read. The error is [ErrStale] if it has changed, was
// deleted or created.
func ApplyShown(
	ctx context.Context, p Place, t *Target, intent map[string]any, o cluster.WriteOptions,
) (map[string]any, error) {
	if t.Object == nil {
		now := *t
		if err := p.Reload(ctx, &now); err == nil {
			return nil, errCreated
		} else if !errors.Is(err, cluster.ErrNotFound) {
			return nil, err
		}
	}
	object, err := p.Apply(ctx, t, t.AsShown(intent), o)
	if apierrors.IsConflict(err) && !isApplyConflict(err) {
		err = fmt.Errorf("%w, run the command again: %w", ErrStale, err)
	}
	return object, err
}
