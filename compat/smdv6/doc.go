// Package smdv6 converts between the types of structured-merge-diff v6, which the
// interfaces of k8s.io/apimachinery are made of since Kubernetes 1.34, and Tenure's:
// path elements, paths, sets, filters, values and schemas. [Updater] does the
// writes of v6's merge.Updater with Tenure.
//
//	set, err := smdv6.FromSet(v6set)                  // *fieldpath.Set
//	filter, err := smdv6.FromFilter(v6filter)         // fieldpath.Filter
//	typ, err := smdv6.Type(v6schema, ref)             // *typed.Type
//
// Conversions are direct: nothing is encoded in between. A value of v6 that Tenure can't
// represent is an [*Error]; the rules are the same as in package smdv4.
//
// Tenure reads only the parts of schemas that merging needs. A nullable reference is like
// any other: a null is a value of every type.
//
// The other files of this package are made from the files of package smdv4 by
//
//	go test ./compat/smdv6/internal/twins -update
//
// and a test fails when they differ in more than the version. smdv4's tests run for this package, too.
package smdv6
