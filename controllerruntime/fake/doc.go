// Package fake tracks objects for the fake clients of tests. It manages fields like an API server: server-side apply
// has conflicts, removals and managed fields. Built-in kinds are merged by their schemas, and custom resources are
// merged by their CustomResourceDefinitions.
//
// For client-go, use NewClientset of package kubernetesfake in place of client-go's function. [React] makes any other
// generated clientset, and the fake dynamic client, respond from a tracker:
//
//	converter, err := fake.NewTypeConverter(definitions...)
//	tracker := fake.NewFieldManagedObjectTracker(scheme, codecs.UniversalDecoder(), converter)
//	c := myfake.NewSimpleClientset()
//	fake.React(&c.Fake, tracker)
//
// For controller-runtime's client:
//
//	c := fake.NewClientBuilder().WithScheme(scheme).WithObjectTracker(tracker).WithReturnManagedFields().Build()
//
// # Rules
//
//   - The tracker is client-go's, but creates, updates, patches and applies set managed fields, both in the stored
//     object and in the caller's object, as with testing.NewFieldManagedObjectTracker of client-go.
//   - A write reads and stores in one step, so that concurrent applies lose nothing.
//   - Dry runs are not stored.
//   - With [React], an apply to the status has its own entry, and changes nothing except the status. A tracker alone
//     does not know subresources: it tracks a write to the status as a write to the main resource.
//   - There are no defaults, no validation and no conversion between versions. Package apiserver has a server with all
//     of these.
package fake
