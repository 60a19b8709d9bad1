package typed

import (
	"maps"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// entries walks a granular map, of which applied has at least one entry.
//
// It visits the entries of applied, each with the value that live has under its name and with the member that last has
// of it. What it gathers is allocated only when there is something to gather:
//
//	merged   a copy of live, from the first entry that changes; what applied does not mention is copied, not visited
//	below    the deltas of entries that change, or whose owners change
//	met      how many members of last were met
//
// met shows whether anything was dropped, without a look at what: if as many members were met as last has, nothing was.
// Otherwise [walk.dropUnmet] finds which. For example, last {f:a, f:b} and applied {a: 1, c: 2}: a is met and c is
// gained, so met is 1 of 2, and b was dropped.
//
// Inside of what is never owned, such as metadata.name, the walk is blind: values are merged and compared, but owners
// are not looked at. By canonical semantics an empty list is as good as none: live then keeps its spelling
// ([place.keepLive]), and the manager owns the field all the same.
func (w *walk) entries(
	m *Map, live any, applied map[string]any, last owned, unowned *fieldpath.Set, depth int,
) (p place, ok bool) {
	if w.left -= len(applied); w.left < 0 {
		return p, false
	}
	created := isMissing(live) || live == nil // every entry is new, and applied itself is the merged map
	plain := asMap(live)
	var merged map[string]any // live with what changes, once something does
	var below *deltas
	met := 0 // members of last that were met
	for name, a := range applied {
		t, declared := m.field(name)
		if t == nil || len(name) > fieldpath.MaxElement {
			return p, false
		}
		l := missing
		if plain != nil {
			if v, has := plain[name]; has {
				l = v
			}
		} else if !created {
			l = entryOrMissing(live, name, a)
		}
		never, rest := unowned.At(fieldpath.Field(name)) // never: the place itself is never owned
		outer := w.blind
		w.blind = outer || never && rest.Empty()
		sub, was := w.findField(last, name)
		if w.stale {
			return p, false
		}
		guess := w.guessing
		if guess != nil {
			w.guessing = guess.at(fieldpath.Field(name))
		}
		child, ok := w.value(t, l, a, sub, rest, depth+1)
		w.guessing = guess
		blind := w.blind
		if w.blind = outer; !ok {
			return p, false
		}
		if child.changed && w.Semantics != nil && w.isAbsent(m, name, l, a, depth) {
			child.keepLive()
		}
		if child.changed && !created {
			if merged == nil {
				merged = cloneEntries(live, len(applied))
			}
			merged[name] = child.merged
		}
		var gained, dropped bool
		if !blind {
			if was {
				met++
			}
			own := !never && (child.leaf || !declared || isEmptyValue(a))
			if was && !child.moved && own == sub.isMember() {
				p.count++ // what member would do, of most fields: last has no member that owns nothing
			} else {
				gained, dropped = w.member(&p, &child, last, sub, was, own, name)
			}
		}
		if child.delta != nil || gained || dropped {
			below = below.with(fieldpath.Field(name), child.delta, gained, dropped)
		}
	}
	if met != last.count() && !w.dropUnmet(&p, &below, last, appliesEntry(applied, unowned)) {
		return p, false
	}
	if created {
		merged = applied
	}
	if merged != nil {
		p.merged, p.changed = merged, true
	}
	if below != nil || created {
		p.delta = below.result(w.Compare && isMissing(live))
	}
	return p, true
}

// entryOrMissing returns the entry called name of a live map that is no plain tree. applied is what is applied there:
// most entries are texts that stay as they are, which are not read out of a [Container].
func entryOrMissing(live any, name string, applied any) any {
	if text, isText := applied.(string); isText {
		if c, isContainer := live.(Container); isContainer && c.HasText(name, text) {
			return applied
		}
	}
	v, ok := entryOf(live, name)
	if !ok {
		return missing
	}
	return v
}

// appliesEntry returns a function that reports whether applied has the entry of an element, and may own something in
// it.
func appliesEntry(applied map[string]any, unowned *fieldpath.Set) func(e fieldpath.Element, _ string) bool {
	return func(e fieldpath.Element, _ string) bool {
		name, isField := e.Field()
		if _, ok := applied[name]; !ok || !isField {
			return false
		}
		never, rest := unowned.At(e)
		return !never || !rest.Empty()
	}
}

// member puts what is owned of a field into p: the child below it and, if own, the field
// itself. sub is what last has of it, if it was there. It returns whether the field
// itself came to be owned (where last is a set), or to be owned no more.
//
//	last has        applied             p.fields has
//	f:a: {}         a: 1                nothing of a: it did not move
//	nothing         a: 1                f:a: {}              gained
//	f:a: {}         a: {b: 1}           f:a: {f:b: {}}       dropped: a struct is not owned itself
//	f:a: {f:b: {}}  a: null             f:a: {}              gained; below, b is dropped
//	f:a: {}         a: [], granular     no f:a               dropped: an empty list owns nothing
func (w *walk) member(p, child *place, last, sub owned, was, own bool, name string) (gained, dropped bool) {
	wasOwn := was && sub.isMember()
	isOwned := own || child.count > 0
	if isOwned {
		p.count++
	}
	if was == isOwned && wasOwn == own && !child.moved {
		return false, false
	}
	p.moved = true
	if !w.sets && (was || isOwned) {
		if p.fields == nil {
			p.fields = cloneFor(last.tree, p.count)
		}
		if isOwned {
			p.fields["f:"+name] = child.fieldsV1(sub.tree, own)
		} else {
			delete(p.fields, "f:"+name)
		}
	}
	return w.sets && own && !wasOwn, wasOwn && !own
}

// fieldsV1 returns the member of a FieldsV1 that says what is owned at a place, itself
// included if own; was is the one before, which is not changed. {} is a place that is owned itself, with nothing below
// it; only if there is something below it, the mark "." says whether the place itself is owned, too.
func (p *place) fieldsV1(was map[string]any, own bool) map[string]any {
	if p.count == 0 {
		return map[string]any{}
	}
	out := p.fields
	if out == nil {
		out = maps.Clone(was)
	}
	if own {
		out["."] = map[string]any{}
	} else {
		delete(out, ".")
	}
	return out
}

// isAbsent reports whether what applied has of an entry counts as absent, and live has
// no more.
func (w *walk) isAbsent(m *Map, name string, live, applied any, depth int) bool {
	if isMissing(live) {
		return w.Semantics.asAbsent(m, name, applied, depth)
	}
	tree, err := plainTree(live)
	return err == nil && w.Semantics.bothAbsent(m, name, tree, applied, depth)
}

// keepLive makes p a place at which live does not change; what is owned there stays
// as it is.
func (p *place) keepLive() {
	p.changed, p.merged = false, nil
	if d := p.delta; d != nil {
		p.delta = &delta{gained: d.gained, dropped: d.dropped}
	}
}

// cloneEntries returns a copy of a live map that has room for at least n entries.
func cloneEntries(live any, n int) map[string]any {
	if plain, ok := live.(map[string]any); ok {
		return cloneFor(plain, n)
	}
	out := make(map[string]any, n)
	for name, v := range live.(Container).Entries() {
		out[name] = v
	}
	return out
}

// cloneFor returns a copy of m that has room for at least n entries.
func cloneFor(m map[string]any, n int) map[string]any {
	if len(m) >= n {
		return maps.Clone(m) // which is faster
	}
	out := make(map[string]any, n)
	maps.Copy(out, m)
	return out
}
