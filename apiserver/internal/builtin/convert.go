package builtin

import (
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// convert converts an object to another version of its kind. The result shares memory with
// obj. If there is no such version, runtime.IsNotRegisteredError is true for the error.
func convert(obj runtime.Object, to schema.GroupVersionKind) (resources.Object, error) {
	var out resources.Object
	switch o := obj.(type) {
	case *corev1.Event:
		if to == eventsv1.SchemeGroupVersion.WithKind("Event") {
			out = eventFromCore(o)
		}
	case *eventsv1.Event:
		if to == corev1.SchemeGroupVersion.WithKind("Event") {
			out = eventToCore(o)
		}
	case *autoscalingv1.HorizontalPodAutoscaler:
		if to == autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler") {
			out = autoscalerToV2(o)
		}
	case *autoscalingv2.HorizontalPodAutoscaler:
		if to == autoscalingv1.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler") {
			converted, err := autoscalerToV1(o)
			if err != nil {
				return nil, err
			}
			out = converted
		}
	}
	if out == nil {
		return nil, runtime.NewNotRegisteredErrForKind(fmt.Sprintf("%T", obj), to)
	}
	out.GetObjectKind().SetGroupVersionKind(to)
	return out, nil
}

// eventFromCore converts a core/v1 Event, which is the storage version, to events.k8s.io/v1.
func eventFromCore(e *corev1.Event) *eventsv1.Event {
	out := &eventsv1.Event{
		ObjectMeta: e.ObjectMeta, EventTime: e.EventTime,
		ReportingController: e.ReportingController, ReportingInstance: e.ReportingInstance,
		Action: e.Action, Reason: e.Reason, Regarding: e.InvolvedObject, Related: e.Related, Note: e.Message, Type: e.Type,
		DeprecatedSource: e.Source, DeprecatedFirstTimestamp: e.FirstTimestamp, DeprecatedLastTimestamp: e.LastTimestamp,
		DeprecatedCount: e.Count,
	}
	if e.Series != nil {
		out.Series = &eventsv1.EventSeries{Count: e.Series.Count, LastObservedTime: e.Series.LastObservedTime}
	}
	return out
}

func eventToCore(e *eventsv1.Event) *corev1.Event {
	out := &corev1.Event{
		ObjectMeta: e.ObjectMeta, EventTime: e.EventTime,
		ReportingController: e.ReportingController, ReportingInstance: e.ReportingInstance,
		Action: e.Action, Reason: e.Reason, InvolvedObject: e.Regarding, Related: e.Related, Message: e.Note, Type: e.Type,
		Source: e.DeprecatedSource, FirstTimestamp: e.DeprecatedFirstTimestamp, LastTimestamp: e.DeprecatedLastTimestamp,
		Count: e.DeprecatedCount,
	}
	if e.Series != nil {
		out.Series = &corev1.EventSeries{Count: e.Series.Count, LastObservedTime: e.Series.LastObservedTime}
	}
	return out
}
