package verbs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/apiserver/internal/request"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// delete handles a delete request.
func (c *Call) delete() error {
	body, err := request.Body(c.Request, c.Body)
	if err != nil {
		return err
	}
	options, err := request.Delete(c.Request, body)
	if err != nil {
		return err
	}
	obj, gone, err := c.deleteObject(c.Request.Context(), c.Info.Name, options)
	if err != nil {
		return err
	}
	if !gone || c.Resource.ReturnDeletedObject {
		code := http.StatusOK
		//lint:ignore SA1019 old clients send it
		if !gone && options.OrphanDependents != nil && !*options.OrphanDependents {
			code = http.StatusAccepted
		}
		return c.respond(code, obj)
	}
	c.respondStatus(&metav1.Status{
		Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{
			Name: obj.GetName(), Group: c.Resource.Group, Kind: c.Resource.Plural, UID: obj.GetUID(),
		},
	})
	return nil
}

// deleteObject deletes an object, or marks it as being deleted if it has finalizers or a grace
// period. gone reports whether it was removed from storage; if not, obj is the marked object.
func (c *Call) deleteObject(
	ctx context.Context, name string, options *metav1.DeleteOptions,
) (obj resources.Object, gone bool, err error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		obj, gone, err := c.tryDelete(ctx, name, options)
		var conflict *storage.ConflictError
		if !errors.As(err, &conflict) {
			return obj, gone, err
		}
	}
}

func (c *Call) tryDelete(
	ctx context.Context, name string, options *metav1.DeleteOptions,
) (obj resources.Object, gone bool, err error) {
	live, record, _, err := c.read(ctx, name)
	if err != nil {
		return nil, false, err
	}
	if live == nil {
		return nil, false, apierrors.NewNotFound(c.Resource.GroupResource(), name)
	}
	if err := c.checkPreconditions(live, options.Preconditions); err != nil {
		return nil, false, err
	}
	dryRun := isDryRun(options.DryRun)
	if !c.isDeletionPending(live, options.GracePeriodSeconds) {
		if err := c.admitDelete(ctx, deleteRequest(live, options)); err != nil {
			return nil, false, err
		}
	}
	marked := live.DeepCopyObject().(resources.Object)
	if c.Controllers && c.Deleters[c.Resource.Group+"/"+c.Resource.Plural] == nil {
		c.setCollection(marked, options)
	}
	stays, err := c.beginDeletion(marked, options.GracePeriodSeconds)
	if err != nil {
		return nil, false, err
	}
	if !stays {
		return marked, true, c.deleteRecord(ctx, record, marked, dryRun)
	}
	data, err := c.encodeChanged(marked, live, record)
	if err != nil || data == nil || dryRun {
		return marked, false, err
	}
	revision, err := c.Store.Put(ctx, record.Key, data, record.Revision)
	if err != nil {
		return nil, false, err
	}
	marked.SetResourceVersion(versionText(revision))
	c.notifyWritten(marked)
	return marked, false, nil
}

// beginDeletion sets the deletionTimestamp and reports whether the object stays in storage for
// its finalizers or its grace period. requested is gracePeriodSeconds of the request, or nil.
func (c *Call) beginDeletion(obj resources.Object, requested *int64) (stays bool, err error) {
	now := metav1.NewTime(c.Now()).Rfc3339Copy()
	if handler := c.Deleters[c.Resource.Group+"/"+c.Resource.Plural]; handler != nil {
		return handler(obj, now)
	}
	seconds, graceful := c.Strategy.GracefulDelete(obj, requested)
	switch {
	case obj.GetDeletionTimestamp() != nil:
		shortenGracePeriod(obj, requested, now)
	case graceful || len(obj.GetFinalizers()) > 0:
		if obj.GetDeletionGracePeriodSeconds() == nil && obj.GetGeneration() > 0 {
			obj.SetGeneration(obj.GetGeneration() + 1)
		}
		until := metav1.NewTime(now.Add(time.Duration(seconds) * time.Second))
		obj.SetDeletionTimestamp(&until)
		obj.SetDeletionGracePeriodSeconds(&seconds)
	}
	return len(obj.GetFinalizers()) > 0 || !c.isDeletionComplete(obj), nil
}

// shortenGracePeriod shortens the grace period of an object that is being deleted already. It
// never extends it.
func shortenGracePeriod(obj resources.Object, requested *int64, now metav1.Time) {
	grace := obj.GetDeletionGracePeriodSeconds()
	if grace == nil || requested == nil {
		return
	}
	seconds := *requested
	if seconds < 0 {
		seconds = 1
	}
	if seconds >= *grace {
		return
	}
	until := metav1.NewTime(obj.GetDeletionTimestamp().Add(time.Duration(seconds-*grace) * time.Second))
	if until.Before(&now) {
		until, seconds = now, min(seconds, 1)
	}
	obj.SetDeletionTimestamp(&until)
	obj.SetDeletionGracePeriodSeconds(&seconds)
}

// checkPreconditions checks the preconditions of a delete.
func (c *Call) checkPreconditions(live resources.Object, p *metav1.Preconditions) error {
	if p == nil {
		return nil
	}
	kind := schema.GroupResource{Group: c.Resource.Group, Resource: c.Resource.Kind}
	if p.UID != nil && *p.UID != live.GetUID() {
		return apierrors.NewConflict(kind, live.GetName(), fmt.Errorf(
			"the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and "+
				"then recreated",
			*p.UID, live.GetUID()))
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != live.GetResourceVersion() {
		return apierrors.NewConflict(kind, live.GetName(), fmt.Errorf(
			"the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object "+
				"might have been modified",
			*p.ResourceVersion, live.GetResourceVersion()))
	}
	return nil
}

// isDeletionPending reports whether an object is being deleted already and the request changes
// nothing about it. As in kube-apiserver admission does not see such requests.
func (c *Call) isDeletionPending(live resources.Object, requested *int64) bool {
	if live.GetDeletionTimestamp() == nil {
		return false
	}
	if c.Deleters[c.Resource.Group+"/"+c.Resource.Plural] != nil {
		return true
	}
	grace := live.GetDeletionGracePeriodSeconds()
	_, graceful := c.Strategy.GracefulDelete(live, requested)
	return graceful && grace != nil && *grace > 0 && (requested == nil || *requested >= *grace)
}

// admitDelete calls admission for a delete.
func (c *Call) admitDelete(ctx context.Context, r admissionRequest) error {
	if err := c.mutate(ctx, r); err != nil {
		return err
	}
	return c.admit(ctx, r)
}

// deleteCollection deletes all selected objects and responds with a list of them.
func (c *Call) deleteCollection() error {
	body, err := request.Body(c.Request, c.Body)
	if err != nil {
		return err
	}
	list, err := request.List(c.Request)
	if err != nil {
		return err
	}
	options, err := request.Delete(c.Request, body)
	if err != nil {
		return err
	}
	ctx := c.Request.Context()
	items, meta, err := c.listPage(ctx, list)
	if err != nil {
		return err
	}
	namespace := c.Info.Namespace
	for _, item := range items {
		c.Info.Namespace = item.GetNamespace()
		if _, _, err := c.deleteObject(ctx, item.GetName(), options.DeepCopy()); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	c.Info.Namespace = namespace
	return c.respondList(items, meta)
}
