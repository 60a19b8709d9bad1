// Package conformance checks server-side apply of any API server: it sends the recorded writes of testdata/traces, and
// compares the responses with those of kube-apiserver. A difference is reported by the rule of doc/spec.md that it
// breaks.
//
// Every trace runs in a namespace of its own. What differs between two servers that are both right is not compared:
// generated values, the text of errors, and fields of built-in kinds that nobody ever owned in the trace, which are
// defaults of one version of Kubernetes. A trace ends with its first step that differs, since later ones depend on it.
package conformance
