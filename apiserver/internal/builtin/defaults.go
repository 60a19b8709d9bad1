package builtin

import "k8s.io/apimachinery/pkg/runtime"

// setDefaults sets the defaults of a built-in kind, in place.
func setDefaults(runtime.Object) {}
