// Package smdv6 converts between the types of structured-merge-diff v6, which the
// interfaces of k8s.io/apimachinery are made of since Kubernetes 1.34, and Tenure's:
// path elements, paths, sets, filters, values and schemas. [Updater] answers what v6's
// merge.Updater does, by Tenure.
//
//	set, err := smdv6.FromSet(v6set)                  // *fieldpath.Set
//	filter, err := smdv6.FromFilter(v6filter)         // fieldpath.Filter
//	typ, err := smdv6.Type(v6schema, ref)             // *typed.Type
//
// Conversions are direct: nothing is encoded in between. What v6 can hold and Tenure
// can't is an [*Error]; the rules are those of package smdv4.
//
// Of the schemas, Tenure reads what merging needs. A reference that is nullable is as
// any other: a null is a value of every type.
//
// The other files of this package are made of those of package smdv4 by
//
//	go test ./compat/smdv6/internal/twins -update
//
// and a test fails when they differ in more than the version. smdv4's tests run for this package, too.
package smdv6
