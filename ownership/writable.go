package ownership

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// SubresourceError reports a field that an entry for a subresource can't own, because writes through the subresource
// do not set the field.
type SubresourceError struct {
	Path fieldpath.Path
	// Subresource is the subresource of the entry; "" is the main resource.
	Subresource string
	// Expected is a subresource through which writes set the field. If none is known, it equals Subresource.
	Expected string
}

func (e *SubresourceError) Error() string {
	text := fmt.Sprintf("%s: can't be owned through %s", e.Path, resource(e.Subresource))
	if e.Expected != e.Subresource {
		text += ", only through " + resource(e.Expected)
	}
	return text
}

// resource returns the name of a subresource for use in sentences.
func resource(subresource string) string {
	if subresource == "" {
		return "the main resource"
	}
	return fmt.Sprintf("%q", subresource)
}

// checkWritable returns a [SubresourceError] if fields has fields that writes through a subresource reset. It returns
// nil if the version is not known.
func (e *Edit) checkWritable(fields *fieldpath.Set, version, subresource string) error {
	for path := range fields.Difference(e.writable(fields, version, subresource)).Leaves().All() {
		err := &SubresourceError{Path: slices.Clone(path), Subresource: subresource, Expected: subresource}
		for _, other := range e.subresources() {
			if e.writable(fieldpath.NewSet(path), version, other).Has(path) {
				err.Expected = other
				break
			}
		}
		return err
	}
	return nil
}

// subresources returns "" for the main resource, status, and the subresources in Writes of the Mover.
func (e *Edit) subresources() []string {
	out := []string{"", "status"}
	for _, name := range slices.Sorted(maps.Keys(e.writes())) {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// writes returns Writes of the Mover for the kind.
func (e *Edit) writes() map[string]fieldpath.Filter {
	if e.mover.Writes == nil {
		return nil
	}
	return e.mover.Writes(e.Kind.GroupKind())
}

// writable returns the paths of fields that writes through a subresource set.
func (e *Edit) writable(fields *fieldpath.Set, version, subresource string) *fieldpath.Set {
	if only := e.writes()[subresource]; only != nil {
		fields = only.Filter(fields)
	}
	m, err := e.Manager(version, subresource)
	if err != nil {
		return fields
	}
	if reset := m.Options().ResetFields[version]; reset != nil {
		return reset.Filter(fields)
	}
	return fields
}
