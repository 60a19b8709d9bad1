// Package oracle compares Tenure with upstream, k8s.io/apimachinery's field manager: it makes random types and random
// sequences of writes from the bytes of a fuzzer, and makes each write with both engines on the same live object. It is
// for tests only.
package oracle
