package conflicts

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Way is a way out of a conflict.
type Way uint8

// The ways out. The zero Way takes nothing from anybody and changes nothing.
const (
	// GiveUp leaves the field out of the intent: their value stays, and so do they.
	GiveUp Way = iota
	// Share puts their value into the intent: both own the field from then on.
	Share
	// Force keeps the field in the intent as it is, which takes it from its owners.
	Force
)

var ways = [...]string{GiveUp: "give-up", Share: "share", Force: "force"}

func (w Way) String() string {
	if int(w) < len(ways) {
		return ways[w]
	}
	return fmt.Sprintf("Way(%d)", uint8(w))
}

// MarshalText returns what String does: give-up, share or force.
func (w Way) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (w *Way) UnmarshalText(text []byte) error {
	for i, name := range ways {
		if name == string(text) {
			*w = Way(i)
			return nil
		}
	}
	return fmt.Errorf("no way out of a conflict: expected give-up, share or force, got %.40q", text)
}

// Loss is what one manager loses when a conflict is forced.
type Loss struct {
	// Owner is the manager, and Version the API version of its entry.
	Owner      managedfields.Key
	APIVersion string
	// Fields are what it owns no longer.
	Fields *fieldpath.Set
}

// Losses returns what the owners lose when the conflicts are forced, by owner, in
// the fixed order.
func (c Conflicts) Losses() []Loss {
	places := map[managedfields.Key]int{}
	var out []Loss
	var paths [][]fieldpath.Path
	for i := range c {
		at, met := places[c[i].Owner]
		if !met {
			at = len(out)
			places[c[i].Owner] = at
			out = append(out, Loss{Owner: c[i].Owner, APIVersion: c[i].APIVersion})
			paths = append(paths, nil)
		}
		paths[at] = append(paths[at], c[i].Path)
	}
	for i := range out {
		out[i].Fields = fieldpath.NewSet(paths[i]...)
	}
	return out
}

// WayOut is one way out of all conflicts of an apply, ready to be taken: apply
// Intent in the place of what was applied, with Force.
type WayOut struct {
	Way Way `json:"way"`
	// Intent is what to apply. It shares memory with the intent that conflicted.
	Intent *unstructured.Unstructured `json:"intent"`
	// Force is whether the apply has to be forced.
	Force bool `json:"force"`
	// Losses are what others lose by it.
	Losses []Loss `json:"losses,omitempty"`
}

// Report is all that a person, or a program that asks one, needs in order to
// decide about the conflicts of one apply. Its Status is that of the conflicts.
type Report struct {
	// Object names the object, such as deployment.apps/nginx.
	Object string
	// Manager is the one that applied.
	Manager string
	// Conflicts are why it could not.
	Conflicts Conflicts
	// Ways are the ways out; they may be left out.
	Ways []WayOut
}
