package b

import "sigs.k8s.io/controller-runtime/pkg/client"

// An owner of all writes is enough.
func apply(c client.Client, obj any) error {
	return client.WithFieldOwner(c, "me").Apply(nil, obj)
}
