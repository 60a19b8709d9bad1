// Package apimachinery provides the API of k8s.io/apimachinery/pkg/util/managedfields with Tenure's engine, for hosts
// that use that package today: API servers, fakes and clients. To use it, such a host only changes an import.
//
//	import managedfields "github.com/tenure-ssa/tenure/compat/apimachinery"
//	...
//	types, err := managedfields.NewTypeConverter(models, false)
//	m, err := managedfields.NewDefaultFieldManager(types, scheme, scheme, scheme, kind, hub, "", resetFields)
//	obj, err := m.Apply(live, applied, "my-controller", false)
//
// Every function has upstream's parameters with upstream's types: type converters of any kind, and filters, paths and
// parseable types of structured-merge-diff v6. Constructors also accept options of package fieldmanager. A new host
// does not need this package: package fieldmanager is the same engine without the hub version and without the three
// interfaces of package runtime.
//
// # What is the same
//
// Live, new and resulting objects have the hub version; an intent has the version of the request. Objects are Go
// structs or unstructured, including internal types without an API version. Live and new objects are always converted
// to the version of the request; the merged object gets its defaults and is converted back to the hub version. Entries
// of other versions are compared through the hub. Update changes the managed fields of the new object. Owners,
// conflicts and stored objects are the same as upstream's, except as listed in doc/differences.md.
//
// # What differs
//
//   - An Update that fails does not change the new object. live is never changed. The result of Apply shares no memory
//     with live.
//   - If an entry can't be compared, because its version no longer exists or the converter fails, the write succeeds
//     and the entry is kept; the host gets a warning (Warnings in fieldmanager.Options).
//   - FieldManager and ScaleHandler are types of this package.
//
// doc/embedding.md lists all differences.
package apimachinery
