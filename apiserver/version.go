package apiserver

// KubernetesVersion returns the version of Kubernetes whose API a server serves, such as
// v1.36.3.
func KubernetesVersion() string { return gitVersion }
