// Package controllers runs the background work of a server. It has three controllers: one deletes the contents of
// deleted Namespaces, one deletes the objects of deleted CustomResourceDefinitions, and one stores the rules that
// ClusterRoles aggregate. Followers keep a server up to date with the writes of other servers that share its store.
package controllers

import (
	"context"
	"fmt"
	"path"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/tenure-ssa/tenure/apiserver/internal/custom"
	"github.com/tenure-ssa/tenure/apiserver/internal/plugins"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// Options configure the controllers.
type Options struct {
	Tables      *resources.Current
	Definitions *custom.Controller
	// Plugins loads the admission configurations. It is nil if configurations have no effect.
	Plugins *plugins.Plugins
	// Admission validates the deletes of a Namespace's contents.
	Admission admission.Interface
	// External is true if a controller manager deletes the contents of Namespaces and aggregates ClusterRoles.
	External bool
	// KeepContents is true if the contents of a deleted Namespace are not deleted.
	KeepContents bool
}

// Controllers are the controllers and followers of a server.
type Controllers struct {
	options     Options
	queue       taskQueue
	aggregation sync.Mutex // held while ClusterRoles are aggregated

	running context.Context // ends the controllers and followers
	stop    func()
	tasks   sync.WaitGroup
}

// New returns controllers that do not run yet.
func New(options Options) *Controllers {
	c := &Controllers{options: options, queue: newTaskQueue()}
	c.running, c.stop = context.WithCancel(context.Background())
	options.Definitions.OnTerminating = func(name string) { c.queue.Add(task{taskFinalizeDefinition, name}) }
	return c
}

// Start loads the resources of the followers, one after the other, and starts the background work.
func (c *Controllers) Start(ctx context.Context) error {
	for _, f := range c.followers() {
		if err := c.follow(ctx, f); err != nil {
			return fmt.Errorf("%s: %w", f.resource.GroupResource(), err)
		}
	}
	c.tasks.Go(func() { c.runTasks(c.running) })
	return nil
}

// Close ends the background work.
func (c *Controllers) Close() {
	c.stop()
	c.queue.ShutDown()
	c.tasks.Wait()
}

// Storage prefixes of objects whose writes change what the server does.
var (
	namespacePrefix = resources.PrefixOf(schema.GroupResource{Resource: "namespaces"})
	pluginsPrefix   = resources.PrefixOf(schema.GroupResource{Group: admissionregistrationv1.GroupName})
	rolesPrefix     = resources.PrefixOf(schema.GroupResource{Group: rbacv1.GroupName, Resource: "clusterroles"})
)

// HandleWrite does the work that a write of an object needs before the response. It is called after each write to the
// storage with this prefix; name is the name of the object. For example, a custom resource is served before the client
// gets the response to the create of its definition.
func (c *Controllers) HandleWrite(ctx context.Context, prefix, name string) {
	dir, plural := path.Split(prefix)
	switch {
	case resources.IsOwn(ctx):
	case prefix == custom.Prefix:
		// The status of the definition reports what is wrong with the definition. If the storage fails, the follower tries
		// again.
		_ = c.options.Definitions.Reload(ctx, name)
	case dir == pluginsPrefix && c.options.Plugins != nil:
		// If the storage fails, the follower tries again.
		_ = c.options.Plugins.Reload(ctx, plural, name)
	case prefix == namespacePrefix:
		c.handleNamespaceWrite(ctx, name)
	case prefix == rolesPrefix:
		c.handleClusterRoleWrite(ctx)
	}
}

// A follower keeps the server up to date with the stored objects of a resource: objects that other servers of the store
// write, and objects that were stored before this server started.
type follower struct {
	resource schema.GroupVersionResource
	load     func(ctx context.Context) error // reads all objects
	reload   func(ctx context.Context, o metav1.Object) error
}

// followers returns the followers of the server in the order in which they load: CustomResourceDefinitions, admission
// configurations, and Namespaces.
func (c *Controllers) followers() []follower {
	out := []follower{{
		resource: custom.Plural, reload: c.options.Definitions.ReloadUnseen,
		load: func(context.Context) error { return c.options.Definitions.Load(c.running) },
	}}
	if p := c.options.Plugins; p != nil {
		for _, plural := range p.Configurations() {
			out = append(out, follower{
				resource: admissionregistrationv1.SchemeGroupVersion.WithResource(plural),
				load:     func(ctx context.Context) error { return p.Load(ctx, plural) },
				reload: func(ctx context.Context, o metav1.Object) error {
					return p.Reload(ctx, plural, o.GetName())
				},
			})
		}
	}
	if c.emptiesNamespaces() {
		out = append(out, follower{
			resource: corev1.SchemeGroupVersion.WithResource("namespaces"), load: c.resumeNamespaces,
			reload: func(_ context.Context, o metav1.Object) error {
				c.queue.Add(task{taskFinalizeNamespace, o.GetName()})
				return nil
			},
		})
	}
	return out
}
