// Package oracle compares Tenure with upstream, k8s.io/apimachinery's own field
// manager: it makes random types and random sequences of writes out of the bytes
// of a fuzzer, and has both do each write on the same live object. It is for
// tests only.
package oracle
