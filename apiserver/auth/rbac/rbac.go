// Package rbac authorizes by the Roles, ClusterRoles, RoleBindings and
// ClusterRoleBindings that are in a store, as a Kubernetes server with
// --authorization-mode=RBAC does.
//
//	store := memory.New(memory.Options{})
//	authorizer, err := rbac.New(ctx, store)
//	server, err := apiserver.Start(ctx, apiserver.Options{Store: store, Authorizer: authorizer})
//
// A request is allowed if some rule of some role that is bound to its user, or to
// one of the user's groups, allows it; nothing denies. Users of the group
// system:masters may do everything. A request that applies needs the verb patch,
// and create too when it makes the object.
//
// What this server writes counts from the moment on that the write is answered. Of
// several servers over one store, what another one grants counts at once, and what
// another one takes away counts when the store's watch has told.
//
// A ClusterRole with an aggregationRule grants what the roles grant that it
// selects. A cluster has a controller that copies their rules; here they are found
// when they are asked for, so that the role's own rules stay as they were written.
package rbac

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/tenure-ssa/tenure/apiserver/auth"
	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// An Authorizer authorizes by the RBAC objects of a store. It is safe for
// concurrent use.
type Authorizer struct {
	store storage.Store

	loading sync.Mutex // held by who reads all of them anew
	lock    sync.RWMutex
	objects objects // guarded by lock
}

var (
	_ auth.Authorizer = (*Authorizer)(nil)
	_ auth.Guard      = (*Authorizer)(nil)
	_ auth.Observer   = (*Authorizer)(nil)
	_ auth.RuleLister = (*Authorizer)(nil)
)

// New returns an authorizer that goes by the objects of store. It makes the roles
// of defaults.yaml, which clients count on, where they are not there. Until ctx ends,
// or the store is closed, it follows what other servers write.
func New(ctx context.Context, store storage.Store) (*Authorizer, error) {
	a := &Authorizer{store: store}
	if err := makeDefaults(ctx, store); err != nil {
		return nil, fmt.Errorf("rbac: %w", err)
	}
	if err := a.load(ctx); err != nil {
		return nil, fmt.Errorf("rbac: %w", err)
	}
	go a.follow(ctx)
	return a, nil
}

// Authorize reports whether some rule allows the request.
func (a *Authorizer) Authorize(ctx context.Context, at auth.Attributes) (bool, string, error) {
	if slices.Contains(at.User.Groups, auth.Masters) {
		return true, "", nil
	}
	allowed, _ := a.allowed(at)
	if allowed {
		return true, "", nil
	}
	// What another server granted may not be known here yet.
	if err := a.load(ctx); err != nil {
		return false, "", err
	}
	allowed, missing := a.allowed(at)
	if allowed || missing == nil {
		return allowed, "", nil
	}
	return false, "RBAC: " + missing.Error(), nil
}

// allowed reports whether what is known allows a request; missing names roles that
// are bound and not there.
func (a *Authorizer) allowed(at auth.Attributes) (ok bool, missing error) {
	a.lock.RLock()
	defer a.lock.RUnlock()
	var errs []error
	for rule, err := range a.objects.rules(at.User, at.Namespace) {
		if err != nil {
			errs = append(errs, err)
		} else if allows(rule, at) {
			return true, nil
		}
	}
	if len(errs) == 0 {
		return false, nil
	}
	return false, oneLine(errs)
}

// oneLine joins errors as a client is shown them.
func oneLine(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	var texts []string
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	slices.Sort(texts)
	return errors.New("[" + strings.Join(slices.Compact(texts), ", ") + "]")
}

// Rules returns the rules that are bound to a user in a namespace. The error names
// roles that are bound and not there.
func (a *Authorizer) Rules(_ context.Context, user auth.User, namespace string) ([]auth.Rule, error) {
	rules, err := a.rulesOf(user, namespace)
	out := make([]auth.Rule, 0, len(rules)+1)
	if slices.Contains(user.Groups, auth.Masters) {
		out, _ = auth.AllowAll{}.Rules(context.Background(), user, namespace)
	}
	for _, r := range rules {
		out = append(out, auth.Rule{
			Verbs: r.Verbs, Groups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames,
			Paths: r.NonResourceURLs,
		})
	}
	return out, err
}

func (a *Authorizer) rulesOf(user auth.User, namespace string) ([]rbacv1.PolicyRule, error) {
	a.lock.RLock()
	defer a.lock.RUnlock()
	var out []rbacv1.PolicyRule
	var errs []error
	for rule, err := range a.objects.rules(user, namespace) {
		if err != nil {
			errs = append(errs, err)
		} else {
			out = append(out, *rule)
		}
	}
	if len(errs) == 0 {
		return out, nil
	}
	return out, oneLine(errs)
}

// Written reads the objects anew when one of them was written.
func (a *Authorizer) Written(ctx context.Context, group, _ string) {
	if group == rbacv1.GroupName {
		_ = a.load(ctx) // what can't be read now, the watch tells
	}
}

// prefix is where RBAC objects are stored.
const prefix = "/" + rbacv1.GroupName + "/"

// load reads all objects anew.
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

// again is how long follow waits before it tries again what failed.
const again = time.Second

// follow keeps up with what is written, until ctx ends.
func (a *Authorizer) follow(ctx context.Context) {
	for {
		err := a.watch(ctx)
		if ctx.Err() != nil || errors.Is(err, storage.ErrClosed) {
			return
		}
		// What was missed is in the store.
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
