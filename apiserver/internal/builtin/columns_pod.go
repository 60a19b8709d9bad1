package builtin

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

func pods() printer {
	type object = *corev1.Pod
	spec, status := corev1.PodSpec{}.SwaggerDoc(), corev1.PodStatus{}.SwaggerDoc()
	restarts := column[object]{
		definition: metav1.TableColumnDefinition{
			Name: "Restarts", Type: "string",
			Description: "The number of times the containers in this pod have been restarted and when the last container in " +
				"this pod has restarted.",
		},
		cell: func(p object, since resources.Since) any {
			s := summarize(p)
			text := strconv.Itoa(s.restarts)
			if s.restarts != 0 && !s.lastRestart.IsZero() {
				text += " (" + sinceKnown(since, s.lastRestart) + " ago)"
			}
			return text
		},
	}
	p := newPrinter(append([]column[object]{
		name[object](),
		col("Ready", "string", "The aggregate readiness state of this pod for accepting traffic.", func(p object) any {
			s := summarize(p)
			return fmt.Sprintf("%d/%d", s.ready, s.containers)
		}),
		col("Status", "string", "The aggregate status of the containers in this pod.", func(p object) any {
			return summarize(p).reason
		}),
		restarts,
		age[object](),
	}, wide(
		col("IP", "string", status["podIP"], func(p object) any {
			if len(p.Status.PodIPs) == 0 {
				return none
			}
			return cmp.Or(p.Status.PodIPs[0].IP, none)
		}),
		col("Node", "string", spec["nodeName"], func(p object) any { return cmp.Or(p.Spec.NodeName, none) }),
		col("Nominated Node", "string", status["nominatedNodeName"], func(p object) any {
			return cmp.Or(p.Status.NominatedNodeName, none)
		}),
		col("Readiness Gates", "string", spec["readinessGates"], func(p object) any { return readinessGates(p) }),
	)...)...)
	p.conditions = func(obj any) []metav1.TableRowCondition {
		message := map[corev1.PodPhase]string{corev1.PodSucceeded: "The pod has completed successfully.",
			corev1.PodFailed: "The pod failed."}
		phase := obj.(*corev1.Pod).Status.Phase
		if message[phase] == "" {
			return nil
		}
		return []metav1.TableRowCondition{{
			Type: metav1.RowCompleted, Status: metav1.ConditionTrue, Reason: string(phase), Message: message[phase],
		}}
	}
	return p
}

func readinessGates(p *corev1.Pod) string {
	if len(p.Spec.ReadinessGates) == 0 {
		return none
	}
	open := 0
	for _, gate := range p.Spec.ReadinessGates {
		if hasCondition(p, gate.ConditionType) {
			open++
		}
	}
	return fmt.Sprintf("%d/%d", open, len(p.Spec.ReadinessGates))
}

// hasCondition reports whether the first condition of a type has status True.
func hasCondition(p *corev1.Pod, of corev1.PodConditionType) bool {
	i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == of })
	return i >= 0 && p.Status.Conditions[i].Status == corev1.ConditionTrue
}

// A podSummary summarizes the status of a Pod for one row.
type podSummary struct {
	ready, containers int
	reason            string
	restarts          int
	lastRestart       time.Time
}

// summarize computes the columns of a Pod. The reason is, in order of precedence: that the
// Pod is being deleted, why an init container has not finished, why a container is waiting
// or terminated, the phase.
func summarize(p *corev1.Pod) podSummary {
	s := podSummary{containers: len(p.Spec.Containers), reason: cmp.Or(p.Status.Reason, string(p.Status.Phase))}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonSchedulingGated {
			s.reason = corev1.PodReasonSchedulingGated
		}
	}
	sidecars := map[string]bool{}
	for _, c := range p.Spec.InitContainers {
		if sidecars[c.Name] = c.RestartPolicy != nil &&
			*c.RestartPolicy == corev1.ContainerRestartPolicyAlways; sidecars[c.Name] {
			s.containers++
		}
	}
	running, initializing := s.initialize(p, sidecars)
	if !initializing || hasCondition(p, corev1.PodInitialized) {
		s.restarts, s.lastRestart = running.restarts, running.lastRestart
		s.run(p)
	}
	terminal := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	switch {
	case p.DeletionTimestamp == nil:
	case p.Status.Reason == "NodeLost":
		s.reason = "Unknown"
	case !terminal:
		s.reason = "Terminating"
	}
	return s
}

// count adds a container's restarts.
func (s *podSummary) count(c *corev1.ContainerStatus) {
	s.restarts += int(c.RestartCount)
	if t := c.LastTerminationState.Terminated; t != nil && s.lastRestart.Before(t.FinishedAt.Time) {
		s.lastRestart = t.FinishedAt.Time
	}
}

// initialize visits the init containers up to the first that has not finished. running
// counts the restarts of sidecars, that is, of restartable init containers; initializing is
// true if an init container has not finished.
func (s *podSummary) initialize(p *corev1.Pod, sidecars map[string]bool) (running podSummary, initializing bool) {
	for i := range p.Status.InitContainerStatuses {
		c := &p.Status.InitContainerStatuses[i]
		sidecar, ended := sidecars[c.Name], c.State.Terminated
		s.count(c)
		if sidecar {
			running.count(c)
		}
		switch {
		case ended != nil && ended.ExitCode == 0:
			continue
		case sidecar && c.Started != nil && *c.Started:
			if c.Ready {
				s.ready++
			}
			continue
		case ended != nil:
			s.reason = "Init:" + endReason(ended)
		case c.State.Waiting != nil && c.State.Waiting.Reason != "" && c.State.Waiting.Reason != "PodInitializing":
			s.reason = "Init:" + c.State.Waiting.Reason
		default:
			s.reason = fmt.Sprintf("Init:%d/%d", i, len(p.Spec.InitContainers))
		}
		return running, true
	}
	return running, false
}

// endReason returns the reason of a terminated container, or its signal or exit code.
func endReason(t *corev1.ContainerStateTerminated) string {
	switch {
	case t.Reason != "":
		return t.Reason
	case t.Signal != 0:
		return fmt.Sprintf("Signal:%d", t.Signal)
	}
	return fmt.Sprintf("ExitCode:%d", t.ExitCode)
}

// run visits the containers of an initialized Pod. The reason of the first container takes
// precedence over those of the others.
func (s *podSummary) run(p *corev1.Pod) {
	running, failure := false, ""
	for i := len(p.Status.ContainerStatuses) - 1; i >= 0; i-- {
		c := &p.Status.ContainerStatuses[i]
		s.count(c)
		switch {
		case c.State.Waiting != nil && c.State.Waiting.Reason != "":
			s.reason = c.State.Waiting.Reason
		case c.State.Terminated != nil:
			s.reason = endReason(c.State.Terminated)
			if c.State.Terminated.ExitCode != 0 {
				failure = s.reason
			}
		case c.Ready && c.State.Running != nil:
			running = true
			s.ready++
		}
	}
	if s.reason != "Completed" {
		return
	}
	// One container completed: the reason depends on the others.
	ready := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
	switch {
	case running && ready:
		s.reason = "Running"
	case failure != "":
		s.reason = failure
	case running:
		s.reason = "NotReady"
	}
}
