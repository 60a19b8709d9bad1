// Package builder has what the analyzers look at.
package builder

import "sigs.k8s.io/controller-runtime/pkg/client"

type Builder struct{}

func (b *Builder) For(obj client.Object) *Builder { return b }
