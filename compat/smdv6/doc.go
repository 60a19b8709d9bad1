// Package smdv6 converts path elements, paths, sets, filters, values and schemas between Tenure's types and the types
// of structured-merge-diff v6. Since Kubernetes 1.34, the interfaces of k8s.io/apimachinery use v6. [Updater]
// implements v6's merge.Updater with Tenure.
//
//	set, err := smdv6.FromSet(v6set)                  // *fieldpath.Set
//	filter, err := smdv6.FromFilter(v6filter)         // fieldpath.Filter
//	typ, err := smdv6.Type(v6schema, ref)             // *typed.Type
//
// Conversions are direct, without an encoding in between. A value of v6 that Tenure can't represent is an [*Error]; the
// rules are the same as in package smdv4.
//
// Tenure uses only the parts of schemas that merging needs. It treats a nullable reference like any other, because
// every type allows null.
//
// The other files of this package are generated from the files of package smdv4 by
//
//	go test ./compat/smdv6/internal/twins -update
//
// and a test fails if they differ in more than the version. The tests of smdv4 also run for this package.
package smdv6
