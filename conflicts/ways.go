package conflicts

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Way is a way out of a conflict.
type Way uint8

// The ways out. The zero Way takes no fields from anybody and changes nothing.
const (
	// GiveUp removes the field from the intent: the live value and its owners remain.
	GiveUp Way = iota
	// Share puts the live value into the intent: both managers own the field.
	Share
	// Force keeps the field in the intent, and takes it from its owners.
	Force
)

var ways = [...]string{GiveUp: "give-up", Share: "share", Force: "force"}

func (w Way) String() string {
	if int(w) < len(ways) {
		return ways[w]
	}
	return fmt.Sprintf("Way(%d)", uint8(w))
}

// MarshalText returns give-up, share or force.
func (w Way) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (w *Way) UnmarshalText(text []byte) error {
	for i, name := range ways {
		if name == string(text) {
			*w = Way(i)
			return nil
		}
	}
	return fmt.Errorf("no way out of a conflict: expected give-up, share or force, got %.40q", text)
}

// Loss is what one manager loses if the conflicts are forced.
type Loss struct {
	// Owner is the manager, and APIVersion the group version of its entry.
	Owner      managedfields.Key
	APIVersion string
	// Fields are the fields that it loses.
	Fields *fieldpath.Set
}

// Losses returns what each owner loses if the conflicts are forced, in the order of the conflicts.
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

// WayOut is one way out of all conflicts of an apply: apply Intent instead of the intent that conflicted, with Force.
type WayOut struct {
	Way Way `json:"way"`
	// Intent is the intent to apply. It shares memory with the intent that conflicted.
	Intent *unstructured.Unstructured `json:"intent"`
	// Force is whether the apply must be forced.
	Force bool `json:"force"`
	// Losses are what others lose.
	Losses []Loss `json:"losses,omitempty"`
}

// Report is everything that a person, or a program that asks one, needs to decide about the conflicts of one apply.
type Report struct {
	// Object names the object, such as deployment.apps/nginx.
	Object string
	// Manager is the manager that applied.
	Manager string
	// Conflicts are the conflicts; there may be none.
	Conflicts Conflicts
	// Ways are the ways out, if they are known.
	Ways []WayOut
}
