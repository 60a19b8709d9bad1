package verbs

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/apiserver/internal/request"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/internal/response"
	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// Pods maps the action subresources of Pods, which create no object of their own, to their
// handlers.
var Pods = map[string]func(*Call) error{
	"/pods/binding":  func(c *Call) error { return c.bind(c.Info.Name) },
	"/bindings":      func(c *Call) error { return c.bind("") },
	"/pods/eviction": (*Call).evict,
}

// decodeAction decodes the body of an action, such as a Binding or an Eviction, and calls
// admission for it. Admission does not see what the action does to the Pod.
func (c *Call) decodeAction(kind schema.GroupVersionKind) (resources.Object, bool, error) {
	k, err := c.StrategyOf(kind)
	if err != nil {
		return nil, false, err
	}
	if c.accepted, err = response.Accept(c.Request, k.Serializers(), false); err != nil {
		return nil, false, err
	}
	options, err := request.Create(c.Request)
	if err != nil {
		return nil, false, err
	}
	obj, err := c.decodeRequest(validationOf(options.FieldValidation), k, kind)
	if err != nil {
		return nil, false, err
	}
	if obj.GetName() == "" {
		obj.SetName(c.Info.Name)
	}
	if c.Info.Name != "" && obj.GetName() != c.Info.Name {
		return nil, false, apierrors.NewBadRequest(fmt.Sprintf("name in URL does not match name in %s object", kind.Kind))
	}
	if ns := obj.GetNamespace(); ns != "" && ns != c.Info.Namespace {
		return nil, false,
			apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	return obj, isDryRun(options.DryRun), c.admitAction(obj, options)
}

// admitAction calls admission for the create of an object that is not stored.
func (c *Call) admitAction(obj resources.Object, options *metav1.CreateOptions) error {
	ctx, r := c.Request.Context(), writeRequest(obj, nil, metav1.UpdateOptions{
		DryRun: options.DryRun, FieldManager: options.FieldManager, FieldValidation: options.FieldValidation,
	})
	if err := c.mutate(ctx, r); err != nil {
		return err
	}
	if err := c.admit(ctx, r); err != nil {
		return err
	}
	c.admitted = true
	return nil
}

// writeSuccess responds with 201 and a Status Success.
func (c *Call) writeSuccess() {
	status := &metav1.Status{Status: metav1.StatusSuccess, Code: http.StatusCreated}
	status.Kind, status.APIVersion = "Status", "v1"
	c.send(http.StatusCreated, status)
}

// switchToPods makes Pods the resource of the call.
func (c *Call) switchToPods() (err error) {
	if c.Resource = c.Tables.Table().Resource(corev1.SchemeGroupVersion.WithResource("pods")); c.Resource == nil {
		return response.NotFound()
	}
	c.Strategy, err = c.Resource.Strategy()
	return err
}

// bind handles a Binding: it assigns a Pod to a node.
func (c *Call) bind(name string) error {
	obj, dryRun, err := c.decodeAction(corev1.SchemeGroupVersion.WithKind("Binding"))
	if err != nil {
		return err
	}
	b := obj.(*corev1.Binding)
	if b.Target.Name == "" || b.Target.Kind != "" && b.Target.Kind != "Node" {
		return apierrors.NewBadRequest(fmt.Sprintf("target: expected the name of a Node, got %q %q", b.Target.Kind,
			b.Target.Name))
	}
	if name == "" {
		name = b.Name
	}
	if err := c.switchToPods(); err != nil {
		return err
	}
	c.Info.Subresource = "binding"
	_, _, err = c.guaranteedUpdate(write{name: name, options: dryRunOptions(dryRun), uid: string(b.UID),
		change: func(_ context.Context, live resources.Object) (resources.Object, error) {
			pod := live.DeepCopyObject().(*corev1.Pod)
			if err := assignToNode(pod, b, c.Now); err != nil {
				return nil, apierrors.NewConflict(schema.GroupResource{Resource: "pods/binding"}, name, err)
			}
			return pod, nil // no manager owns spec.nodeName
		}})
	if err != nil {
		return err
	}
	c.writeSuccess()
	return nil
}

// dryRunOptions returns the options of a write that is a dry run or not.
func dryRunOptions(dryRun bool) metav1.UpdateOptions {
	if dryRun {
		return metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}}
	}
	return metav1.UpdateOptions{}
}

// assignToNode sets the node of a Pod and its condition PodScheduled.
func assignToNode(pod *corev1.Pod, b *corev1.Binding, now func() time.Time) error {
	switch {
	case pod.DeletionTimestamp != nil:
		return fmt.Errorf("pod %s is being deleted, cannot be assigned to a host", pod.Name)
	case pod.Spec.NodeName != "":
		return fmt.Errorf("pod %s is already assigned to node %q", pod.Name, pod.Spec.NodeName)
	case len(pod.Spec.SchedulingGates) > 0:
		return fmt.Errorf("pod %s has non-empty .spec.schedulingGates", pod.Name)
	}
	pod.Spec.NodeName = b.Target.Name
	if pod.Annotations == nil && len(b.Annotations) > 0 {
		pod.Annotations = map[string]string{}
	}
	maps.Copy(pod.Annotations, b.Annotations)
	scheduled := corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now()).Rfc3339Copy(),
	}
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodScheduled {
			pod.Status.Conditions[i] = scheduled
			return nil
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, scheduled)
	return nil
}

// evict handles an Eviction: it deletes a Pod unless a PodDisruptionBudget forbids it.
func (c *Call) evict() error {
	obj, dryRun, err := c.decodeAction(policyv1.SchemeGroupVersion.WithKind("Eviction"))
	if err != nil {
		return err
	}
	if err := c.switchToPods(); err != nil {
		return err
	}
	ctx := c.Request.Context()
	live, _, _, err := c.read(ctx, c.Info.Name)
	if err != nil {
		return err
	}
	if live == nil {
		return apierrors.NewNotFound(c.Resource.GroupResource(), c.Info.Name)
	}
	if err := c.checkDisruptionBudgets(live.(*corev1.Pod), dryRun); err != nil {
		return err
	}
	options := obj.(*policyv1.Eviction).DeleteOptions
	if options == nil {
		options = &metav1.DeleteOptions{}
	}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	if _, _, err := c.deleteObject(ctx, c.Info.Name, options); err != nil {
		return err
	}
	c.writeSuccess()
	return nil
}

// checkDisruptionBudgets returns an error if a PodDisruptionBudget of the Pod allows no
// disruption. Otherwise it decrements status.disruptionsAllowed of its budgets, except in a
// dry run. The disruption controller sets this field.
func (c *Call) checkDisruptionBudgets(pod *corev1.Pod, dryRun bool) error {
	if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed ||
		pod.Status.Phase == corev1.PodPending {
		return nil // budgets do not protect such Pods
	}
	r := c.Tables.Table().Resource(policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"))
	budgets, err := c.internal(c.Request.Context(), r, pod.Namespace, "status")
	if err != nil {
		return err
	}
	page, err := c.Store.List(c.Request.Context(), r.KeysIn(pod.Namespace), storage.ListOptions{})
	if err != nil {
		return err
	}
	var requested []string
	for _, record := range page.Records {
		obj, err := budgets.decodeListed(record)
		if err != nil {
			return err
		}
		b := obj.(*policyv1.PodDisruptionBudget)
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil || !selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		if err := checkDisruptionsAllowed(b); err != nil {
			return err
		}
		requested = append(requested, b.Name)
	}
	if dryRun {
		return nil
	}
	for _, name := range requested {
		_, err := budgets.updateAs(name, "kube-apiserver", func(obj resources.Object) error {
			return decrementAllowed(obj.(*policyv1.PodDisruptionBudget), pod.Name, c.Now())
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// decrementAllowed decrements status.disruptionsAllowed and records the Pod in
// status.disruptedPods, for the disruption controller.
func decrementAllowed(b *policyv1.PodDisruptionBudget, pod string, now time.Time) error {
	if err := checkDisruptionsAllowed(b); err != nil {
		return err
	}
	b.Status.DisruptionsAllowed--
	if b.Status.DisruptedPods == nil {
		b.Status.DisruptedPods = map[string]metav1.Time{}
	}
	b.Status.DisruptedPods[pod] = metav1.NewTime(now).Rfc3339Copy()
	return nil
}

// checkDisruptionsAllowed returns an error if a PodDisruptionBudget allows no disruption.
func checkDisruptionsAllowed(b *policyv1.PodDisruptionBudget) error {
	if b.Status.DisruptionsAllowed > 0 {
		return nil
	}
	refused := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
	refused.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type: policyv1.DisruptionBudgetCause,
		Message: fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently",
			b.Name, b.Status.DesiredHealthy, b.Status.CurrentHealthy),
	}}
	return refused
}
