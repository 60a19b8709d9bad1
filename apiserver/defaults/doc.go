// Package defaults sets the defaults of Kubernetes' built-in kinds, as kube-apiserver's Go code does. The OpenAPI
// documents contain only a few of them.
//
//	defaults.Set(&pod)                        // a Go struct, in place
//	tree, err := defaults.Tree(gvk, tree)     // a tree, as a server decodes it
//	plans.Options{Defaults: true, Semantics: typed.Canonical(nil), Defaulter: defaults.Of(gvk),
//		Prepare: defaults.PrepareOf(gvk)}
//
// With these options, plans are true for built-in kinds: live and the merged object are compared as a server stores
// them, with all defaults, below atomic lists too, and without what the Go type leaves out, such as an empty value of
// an environment variable.
//
// The defaults are those of one version of Kubernetes (openapi.KubernetesVersion). They are compared with
// k8s.io/kubernetes' own by the oracle of apiserver/internal/builtin, for random objects of every kind. APIServices
// and CustomResourceDefinitions, whose Go types are in other modules than k8s.io/api, are not here.
package defaults
