// Package engine is Tenure as a patched kube-apiserver has it: field managers in one of three
// modes, and the decoder of intents.
//
// The patches of package main in hosts/kube-apiserver call it. It names no type that only the
// patched modules have, so that it is built and tested with the published ones.
package engine
