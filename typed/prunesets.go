package typed

import (
	"errors"
	"fmt"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// ownedWithout returns own(P0) in the definition of [Type.Prune]: what is left in v without all that last owned.
func (p *pruner) ownedWithout(t *Type, v any, last owned) owned {
	tree := p.plain(v)
	candidates := t.WithDeclared(p.set(last))
	return owned{set: t.WithDeclared(t.FieldSet(t.RemoveToNull(tree, candidates)))}
}

// listBySets removes what is gone from a list by the definition of [Type.Prune]. There, own(P0) has nothing below the
// list, or is among the owners.
func (p *pruner) listBySets(
	t *Type, v any, dropped *fieldpath.Set, last owned, owners []owned, swallowed bool, depth int,
) any {
	own := func(v any) *fieldpath.Set {
		_, below := t.fieldSet(v, depth)
		return t.WithDeclared(below)
	}
	tree := p.plain(v)
	gone := own(tree)
	if !swallowed {
		kept := make([]*fieldpath.Set, len(owners))
		for i := range owners {
			kept[i] = p.set(owners[i])
		}
		left := t.RemoveToNull(tree, gone.Difference(t.WithDeclared(fieldpath.UnionOf(kept...))))
		gone = gone.Difference(own(left))
	}
	gone = gone.Intersection(t.WithDeclared(p.set(last))).Intersection(around(dropped))
	if gone.Empty() {
		return v
	}
	p.tookOwned = true // it may be
	return t.Remove(tree, gone)
}

// around returns the paths of set and all that they begin with: the places that the walk visits.
func around(set *fieldpath.Set) *fieldpath.Set {
	return set.Rewrite(func(_ fieldpath.Element, e fieldpath.Entry) fieldpath.Entry {
		return fieldpath.Entry{Member: true, Below: around(e.Below)}
	})
}

var errTooLarge = fmt.Errorf("more than %d values, or nested deeper than %d", MaxValues, MaxDepth)

// plain returns a value as a plain tree; nothing if there is an error, with which [Type.Prune] ends. The plain
// operations rely on the limits, which nobody has asked for here.
func (p *pruner) plain(v any) any {
	left := MaxValues
	tree, err := plainWithin(v, 0, &left)
	p.err = errors.Join(p.err, err)
	return tree
}

// plainWithin copies the maps and lists that a merge has put around Containers.
func plainWithin(v any, depth int, left *int) (any, error) {
	if *left--; *left < 0 || depth > MaxDepth {
		return nil, errTooLarge
	}
	var err error
	switch x := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(x))
		for name, child := range x {
			if out[name], err = plainWithin(child, depth+1, left); err != nil {
				return nil, err
			}
		}
		return out, nil
	case []any:
		out := make([]any, len(x))
		for i, child := range x {
			if out[i], err = plainWithin(child, depth+1, left); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return plainTree(v)
}

// set returns what a cursor points at as a set.
func (p *pruner) set(o owned) *fieldpath.Set {
	if o.tree == nil {
		return o.set
	}
	set, err := fieldpath.FromTree(o.tree, fieldpath.Lenient)
	p.err = errors.Join(p.err, err)
	return set
}
