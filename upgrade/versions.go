package upgrade

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// versions has the types of a kind, and converts objects between its versions.
type versions struct {
	types     fieldmanager.Types
	converter fieldmanager.Converter
}

// typeOf returns the type of o's kind at a version.
func (v versions) typeOf(o object, version string) (*typed.Type, error) {
	kind := o.at(version)
	if v.types != nil {
		if t, err := v.types.Type(kind); err == nil {
			return t, nil
		}
	}
	return nil, fmt.Errorf("%s: %w", kind, ErrNoType)
}

// at returns o at a version, as a tree without managed fields.
func (v versions) at(o object, version string) (object, error) {
	if o.version() == version {
		return o, nil
	}
	if v.converter == nil {
		return object{}, fmt.Errorf("%s to %s: %w", o.version(), version, ErrNoConverter)
	}
	given := &unstructured.Unstructured{Object: o.tree}
	converted, err := v.converter.Convert(context.Background(), given, o.at(version).GroupVersion())
	if err != nil {
		return object{}, fmt.Errorf("converting to %s: %w", version, err)
	}
	out, err := read(converted)
	if err == nil && (out.version() != version || out.kind() != o.kind()) {
		err = fmt.Errorf("expected %s %s, got %s %s", version, o.kind(), out.version(), out.kind())
	}
	if err != nil {
		return object{}, fmt.Errorf("converter: %w", err)
	}
	return out, nil
}

// translate returns the paths of set, of o at version from, that name the same field
// at version to: something is there in both, of one shape, and of one value if it is
// a scalar. Fields that have another place there are not found; they are left to
// their owner, which is better than to guess.
func (v versions) translate(o object, set *fieldpath.Set, from, to string) (*fieldpath.Set, error) {
	if from == to {
		return set, nil
	}
	var found [2][]any // what is at each path, in the order of set; nil for nothing
	for i, version := range []string{from, to} {
		at, err := v.at(o, version)
		if err != nil {
			return nil, err
		}
		t, err := v.typeOf(o, version)
		if err != nil {
			return nil, err
		}
		var finder typed.Finder
		for _, values := range finder.Pairs(t, set, at.tree, at.tree) {
			found[i] = append(found[i], values[0])
		}
	}
	var paths []fieldpath.Path
	i := 0
	for p := range set.All() {
		if before, after := found[0][i], found[1][i]; before != nil && after != nil && sameShape(before, after) {
			paths = append(paths, slices.Clone(p))
		}
		i++
	}
	return fieldpath.NewSet(paths...), nil
}

func sameShape(a, b any) bool {
	switch a.(type) {
	case map[string]any:
		_, ok := b.(map[string]any)
		return ok
	case []any:
		_, ok := b.([]any)
		return ok
	}
	return typed.Equal(a, b)
}
