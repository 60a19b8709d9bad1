package controllers

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// A task is background work of the server. It is retried until it succeeds.
type task struct {
	do   string // see runTask
	name string // name of the object; empty for a task without an object
}

// Values of task.do.
const (
	taskFinalizeNamespace     = "finalize Namespace"
	taskFinalizeDefinition    = "finalize CustomResourceDefinition"
	taskAggregateClusterRoles = "aggregate ClusterRoles"
)

type taskQueue = workqueue.TypedRateLimitingInterface[task]

// Delays before a failed task is retried. They double up to a limit. A task may fail because it waits for a controller
// to remove a finalizer.
const (
	firstRetry = 5 * time.Millisecond
	lastRetry  = time.Second
)

func newTaskQueue() taskQueue {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[task](firstRetry, lastRetry)
	return workqueue.NewTypedRateLimitingQueue(limiter)
}

// runTasks runs the tasks in the queue until it is shut down.
func (c *Controllers) runTasks(ctx context.Context) {
	for {
		t, ended := c.queue.Get()
		if ended {
			return
		}
		if err := c.runTask(ctx, t); err == nil {
			c.queue.Forget(t)
		} else if ctx.Err() == nil {
			c.queue.AddRateLimited(t)
		}
		c.queue.Done(t)
	}
}

func (c *Controllers) runTask(ctx context.Context, t task) error {
	switch t.do {
	case taskFinalizeNamespace:
		return c.finalizeNamespace(ctx, t.name)
	case taskFinalizeDefinition:
		return c.options.Definitions.Finalize(ctx, t.name)
	case taskAggregateClusterRoles:
		return c.AggregateClusterRoles(ctx)
	}
	panic("controllers: bug: no task " + t.do)
}
