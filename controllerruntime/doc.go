// Package controllerruntime has a client for controllers that wraps the client of a manager. It skips applies that
// would change nothing, decides conflicts by a policy, moves fields from the Update entries of the controller's earlier
// releases to its Apply entry, and exports metrics.
//
//	c, err := controllerruntime.NewClient(mgr.GetClient(), controllerruntime.Options{
//		Config: mgr.GetConfig(), Cache: mgr.GetCache(), Metrics: metrics.Registry,
//		Resolve:     rules.Resolve,        // rules is a policy.Policy that gives up .spec.replicas
//		UpgradeFrom: []string{"widgets"}, // what CreateOrUpdate wrote in the last release
//	})
//	...
//	err = c.Apply(ctx, appsv1apply.Deployment(name, namespace).WithSpec(...), client.FieldOwner("widgets"))
//	err = c.Status().Apply(ctx, status, client.FieldOwner("widgets"))
//
// test/examples/controller is a complete controller. The client is a client.Client, and returns what the server would
// return, so code that calls Apply does not change.
//
// # Skips
//
// An apply is skipped if the server itself returned the same object for the same intent before, and if everything that
// the response depends on is unchanged since: the object, its CustomResourceDefinition, and the webhooks and policies
// for it. So after a change, applies are sent until the server returns the object unchanged, usually for the second
// apply. Further applies are skipped until something changes. A stale cache does no harm as long as the controller
// watches the objects that it applies.
//
// Pass the field owner with the call (client.FieldOwner), or wrap this client with client.WithFieldOwner. This client
// does not see a field owner that only the client below it has, for example from client.Options.FieldOwner. It then
// sends every apply.
//
// # Caches
//
// The cache stores an object as a Go struct if the client's scheme has its kind, otherwise unstructured. If the cache
// strips managed fields (cache.TransformStripManagedFields), an apply is skipped as long as the cached object has the
// resourceVersion of the server's response. Dry runs are then always sent, because a cached object without managed
// fields can't show whether a dry run would change these.
//
// # Metrics
//
//	tenure_applies_total             applies by kind, dry_run and result: skipped, or why they were sent
//	tenure_updates_total             updates (Options.MinimalUpdates) by result: patched, unchanged, or why sent whole
//	tenure_apply_conflicts_total     applies with a conflict, by result: resolved or returned
//	tenure_apply_differences_total   applies sent by Options.Shadow: the response was not the object that a skip returns
//	tenure_upgrades_total            objects with fields that moved to the Apply entry
package controllerruntime
