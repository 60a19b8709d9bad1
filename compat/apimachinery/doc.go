// Package apimachinery is k8s.io/apimachinery/pkg/util/managedfields on Tenure, for hosts
// that call that package today: API servers, fakes and clients. They change an import.
//
//	import managedfields "github.com/tenure-ssa/tenure/compat/apimachinery"
//	...
//	types, err := managedfields.NewTypeConverter(models, false)
//	m, err := managedfields.NewDefaultFieldManager(types, scheme, scheme, scheme, kind, hub, "", resetFields)
//	obj, err := m.Apply(live, applied, "my-controller", false)
//
// Every function has upstream's parameters, of upstream's types: type converters of any
// kind, filters, paths and parseable types of structured-merge-diff v6. Constructors take
// options of package fieldmanager after them. A new host has no need of this package:
// package fieldmanager is the same engine without the hub version and the three interfaces
// of package runtime.
//
// # What is the same
//
// Objects come and go at the hub version: Go structs or unstructured, of internal
// types without an API version too. They are converted to the version of the
// request, always, and what was merged is converted back and given its defaults
// in between. Entries of other versions are compared by way of the hub. Update changes the
// managed fields of the object that it is given. Who owns what, what is in conflict, and
// what is stored is upstream's, but for what doc/differences.md lists.
//
// # What is not
//
//   - An Update that fails leaves the new object as it was. live is never changed. What
//     Apply returns shares no memory with live.
//   - Where an entry can't be compared, because its version is gone or the
//     converter fails, the write goes on and the entry stays; Warnings of
//     fieldmanager.Options tells the host.
//   - FieldManager and ScaleHandler are types of this package.
//
// doc/embedding.md says what is new and what is not the same.
package apimachinery
