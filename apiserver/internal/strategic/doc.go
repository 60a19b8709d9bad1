// Package strategic merges strategic merge patches, as the Kubernetes documentation
// describes them, in a time that follows the size of the object and the patch.
//
//	merged, err := strategic.Merge(ctx, live, patch, schema)
//
// The result is that of k8s.io/apimachinery's package strategicpatch, which the tests run
// beside it; the schema, which says how lists merge, is that package's. It looks for each
// item of a list from the list's start, and again for each comparison while sorting: a
// patch that reverses 10,000 entries takes it most of a minute. Here items are looked up
// by their merge keys.
//
// What differs: a list with null in it, and a merge key that is a map or a list, are errors
// and no panic; a patch with $deleteFromPrimitiveList/x and x deletes first, not in a random
// order; errors do not repeat whole lists.
package strategic
