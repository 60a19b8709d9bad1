package conflicts

import "fmt"

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
