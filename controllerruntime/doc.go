// Package controllerruntime applies intents with a controller-runtime client, and sends a request
// only when an apply would change something.
//
//	applies, err := controllerruntime.New(mgr.GetClient(), controllerruntime.Options{
//		Config:  mgr.GetConfig(),
//		Manager: "widgets",
//		Reader:  mgr.GetAPIReader(),
//		Resolve: rules.Resolve, // a policy.Policy: .spec.replicas are given up
//	})
//	...
//	result, err := applies.Apply(ctx, appsv1apply.Deployment(name, namespace).WithSpec(...))
//	result, err = applies.Apply(ctx, status, "status")
//
// An intent is a typed apply configuration of client-go, or an unstructured one
// (client.ApplyConfigurationFromUnstructured). It is planned on the object that the client's cache
// has: Go structs are read as they are. Package fieldmanager/applier says what is skipped and what is
// sent, and why a cache that lags behind does no harm as long as the controller watches what it
// applies.
//
// # Caches
//
// The client reads a kind of its scheme as a Go struct, and others as unstructured objects. By default
// controller-runtime caches unstructured objects only when told to
// (client.CacheOptions.Unstructured): without it, each apply of such a kind costs a GET.
//
// Plans need the managed fields. A cache that strips them (cache.TransformStripManagedFields) makes
// every plan come to a change, so that nothing is skipped.
//
// # Schemas
//
// The schemas are those that the server publishes as OpenAPI v3. They are read once for each group,
// and looked at again after Options.Refresh. An intent for which there is no schema is sent without a
// plan.
//
// # Dry runs
//
// [WrapClient] and [DryRuns] answer dry runs of applies from a cache.
package controllerruntime
