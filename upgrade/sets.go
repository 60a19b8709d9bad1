package upgrade

import (
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// heldBy returns what an intent holds: what it would own, and the containers in it
// that are not in empty, which an update owns too that makes them (spec rules 4.1 to
// 4.3 and 5.5).
func heldBy(t *typed.Type, empty, intent map[string]any) *fieldpath.Set {
	made := t.Compare(empty, intent).Changed()
	return managedfields.Strip(made.Union(t.FieldSet(intent)))
}

// below returns the paths of set that are in roots, or below one of them.
func below(set, roots *fieldpath.Set) *fieldpath.Set {
	return set.Difference(set.RecursiveDifference(roots))
}

// follow returns moved with the containers of all in which all has something, and of
// which moved has everything. A container without its content would keep an empty
// list or map alive that nobody wants.
//
//	all    f:annotations: {., f:a}   f:labels: {., f:x, f:y}
//	moved  f:annotations: {f:a}      f:labels: {f:x}
//	⇒      f:annotations: {., f:a}   f:labels: {f:x}
func follow(all, moved *fieldpath.Set) *fieldpath.Set {
	var b fieldpath.Builder
	for elem, entry := range all.Level() {
		member, sub := moved.At(elem)
		sub = follow(entry.Below, sub)
		if entry.Member && !sub.Empty() && sub.Equal(entry.Below) {
			member = true
		}
		b.Add(elem, member, sub)
	}
	return b.Set()
}

// shown returns the paths of set that a person wants to see: leaves, and items and
// entries as a whole where whole says that everything in them goes along.
func shown(set *fieldpath.Set, whole bool) *fieldpath.Set {
	var b fieldpath.Builder
	for elem, entry := range set.Level() {
		if entry.Below == nil || whole && entry.Member && elem.Kind() != fieldpath.KindField {
			b.Add(elem, entry.Member, nil)
			continue
		}
		b.Add(elem, false, shown(entry.Below, whole))
	}
	return b.Set()
}

// halves returns the items of keyed lists that both mine and other own, in which
// sole has something: what mine has and nobody else. Given up by mine, such an item
// would stay and lose that.
//
// It walks down other alone, since many others may be compared with one mine.
func halves(mine, other, sole *fieldpath.Set) *fieldpath.Set {
	var b fieldpath.Builder
	for elem, entry := range other.Level() {
		ours, below := mine.At(elem)
		_, solely := sole.At(elem)
		half := elem.Kind() == fieldpath.KindKey && ours && entry.Member && solely != nil
		b.Add(elem, half, halves(below, entry.Below, solely))
	}
	return b.Set()
}

// RestartedAt returns the path of the annotation that kubectl rollout restart leaves
// in the Pod template of a workload, for Also of ServerSideOptions. No apply can
// remove it otherwise, client-side or server-side: it belongs to an update.
//
// Removing it changes the template, so that the next apply restarts the Pods once.
func RestartedAt() *fieldpath.Set {
	return fieldpath.NewSet(fieldpath.Fields("spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt"))
}
