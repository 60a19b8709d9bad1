package managedfields

import "github.com/tenure-ssa/tenure/typed/fieldpath"

// unowned are the fields that identify an object or that its server sets; no manager owns them (spec rule 2.7).
var unowned = fieldpath.NewSet(
	fieldpath.Fields("apiVersion"),
	fieldpath.Fields("kind"),
	fieldpath.Fields("metadata"),
	fieldpath.Fields("metadata", "name"),
	fieldpath.Fields("metadata", "namespace"),
	fieldpath.Fields("metadata", "creationTimestamp"),
	fieldpath.Fields("metadata", "selfLink"),
	fieldpath.Fields("metadata", "uid"),
	fieldpath.Fields("metadata", "clusterName"),
	fieldpath.Fields("metadata", "generation"),
	fieldpath.Fields("metadata", "managedFields"),
	fieldpath.Fields("metadata", "resourceVersion"),
)

// Strip returns set without the fields that nobody owns.
func Strip(set *fieldpath.Set) *fieldpath.Set { return set.Difference(unowned) }

// Unowned returns the paths that no apply comes to own if reset are the reset fields: those that [Strip] removes, and
// reset. Only the outermost paths of reset are kept.
func Unowned(reset *fieldpath.Set) *fieldpath.Set {
	return unowned.RecursiveDifference(reset).Union(outermost(reset))
}

// outermost returns the paths of set that are not below another path of set.
func outermost(set *fieldpath.Set) *fieldpath.Set {
	return set.Rewrite(func(_ fieldpath.Element, e fieldpath.Entry) fieldpath.Entry {
		if e.Member {
			e.Below = nil
		} else {
			e.Below = outermost(e.Below)
		}
		return e
	})
}
