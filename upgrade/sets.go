package upgrade

import (
	"github.com/tenure-ssa/tenure/internal/fieldsets"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// follow adds to moved each container in the set all whose content is entirely in moved. If such a container stayed
// with its old owner, an unwanted empty list or map would stay in the object.
//
//	all    f:annotations: {., f:a}   f:labels: {., f:x, f:y}
//	moved  f:annotations: {f:a}      f:labels: {f:x}
//	⇒      f:annotations: {., f:a}   f:labels: {f:x}
func follow(all, moved *fieldpath.Set) *fieldpath.Set {
	return fieldsets.Rewrite(all, func(elem fieldpath.Element, entry fieldpath.Entry) fieldpath.Entry {
		member, below := moved.At(elem)
		below = follow(entry.Below, below)
		isWhole := entry.Member && !below.IsEmpty() && below.Equal(entry.Below)
		return fieldpath.Entry{Member: member || isWhole, Below: below}
	})
}

// halves returns the items of keyed lists that both mine and other contain, and in which sole has fields. sole is the
// part of mine that nobody else owns. If the owner of mine drops such an item, the item remains without these fields.
//
// It walks other and not mine, because callers may compare the same large mine with many small sets.
func halves(mine, other, sole *fieldpath.Set) *fieldpath.Set {
	return fieldsets.Rewrite(other, func(elem fieldpath.Element, entry fieldpath.Entry) fieldpath.Entry {
		ours, below := mine.At(elem)
		_, solely := sole.At(elem)
		isHalf := elem.IsKey() && ours && entry.Member && solely != nil
		return fieldpath.Entry{Member: isHalf, Below: halves(below, entry.Below, solely)}
	})
}

// RestartedAt returns the path of the annotation that kubectl rollout restart sets in the Pod template of a workload,
// for Also in ServerSideOptions. If the annotation does not move, no apply can remove it, because an Update entry owns
// it. If it moves, the next apply removes it, which changes the template and restarts the Pods once.
func RestartedAt() *fieldpath.Set {
	return fieldpath.NewSet(
		fieldpath.NewPath("spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt"))
}
