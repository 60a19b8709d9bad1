package fake

import (
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/testing"
)

// React makes a fake client handle all requests and watches with a tracker, before its other reactors. client is the
// Fake of any generated clientset, or of a fake dynamic client:
//
//	c := kubernetesfake.NewSimpleClientset()
//	fake.React(&c.Fake, tracker)
//
// If the tracker is from this package, two things differ from [testing.ObjectReaction]. A dry run of a write stores
// nothing, and returns what would be stored. An apply to the status has its own entry (spec rule 1.1), so that it does
// not remove fields that the manager applied to the main resource.
func React(client *testing.Fake, tracker testing.ObjectTracker) {
	client.PrependReactor("*", "*", reaction(tracker))
	client.PrependWatchReactor("*", func(action testing.Action) (bool, watch.Interface, error) {
		var options metav1.ListOptions
		if a, ok := action.(testing.WatchActionImpl); ok {
			options = a.ListOptions
		}
		w, err := tracker.Watch(action.GetResource(), action.GetNamespace(), options)
		return true, w, err
	})
}

func reaction(all testing.ObjectTracker) testing.ReactionFunc {
	react := testing.ObjectReaction(all)
	t, ok := all.(*tracker)
	if !ok {
		return react
	}
	return func(action testing.Action) (bool, runtime.Object, error) {
		to, react := t, react
		if name, write := dryRunOf(action); write != nil {
			var err error
			if to, err = t.scratch(action, name); err != nil {
				return true, nil, err
			}
			action, react = write, testing.ObjectReaction(to)
		}
		patch, ok := action.(testing.PatchActionImpl)
		if ok && patch.GetPatchType() == types.ApplyPatchType && patch.GetSubresource() == statusSubresource {
			out, err := to.applyStatus(patch)
			return true, out, err
		}
		return react(action)
	}
}

// dryRunOf returns the object's name and the write of a dry run. The returned write lacks the dry run option, because a
// scratch tracker stores its result. If action is not a dry run, write is nil.
func dryRunOf(action testing.Action) (name string, write testing.Action) {
	var dryRun []string
	switch a := action.(type) {
	case testing.CreateActionImpl:
		name, dryRun, a.CreateOptions.DryRun = nameOf(a.Object), a.CreateOptions.DryRun, nil
		write = a
	case testing.UpdateActionImpl:
		name, dryRun, a.UpdateOptions.DryRun = nameOf(a.Object), a.UpdateOptions.DryRun, nil
		write = a
	case testing.PatchActionImpl:
		name, dryRun, a.PatchOptions.DryRun = a.Name, a.PatchOptions.DryRun, nil
		write = a
	case testing.DeleteActionImpl:
		name, dryRun, a.DeleteOptions.DryRun = a.Name, a.DeleteOptions.DryRun, nil
		write = a
	}
	if !isDryRun(dryRun) {
		return "", nil
	}
	return name, write.DeepCopy()
}

func isDryRun(dryRun []string) bool { return slices.Contains(dryRun, metav1.DryRunAll) }

func nameOf(obj runtime.Object) string {
	if accessor, ok := obj.(metav1.ObjectMetaAccessor); ok {
		return accessor.GetObjectMeta().GetName()
	}
	return ""
}

// scratch returns a tracker with one object of t, if the object exists.
func (t *tracker) scratch(action testing.Action, name string) (*tracker, error) {
	gvr, namespace := action.GetResource(), action.GetNamespace()
	out := &tracker{
		ObjectTracker: testing.NewObjectTracker(t.scheme, t.decoder), scheme: t.scheme, decoder: t.decoder, types: t.types,
		options: t.options,
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	out.mapper, out.guesses = t.mapper, t.guesses
	live, err := t.ObjectTracker.Get(gvr, namespace, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return out, nil
	}
	if err == nil {
		err = out.ObjectTracker.Create(gvr, live, namespace)
	}
	return out, err
}

// applyStatus applies the status of an intent like a server, which ignores the rest of the intent.
func (t *tracker) applyStatus(action testing.PatchActionImpl) (runtime.Object, error) {
	intent := &unstructured.Unstructured{}
	if err := json.Unmarshal(action.Patch, &intent.Object); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	maps.DeleteFunc(intent.Object, func(name string, _ any) bool {
		return !slices.Contains([]string{"apiVersion", "kind", statusSubresource}, name)
	})
	intent.SetName(action.Name)
	intent.SetNamespace(action.Namespace)
	t.mu.Lock()
	defer t.mu.Unlock()
	w, err := t.startWrite(action.Resource, intent, action.Namespace, statusSubresource)
	if err != nil {
		return nil, err
	}
	if w.live == nil {
		return nil, apierrors.NewNotFound(action.Resource.GroupResource(), action.Name)
	}
	o := action.PatchOptions
	out, err := w.manager.Apply(w.live, intent, o.FieldManager, o.Force != nil && *o.Force)
	if err != nil {
		return nil, err
	}
	err = t.ObjectTracker.Update(action.Resource, out, action.Namespace,
		metav1.UpdateOptions{FieldManager: o.FieldManager})
	if err != nil {
		return nil, err
	}
	return t.ObjectTracker.Get(action.Resource, action.Namespace, action.Name)
}
