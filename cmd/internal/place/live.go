package place

import (
	"errors"
	"fmt"

	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
)

// checkSameObject returns an error if a document is not for the object live.
func checkSameObject(live, given map[string]any) error {
	if live == nil {
		return nil
	}
	have, err := manifest.GVKOf(live)
	if err != nil {
		return fmt.Errorf("live object: %w", err)
	}
	want, err := manifest.GVKOf(given)
	if err != nil {
		return err
	}
	if have.GroupKind() != want.GroupKind() {
		return fmt.Errorf(".kind: the live object is a %s, the document a %s", have.GroupKind(), want.GroupKind())
	}
	for _, name := range []string{"name", "namespace"} {
		have, want := manifest.TextAt(live, name), manifest.TextAt(given, name)
		if have != want && have != "" && want != "" {
			return fmt.Errorf(".metadata.%s: the live object's is %q, the document's %q", name, have, want)
		}
	}
	if live["metadata"] == nil {
		return nil
	}
	if _, ok := live["metadata"].(map[string]any); !ok {
		return errors.New("live object: .metadata: expected an object")
	}
	return nil
}
