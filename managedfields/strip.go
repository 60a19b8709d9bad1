package managedfields

import "github.com/tenure-ssa/tenure/typed/fieldpath"

// unowned are the fields that identify an object or that its server fills in;
// no manager owns them (spec rule 2.7).
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

// Strip returns set without the fields of an object that nobody owns.
func Strip(set *fieldpath.Set) *fieldpath.Set { return set.Difference(unowned) }

// Unowned returns the paths that nobody comes to own by an apply that resets the
// paths of reset and all below them: what Strip takes away, and reset. None of reset
// has a longer one in it.
func Unowned(reset *fieldpath.Set) *fieldpath.Set {
	return unowned.RecursiveDifference(reset).Union(outermost(reset))
}

// outermost returns the paths of set that are below none of its paths.
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
