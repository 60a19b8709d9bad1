// Package rbac implements RBAC authorization with the Roles, ClusterRoles, RoleBindings and
// ClusterRoleBindings in storage, like kube-apiserver with --authorization-mode=RBAC.
//
//	store := memory.New(memory.Options{})
//	authorizer, err := rbac.New(ctx, store)
//	server, err := apiserver.Start(ctx, apiserver.Options{Store: store, Authorizer: authorizer})
//
// A request is allowed if a rule of a role that is bound to its user or to a group of the user
// allows it. There are no deny rules. The group system:masters may do everything. An apply
// needs the verb patch, and create if it creates the object.
//
// Writes of this server take effect before their response. If several servers share a storage,
// permissions that another server grants take effect at once; those that it revokes take
// effect when the watch receives the change.
//
// A ClusterRole with an aggregationRule grants the rules of the roles that it selects. A
// cluster has a controller that copies these rules into the role. This package evaluates the
// selectors instead, so the role's own rules stay as they were written.
package rbac

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/tenure-ssa/tenure/apiserver/internal/bootstrap"
	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// An Authorizer authorizes requests by the RBAC objects in a storage. It is safe for
// concurrent use.
type Authorizer struct {
	store storage.Store

	loading sync.Mutex // held while all objects are read
	lock    sync.RWMutex
	objects objects // guarded by lock
}

var (
	_ authorizer.Authorizer   = (*Authorizer)(nil)
	_ authorizer.RuleResolver = (*Authorizer)(nil)
)

// New returns an authorizer for the RBAC objects in store. It creates kube-apiserver's default
// roles and bindings that do not exist. It watches the store until ctx ends or the store is closed.
func New(ctx context.Context, store storage.Store) (*Authorizer, error) {
	a := &Authorizer{store: store}
	creator := bootstrap.Creator{
		Store: store, Now: time.Now, NewUID: func() types.UID { return types.UID(uuid.NewString()) },
	}
	if _, err := creator.Create(ctx, bootstrap.RBAC); err != nil {
		return nil, fmt.Errorf("rbac: %w", err)
	}
	if err := a.load(ctx); err != nil {
		return nil, fmt.Errorf("rbac: %w", err)
	}
	go a.follow(ctx)
	return a, nil
}

// Authorize allows a request that a rule allows, and has no opinion on others.
func (a *Authorizer) Authorize(ctx context.Context, at authorizer.Attributes) (authorizer.Decision, string, error) {
	if slices.Contains(at.GetUser().GetGroups(), user.SystemPrivilegedGroup) {
		return authorizer.DecisionAllow, "", nil
	}
	allowed, _ := a.allowed(at)
	if allowed {
		return authorizer.DecisionAllow, "", nil
	}
	// Another server may have granted it: read the objects again before denying.
	if err := a.load(ctx); err != nil {
		return authorizer.DecisionNoOpinion, "", err
	}
	allowed, missing := a.allowed(at)
	switch {
	case allowed:
		return authorizer.DecisionAllow, "", nil
	case missing != nil:
		return authorizer.DecisionNoOpinion, "RBAC: " + missing.Error(), nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// allowed reports whether the known objects allow a request; missing lists bound roles that do
// not exist.
func (a *Authorizer) allowed(at authorizer.Attributes) (ok bool, missing error) {
	a.lock.RLock()
	defer a.lock.RUnlock()
	var errs []error
	for rule, err := range a.objects.rules(at.GetUser(), at.GetNamespace()) {
		if err != nil {
			errs = append(errs, err)
		} else if allows(rule, at) {
			return true, nil
		}
	}
	return false, oneLine(errs)
}

// oneLine joins errors to one line for the client, each of them once.
func oneLine(errs []error) error {
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return utilerrors.NewAggregate(errs)
}

// RulesFor returns the rules of a user in a namespace. The error lists bound roles that do not
// exist.
func (a *Authorizer) RulesFor(_ context.Context, of user.Info, namespace string) (
	rules []authorizer.ResourceRuleInfo, paths []authorizer.NonResourceRuleInfo, incomplete bool, err error,
) {
	all, err := a.rulesOf(of, namespace)
	if slices.Contains(of.GetGroups(), user.SystemPrivilegedGroup) {
		all = append(everything[:len(everything):len(everything)], all...)
	}
	for _, r := range all {
		if len(r.Resources) > 0 {
			rules = append(rules, &authorizer.DefaultResourceRuleInfo{
				Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames,
			})
		}
		if len(r.NonResourceURLs) > 0 {
			paths = append(paths, &authorizer.DefaultNonResourceRuleInfo{Verbs: r.Verbs, NonResourceURLs: r.NonResourceURLs})
		}
	}
	return rules, paths, err != nil, err
}

func (a *Authorizer) rulesOf(of user.Info, namespace string) ([]rbacv1.PolicyRule, error) {
	a.lock.RLock()
	defer a.lock.RUnlock()
	var out []rbacv1.PolicyRule
	var errs []error
	for rule, err := range a.objects.rules(of, namespace) {
		if err != nil {
			errs = append(errs, err)
		} else {
			out = append(out, *rule)
		}
	}
	return out, oneLine(errs)
}

// Written reads the objects again after a write to one of them.
func (a *Authorizer) Written(ctx context.Context, group, _ string) {
	if group == rbacv1.GroupName {
		_ = a.load(ctx) // if it fails the watch delivers the change
	}
}

// prefix is the storage prefix of RBAC objects.
const prefix = "/" + rbacv1.GroupName + "/"

// load reads all objects.
func (a *Authorizer) load(ctx context.Context) error {
	a.loading.Lock()
	defer a.loading.Unlock()
	revision, err := a.store.Revision(ctx)
	if err != nil {
		return err
	}
	a.lock.RLock()
	known := a.objects.seen >= revision
	a.lock.RUnlock()
	if known {
		return nil
	}
	page, err := a.store.List(ctx, prefix, storage.ListOptions{})
	if err != nil {
		return err
	}
	a.lock.Lock()
	defer a.lock.Unlock()
	a.objects.replace(page)
	return nil
}

// again is the delay before follow retries.
const again = time.Second

// follow watches the objects until ctx ends.
func (a *Authorizer) follow(ctx context.Context) {
	for {
		err := a.watch(ctx)
		if ctx.Err() != nil || errors.Is(err, storage.ErrClosed) {
			return
		}
		// Changes between two watches are found by reading all objects.
		if a.load(ctx) == nil && errors.Is(err, storage.ErrCompacted) {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(again):
		}
	}
}

func (a *Authorizer) watch(ctx context.Context) error {
	a.lock.RLock()
	after := a.objects.seen
	a.lock.RUnlock()
	watcher, err := a.store.Watch(ctx, prefix, after)
	if err != nil {
		return err
	}
	for event := range watcher.Events() {
		a.lock.Lock()
		a.objects.apply(event)
		a.lock.Unlock()
	}
	return watcher.Err()
}
