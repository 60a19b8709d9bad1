package apiserver

import (
	"context"
	"fmt"
	"path"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericfilters "k8s.io/apiserver/pkg/server/filters"

	"github.com/tenure-ssa/tenure/apiserver/internal/custom"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// Storage prefixes whose writes change what the server does.
var (
	namespacePrefix = resources.PrefixOf(schema.GroupResource{Resource: "namespaces"})
	pluginsPrefix   = resources.PrefixOf(schema.GroupResource{Group: admissionregistrationv1.GroupName})
	rbacPrefix      = resources.PrefixOf(schema.GroupResource{Group: rbacv1.GroupName})
	rolesPrefix     = rbacPrefix + "clusterroles"
)

// handleWrite is called after every write to the storage of the object with this name, before the response. So a custom
// resource is served when the client gets the response for its definition.
func (s *Server) handleWrite(ctx context.Context, prefix, name string) {
	dir, plural := path.Split(prefix)
	ctx = context.WithoutCancel(ctx)
	switch {
	case resources.IsOwn(ctx):
	case prefix == custom.Prefix:
		// The status of the definition reports what is wrong with it. If the storage fails, the follower tries again.
		_ = s.definitions.Reload(ctx, name)
	case dir == pluginsPrefix && !s.options.DisableDynamicAdmission:
		// If the storage fails, the follower tries again.
		_ = s.plugins.Reload(ctx, plural, name)
	case prefix == namespacePrefix:
		s.handleNamespaceWrite(ctx, name)
	case prefix == rolesPrefix:
		s.handleClusterRoleWrite(ctx)
	}
	if o, ok := s.options.Authorizer.(Observer); ok && dir == rbacPrefix {
		o.Written(ctx, rbacv1.GroupName, plural)
	}
}

// startControllers loads what the followers follow, one after the other, and starts the background work of the server.
func (s *Server) startControllers(ctx context.Context) error {
	for _, f := range s.followers() {
		if err := s.follow(ctx, f); err != nil {
			return fmt.Errorf("%s: %w", f.resource.GroupResource(), err)
		}
	}
	s.tasks.Go(func() { s.runTasks(s.running) })
	genericfilters.StartMaxInFlightWatermarkMaintenance(s.running.Done())
	return nil
}
