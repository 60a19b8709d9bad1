package verbs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// systemClasses are the values of the PriorityClasses that kube-apiserver always has. They are known without the
// objects, which a server creates only with Options.Bootstrap.
var systemClasses = map[string]int32{
	"system-cluster-critical": 2000000000,
	"system-node-critical":    2000001000,
}

// classesFor is how long the list of PriorityClasses is used again. A write of this server is seen at once, one of
// another server on the same store after this time; kube-apiserver sees both a moment later.
const classesFor = time.Second

// priorityClasses is the list of PriorityClasses of a server, as it was read last.
type priorityClasses struct {
	lock   sync.Mutex
	read   time.Time // zero: never, or something was written since
	writes int
	list   []*schedulingv1.PriorityClass
}

// changed makes the next Pod read the list again.
func (p *priorityClasses) changed() {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.read, p.writes = time.Time{}, p.writes+1
}

// classes returns all PriorityClasses.
func (c *Call) classes(ctx context.Context) ([]*schedulingv1.PriorityClass, error) {
	p := &c.priorities
	p.lock.Lock()
	list, writes := p.list, p.writes
	isFresh := !p.read.IsZero() && time.Since(p.read) < classesFor
	p.lock.Unlock()
	if isFresh {
		return list, nil
	}
	r := c.Tables.Table().Resource(schedulingv1.SchemeGroupVersion.WithResource("priorityclasses"))
	call, err := c.internal(ctx, r, "", "")
	if err != nil {
		return nil, err
	}
	at := time.Now()
	page, err := c.Store.List(ctx, r.KeysIn(""), storage.ListOptions{})
	if err != nil {
		return nil, err
	}
	list = nil
	for _, record := range page.Records {
		obj, err := call.decodeListed(record)
		if err != nil {
			return nil, err
		}
		list = append(list, obj.(*schedulingv1.PriorityClass))
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.writes == writes {
		p.list, p.read = list, at
	}
	return list, nil
}

// defaultClass returns the PriorityClass of Pods that name none, or nil. Of several, which only old objects can be, it
// is the one of the lowest value.
func defaultClass(list []*schedulingv1.PriorityClass) (found *schedulingv1.PriorityClass) {
	for _, class := range list {
		if class.GlobalDefault && (found == nil || class.Value < found.Value) {
			found = class
		}
	}
	return found
}

// admitPriority does what the admission plugin Priority does to a new object: it sets the priority and preemption
// policy of a Pod, and rejects a second PriorityClass that is the default.
func (c *Call) admitPriority(ctx context.Context, obj, live resources.Object) error {
	if c.admitted || c.Info.Subresource != "" {
		return nil
	}
	switch o := obj.(type) {
	case *corev1.Pod:
		if live == nil {
			return c.setPriority(ctx, o)
		}
	case *schedulingv1.PriorityClass:
		if !o.GlobalDefault {
			return nil
		}
		list, err := c.classes(ctx)
		if err != nil {
			return err
		}
		if d := defaultClass(list); d != nil && (live == nil || d.Name != o.Name) {
			return c.forbidden(obj, fmt.Sprintf("PriorityClass %v is already marked as default. Only one default can exist",
				d.Name))
		}
	}
	return nil
}

func (c *Call) forbidden(obj resources.Object, reason string) error {
	return apierrors.NewForbidden(c.Resource.GroupResource(), obj.GetName(), errors.New(reason))
}

// setPriority sets the priority and preemption policy of a new Pod by its PriorityClass.
func (c *Call) setPriority(ctx context.Context, pod *corev1.Pod) error {
	list, err := c.classes(ctx)
	if err != nil {
		return err
	}
	lower := corev1.PreemptLowerPriority
	class := &schedulingv1.PriorityClass{PreemptionPolicy: &lower}
	if name := pod.Spec.PriorityClassName; name == "" {
		if d := defaultClass(list); d != nil {
			class, pod.Spec.PriorityClassName = d, d.Name
		}
	} else {
		var ok bool
		if class.Value, ok = systemClasses[name]; !ok {
			class = nil
		}
		for _, candidate := range list {
			if candidate.Name == name {
				class = candidate
			}
		}
		if class == nil {
			return c.forbidden(pod, fmt.Sprintf("no PriorityClass with name %v was found", name))
		}
	}
	if p := pod.Spec.Priority; p != nil && *p != class.Value {
		return c.forbidden(pod, fmt.Sprintf("the integer value of priority (%d) must not be provided in pod spec; priority "+
			"admission controller computed %d from the given PriorityClass name", *p, class.Value))
	}
	value := class.Value
	pod.Spec.Priority = &value
	if class.PreemptionPolicy == nil {
		return nil
	}
	policy := *class.PreemptionPolicy
	if p := pod.Spec.PreemptionPolicy; p != nil && *p != policy {
		return c.forbidden(pod, fmt.Sprintf("the string value of PreemptionPolicy (%s) must not be provided in pod spec; "+
			"priority admission controller computed %s from the given PriorityClass name", *p, policy))
	}
	pod.Spec.PreemptionPolicy = &policy
	return nil
}
