// Package apimachinery has the functions of k8s.io/apimachinery/pkg/util/managedfields,
// with the same arguments where they mean the same, for hosts that call those
// today: API servers and clients.
//
//	types, err := apimachinery.NewTypeConverter(models, false)
//	...
//	m, err := apimachinery.NewDefaultFieldManager(types, scheme, scheme, scheme, kind, hub, "", nil)
//	...
//	obj, err := m.Apply(live, applied, "my-controller", false)
//
// A new host has no need of it: package fieldmanager is the same engine without
// the hub version and the three interfaces of package runtime.
//
// # What is the same
//
// Objects come and go at the hub version: Go structs or unstructured, of internal
// types without an API version too. They are converted to the version of the
// request, always, and what was merged is converted back and given its defaults
// in between. Entries of other versions are compared by way of the hub. Who owns
// what, what is in conflict, and what is stored is upstream's, but for what
// doc/differences.md lists.
//
// # What is not
//
//   - Nothing that a function is given is changed. Upstream's Update empties the
//     managed fields of the new object, and sets others; here the caller must
//     store what Update returns. That may share memory with the new object. What
//     Apply returns shares none with live.
//   - Where an entry can't be compared, because its version is gone or the
//     converter fails, the write goes on and the entry stays; WithWarnings of
//     package fieldmanager tells the host.
//   - A type converter is a fieldmanager.Types, which knows kinds and no objects.
//
// doc/drop-in.md goes through the functions one by one.
package apimachinery
