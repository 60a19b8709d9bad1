// Package controllerruntime has a client for controllers that wraps the one of a manager: it skips applies that would
// change nothing, decides conflicts by a policy, moves what earlier releases updated to the Apply entry, and counts.
//
//	c, err := controllerruntime.NewClient(mgr.GetClient(), controllerruntime.Options{
//		Config: mgr.GetConfig(), Cache: mgr.GetCache(), Metrics: metrics.Registry,
//		Resolve:     rules.Resolve,        // a policy.Policy: .spec.replicas are given up
//		UpgradeFrom: []string{"widgets"}, // what CreateOrUpdate wrote in the last release
//	})
//	...
//	err = c.Apply(ctx, appsv1apply.Deployment(name, namespace).WithSpec(...), client.FieldOwner("widgets"))
//	err = c.Status().Apply(ctx, status, client.FieldOwner("widgets"))
//
// test/examples/controller is a whole controller. The client is a client.Client, and returns what the server would:
// code that applies stays as it is.
//
// # Skips
//
// An apply is skipped if the server itself responded to the same intent with the same object before, and nothing has
// changed since that its response depends on: the object, its definition, webhooks and policies for it. So the first
// apply after a change is sent, and one more, to which the server responds with the object as it is; then none, until
// something changes. A cache that lags behind does no harm as long as the controller watches what it applies.
//
// The call says who the manager is: client.FieldOwner, or client.WithFieldOwner around this client. One that is set
// below, as by client.Options.FieldOwner, is not seen, so that everything is sent.
//
// # Caches
//
// The cache reads a kind of the client's scheme as a Go struct, and others as unstructured objects. If it strips
// managed fields (cache.TransformStripManagedFields), an apply is skipped as long as the cached object has the
// resourceVersion that the server responded with; a dry run is sent, since the response to it has managed fields.
//
// # Metrics
//
//	tenure_applies_total             applies by kind, dry_run and result: skipped, or why they were sent
//	tenure_updates_total             updates with Options.MinimalUpdates by result: patched, unchanged, or why whole
//	tenure_apply_conflicts_total     applies with a conflict, by result: resolved or returned
//	tenure_apply_differences_total   applies of Options.Shadow to which the server responded with another object
//	tenure_upgrades_total            objects with fields that moved to the Apply entry
package controllerruntime
