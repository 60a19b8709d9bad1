package apiserver

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/apis/batch"
)

// stamp sets the UID and the creationTimestamp of a new object, if the options have their own clock or UIDs.
func (o *Options) stamp(obj runtime.Object) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return
	}
	if o.NewUID != nil && m.GetUID() != "" {
		before := string(m.GetUID())
		m.SetUID(o.NewUID())
		if job, ok := obj.(*batch.Job); ok && job.Spec.Selector != nil {
			replaceValues(job.Spec.Selector.MatchLabels, before, string(job.UID))
			replaceValues(job.Spec.Template.Labels, before, string(job.UID))
		}
	}
	if at := m.GetCreationTimestamp(); o.ownClock && !at.IsZero() {
		m.SetCreationTimestamp(metav1.NewTime(o.Now()).Rfc3339Copy())
	}
}

// stampDeletion sets the deletionTimestamp of an object that an update began to delete, if the options have their own
// clock: to the end of the grace period. before is the deletionTimestamp before the update.
func (o *Options) stampDeletion(obj runtime.Object, before *metav1.Time) {
	m, err := meta.Accessor(obj)
	if err != nil || !o.ownClock || m.GetDeletionTimestamp() == nil || m.GetDeletionTimestamp().Equal(before) {
		return
	}
	at := o.Now()
	if grace := m.GetDeletionGracePeriodSeconds(); grace != nil {
		at = at.Add(time.Duration(*grace) * time.Second)
	}
	end := metav1.NewTime(at).Rfc3339Copy()
	m.SetDeletionTimestamp(&end)
}

// replaceValues replaces the labels that a Job's strategy made from the UID that it had before.
func replaceValues(labels map[string]string, before, after string) {
	for name, value := range labels {
		if value == before {
			labels[name] = after
		}
	}
}
