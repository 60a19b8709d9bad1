// Package conformance checks the engine against every Go type of the Kubernetes
// API: that typed objects, read in place, are the same JSON values that upstream
// makes of them, and that writes to them come to the same as writes to
// unstructured objects. It checks package upgrade against csaupgrade of client-go,
// too. It has tests only.
package conformance
