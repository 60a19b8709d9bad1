// Package strategic implements strategic merge patch in time proportional to the size of the
// object and the patch.
//
//	merged, err := strategic.Merge(ctx, live, patch, schema)
//
// The result is that of k8s.io/apimachinery's strategicpatch, with which tests compare it;
// Schema is that package's type. strategicpatch searches lists linearly for each item and each
// comparison of a sort: a patch that reverses 10,000 items takes it most of a minute. This
// package looks items up by their merge keys.
//
// Differences: null in a list, and a map or list as merge key, are errors instead of panics. A
// patch with both $deleteFromPrimitiveList/x and x deletes first, not in random order. Errors
// do not contain whole lists.
package strategic
