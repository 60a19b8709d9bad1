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

// Unowned returns the fields that no manager owns.
func Unowned() *fieldpath.Set { return unowned }
