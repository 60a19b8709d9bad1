package custom

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// manager is the field manager of status updates.
const manager = "kube-apiserver"

// approvals maps approval states to the reasons of the condition KubernetesAPIApprovalPolicyConformant.
var approvals = map[apihelpers.APIApprovalState]string{
	apihelpers.APIApprovalInvalid: "InvalidAnnotation", apihelpers.APIApprovalMissing: "MissingAnnotation",
	apihelpers.APIApproved: "ApprovedAnnotation", apihelpers.APIApprovalBypassed: "UnapprovedAnnotation",
}

// setStatus sets status.acceptedNames and the conditions NamesAccepted and Established. For a protected group, such as
// *.k8s.io, it also sets KubernetesAPIApprovalPolicyConformant.
func (c *Controller) setStatus(crd *apiextensionsv1.CustomResourceDefinition) {
	names, conflict := c.acceptedNames(crd)
	set := func(condition apiextensionsv1.CustomResourceDefinitionConditionType, status apiextensionsv1.ConditionStatus,
		reason, message string) {
		c.setCondition(crd, condition, status, reason, message)
	}
	crd.Status.AcceptedNames = names
	if apihelpers.IsProtectedCommunityGroup(crd.Spec.Group) {
		state, message := apihelpers.GetAPIApprovalState(crd.Annotations)
		status := apiextensionsv1.ConditionFalse
		if state == apihelpers.APIApproved {
			status = apiextensionsv1.ConditionTrue
		}
		set(apiextensionsv1.KubernetesAPIApprovalPolicyConformant, status, approvals[state], message)
	}
	if conflict != nil {
		set(apiextensionsv1.NamesAccepted, apiextensionsv1.ConditionFalse, conflict.reason, conflict.message)
		if !apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established) {
			set(apiextensionsv1.Established, apiextensionsv1.ConditionFalse, "NotAccepted", "not all names are accepted")
		}
		return
	}
	set(apiextensionsv1.NamesAccepted, apiextensionsv1.ConditionTrue, "NoConflicts", "no conflicts found")
	if !apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established) {
		set(apiextensionsv1.Established, apiextensionsv1.ConditionTrue, "InitialNamesAccepted",
			"the initial names have been accepted")
	}
}

func (c *Controller) setCondition(
	crd *apiextensionsv1.CustomResourceDefinition, condition apiextensionsv1.CustomResourceDefinitionConditionType,
	status apiextensionsv1.ConditionStatus, reason, message string,
) {
	wasSet := apihelpers.IsCRDConditionPresentAndEqual(crd, condition, status)
	apihelpers.SetCRDCondition(crd, apiextensionsv1.CustomResourceDefinitionCondition{
		Type: condition, Status: status, Reason: reason, Message: message,
	})
	if !wasSet { // SetCRDCondition uses the clock of the machine
		apihelpers.FindCRDCondition(crd, condition).LastTransitionTime = metav1.NewTime(c.options.Now()).Rfc3339Copy()
	}
}

// updateStatus updates the status of a definition if it changed. It returns the updated
// definition, or nil if it was deleted.
func (c *Controller) updateStatus(
	ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition,
) (*apiextensionsv1.CustomResourceDefinition, error) {
	wanted := *crd
	wanted.Status = *crd.Status.DeepCopy()
	c.setStatus(&wanted)
	if apiequality.Semantic.DeepEqual(wanted.Status, crd.Status) {
		return crd, nil
	}
	obj, err := c.resource().Modify(resources.Own(ctx), "", crd.Name, "status", manager, func(obj runtime.Object) error {
		c.setStatus(obj.(*apiextensionsv1.CustomResourceDefinition))
		return nil
	})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return obj.(*apiextensionsv1.CustomResourceDefinition), nil
}

// conflict describes a name that another definition already uses.
type conflict struct{ reason, message string }

// acceptedNames returns the accepted names of crd. If another definition of the group already uses a name, that is a
// conflict, and the previously accepted name is kept. If several names are in conflict, the last conflict is reported,
// as in kube-apiserver.
func (c *Controller) acceptedNames(
	crd *apiextensionsv1.CustomResourceDefinition,
) (apiextensionsv1.CustomResourceDefinitionNames, *conflict) {
	taken, kinds := map[string]bool{}, map[string]bool{}
	for name, other := range c.stored {
		if name == crd.Name || other.group != crd.Spec.Group {
			continue
		}
		n := other.names
		for _, s := range append([]string{n.Plural, n.Singular}, n.ShortNames...) {
			taken[s] = true
		}
		kinds[n.Kind], kinds[n.ListKind] = true, true
	}
	out := crd.Status.AcceptedNames
	asked := crd.Spec.Names
	var found *conflict
	accept := func(into *string, name string, all map[string]bool, reason string) {
		if all[name] && name != *into {
			found = &conflict{reason, fmt.Sprintf("%q is already in use", name)}
			return
		}
		*into = name
	}
	accept(&out.Plural, asked.Plural, taken, "PluralConflict")
	accept(&out.Singular, asked.Singular, taken, "SingularConflict")
	var bad []error
	for _, s := range asked.ShortNames {
		if taken[s] && !slices.Contains(out.ShortNames, s) {
			bad = append(bad, fmt.Errorf("%q is already in use", s))
		}
	}
	if len(bad) > 0 {
		found = &conflict{"ShortNamesConflict", utilerrors.NewAggregate(bad).Error()}
	} else {
		out.ShortNames = slices.Clone(asked.ShortNames)
	}
	accept(&out.Kind, asked.Kind, kinds, "KindConflict")
	accept(&out.ListKind, asked.ListKind, kinds, "ListKindConflict")
	out.Categories = slices.Clone(asked.Categories)
	return out, found
}

// Finalize deletes the objects of a definition that is being deleted, and then removes the definition's finalizer.
// While objects remain, it returns an error and must be called again.
func (c *Controller) Finalize(ctx context.Context, name string) error {
	crd, err := c.read(ctx, name)
	if err != nil || crd == nil || crd.DeletionTimestamp == nil {
		return err
	}
	if apihelpers.CRDHasFinalizer(crd, apiextensionsv1.CustomResourceCleanupFinalizer) {
		if err := c.finalize(ctx, crd); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return c.Reload(ctx, name)
}

// finalize deletes the objects of a definition, and then removes its finalizer. Like kube-apiserver, it reports its
// progress in the condition Terminating.
func (c *Controller) finalize(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
	update := func(status apiextensionsv1.ConditionStatus, reason, message string) error {
		change := func(obj runtime.Object) error {
			live := obj.(*apiextensionsv1.CustomResourceDefinition)
			c.setCondition(live, apiextensionsv1.Terminating, status, reason, message)
			if status == apiextensionsv1.ConditionFalse {
				apihelpers.CRDRemoveFinalizer(live, apiextensionsv1.CustomResourceCleanupFinalizer)
			}
			return nil
		}
		_, err := c.resource().Modify(resources.Own(ctx), "", crd.Name, "status", manager, change)
		return err
	}
	err := update(apiextensionsv1.ConditionTrue, "InstanceDeletionInProgress", "CustomResource deletion is in progress")
	if err != nil {
		return err
	}
	if err := c.deleteObjects(ctx, crd); err != nil {
		return err // the condition does not report err: a write of the status would start the next attempt at once
	}
	if !apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established) {
		return update(apiextensionsv1.ConditionFalse, "NeverEstablished", "resource was never established")
	}
	return update(apiextensionsv1.ConditionFalse, "InstanceDeletionCompleted", "removed all instances")
}

// deleteObjects deletes all objects of a definition.
func (c *Controller) deleteObjects(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
	r := c.newDefinition(crd).Stored()
	if r == nil || r.Plural == "" || c.isBuiltin(crd.Spec.Group) { // the definition was never served
		return nil
	}
	return r.RemoveAll(ctx, "", nil)
}
