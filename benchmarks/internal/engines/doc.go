// Package engines puts Tenure and upstream, k8s.io/apimachinery's own field
// manager, behind one interface, so that one body of code can be timed over both.
//
// Each is set up as a server sets it up, and where there is a choice as the one
// that is cheaper for upstream: converting to an object's own version costs
// nothing and copies nothing, and there are no defaults.
package engines
