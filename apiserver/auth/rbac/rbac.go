// Package rbac implements RBAC authorization with the Roles, ClusterRoles, RoleBindings and
// ClusterRoleBindings in storage, like kube-apiserver with --authorization-mode=RBAC.
//
//	store := memory.New(memory.Options{})
//	authorizer, err := rbac.New(ctx, store)
//	server, err := apiserver.Start(ctx, apiserver.Options{Store: store, Authorizer: authorizer})
//
// kube-apiserver's own authorizer evaluates the rules. An apply needs the verb patch, and also the verb create if it
// creates the object.
//
// Changes of roles and bindings through this server take effect before the server responds. Changes through other
// servers on the same storage take effect when the watch receives them.
//
// A ClusterRole grants the rules that are stored in it. If a ClusterRole has an aggregationRule, the server stores the
// aggregated rules in it, as a controller does in a cluster. Checks for privilege escalation also read the stored
// rules.
package rbac

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/union"
	upstream "k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"

	"github.com/tenure-ssa/tenure/apiserver/internal/bootstrap"
	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// An Authorizer authorizes requests by the RBAC objects in a storage. Users in group system:masters may do everything.
// It is safe for concurrent use.
type Authorizer struct {
	authorizer.Authorizer
	authorizer.RuleResolver
	roles               *list[*rbacv1.Role]
	clusterRoles        *list[*rbacv1.ClusterRole]
	roleBindings        *list[*rbacv1.RoleBinding]
	clusterRoleBindings *list[*rbacv1.ClusterRoleBinding]
}

// New returns an authorizer for the RBAC objects in store. It creates the default roles and bindings of kube-apiserver
// if they do not exist. It watches the store until ctx ends or the store is closed.
func New(ctx context.Context, store storage.Store) (*Authorizer, error) {
	a := &Authorizer{}
	opened := opener{ctx: ctx, store: store}
	a.roles = open[*rbacv1.Role](&opened, "roles", "Role")
	a.clusterRoles = open[*rbacv1.ClusterRole](&opened, "clusterroles", "ClusterRole")
	a.roleBindings = open[*rbacv1.RoleBinding](&opened, "rolebindings", "RoleBinding")
	a.clusterRoleBindings = open[*rbacv1.ClusterRoleBinding](&opened, "clusterrolebindings", "ClusterRoleBinding")
	err := opened.err
	if err == nil {
		err = opened.create(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("rbac: %w", err)
	}
	rules := upstream.New(a, a, a, a)
	a.RuleResolver = rules
	a.Authorizer, err = union.New(
		union.NamedAuthorizer{
			AuthorizerName: "masters", Authorizer: authorizerfactory.NewPrivilegedGroups(user.SystemPrivilegedGroup),
		},
		union.NamedAuthorizer{AuthorizerName: "rbac", Authorizer: rules},
	)
	return a, err
}

// Written reads an RBAC object again after it was written or deleted.
func (a *Authorizer) Written(ctx context.Context, resource schema.GroupResource, namespace, name string) {
	if resource.Group != rbacv1.GroupName {
		return
	}
	switch resource.Resource {
	case "roles":
		a.roles.refresh(ctx, namespace, name)
	case "clusterroles":
		a.clusterRoles.refresh(ctx, namespace, name)
	case "rolebindings":
		a.roleBindings.refresh(ctx, namespace, name)
	case "clusterrolebindings":
		a.clusterRoleBindings.refresh(ctx, namespace, name)
	}
}

// GetRole returns the role of a binding, or the error that the role does not exist.
func (a *Authorizer) GetRole(ctx context.Context, namespace, name string) (*rbacv1.Role, error) {
	all, err := a.roles.get(ctx)
	if err != nil {
		return nil, err
	}
	if r := all[namespace][name]; r != nil {
		return r, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Group: rbacv1.GroupName, Resource: "role"}, name)
}

// ListRoleBindings returns the bindings in a namespace.
func (a *Authorizer) ListRoleBindings(ctx context.Context, namespace string) (out []*rbacv1.RoleBinding, err error) {
	all, err := a.roleBindings.get(ctx)
	for _, b := range all[namespace] {
		out = append(out, b)
	}
	return out, err
}

// ListClusterRoleBindings returns all ClusterRoleBindings.
func (a *Authorizer) ListClusterRoleBindings(ctx context.Context) (out []*rbacv1.ClusterRoleBinding, err error) {
	all, err := a.clusterRoleBindings.get(ctx)
	for _, b := range all[""] {
		out = append(out, b)
	}
	return out, err
}

// GetClusterRole returns the role of a binding, or the error that the role does not exist.
func (a *Authorizer) GetClusterRole(ctx context.Context, name string) (*rbacv1.ClusterRole, error) {
	all, err := a.clusterRoles.get(ctx)
	if err != nil {
		return nil, err
	}
	if r := all[""][name]; r != nil {
		return r, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Group: rbacv1.GroupName, Resource: "clusterrole"}, name)
}

// create creates the default roles and bindings that do not exist.
func (o *opener) create(ctx context.Context) error {
	objects, err := bootstrap.Own{}.Objects(bootstrap.RBAC)
	if err != nil {
		return err
	}
	for _, obj := range objects {
		if err := o.createOne(ctx, obj); err != nil {
			return fmt.Errorf("%s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
	}
	return nil
}
