package strategy

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// prepare changes a Go struct of k8s.io/api, in place, as kube-apiserver does before it stores a write to the main
// resource. It does the work of the strategies and of the admission plugins that are enabled by default, except work
// that needs the state of the server, such as allocating an address. It restores live's values of fields that the write
// must not change, and sets fields that depend on other fields. live is nil for a create; otherwise, it has obj's type.
// prepare does not restore the reset fields of the write, such as the status, because a plan restores them. It does not
// change objects of other types.
func prepare(obj, live runtime.Object) {
	switch o := obj.(type) {
	case *corev1.Namespace:
		if before, ok := live.(*corev1.Namespace); ok {
			// Only writes to the finalize subresource remove these finalizers.
			o.Spec.Finalizers = slices.Clone(before.Spec.Finalizers)
		} else if !slices.Contains(o.Spec.Finalizers, corev1.FinalizerKubernetes) {
			o.Spec.Finalizers = append(o.Spec.Finalizers, corev1.FinalizerKubernetes)
		}
	case *corev1.Service:
		if before, ok := live.(*corev1.Service); ok {
			keepAllocated(&o.Spec, &before.Spec)
			dropForNewType(o, before)
		}
	case *corev1.ServiceAccount:
		keepSecretNames(o)
	case *corev1.PersistentVolumeClaim:
		before := &corev1.PersistentVolumeClaim{}
		if live, ok := live.(*corev1.PersistentVolumeClaim); ok {
			before = live
		}
		dropOtherSource(&o.Spec, &before.Spec)
		syncDataSources(&o.Spec)
	case *corev1.Node:
		if live == nil {
			addNotReadyTaint(&o.Spec)
		}
	case *corev1.Pod:
		if before, ok := live.(*corev1.Pod); ok {
			keepPriority(&o.Spec, &before.Spec)
		} else {
			setPointer(&o.Spec.Priority, 0)
			setPointer(&o.Spec.PreemptionPolicy, corev1.PreemptLowerPriority)
		}
		addDefaultTolerations(&o.Spec)
	}
}

// isPrepared are the kinds that prepare may change.
var isPrepared = map[schema.GroupKind]bool{
	{Kind: "Namespace"}: true, {Kind: "Service"}: true, {Kind: "ServiceAccount"}: true,
	{Kind: "PersistentVolumeClaim"}: true, {Kind: "Pod"}: true, {Kind: "Node"}: true,
}

// prepareOf returns a function for plans.Options.Prepare that applies prepare to Go structs and to trees; nil for kinds
// that prepare does not change. The function does not change a tree that does not fit the Go type.
func prepareOf(gvk schema.GroupVersionKind) func(obj, live runtime.Object) {
	if !isPrepared[gvk.GroupKind()] {
		return nil
	}
	return func(obj, live runtime.Object) {
		u, isTree := obj.(*unstructured.Unstructured)
		if !isTree {
			prepare(obj, live)
			return
		}
		decoded, err := structOf(gvk, u.Object)
		if err != nil {
			return
		}
		var before runtime.Object
		if l, ok := live.(*unstructured.Unstructured); ok && l != nil {
			if before, err = structOf(gvk, l.Object); err != nil {
				return
			}
		}
		prepare(decoded, before)
		if out, err := newTree(decoded); err == nil {
			u.Object = out
		}
	}
}

// addNotReadyTaint adds the taint that keeps Pods from a new Node until a controller finds the Node ready.
func addNotReadyTaint(s *corev1.NodeSpec) {
	notReady := corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}
	for _, t := range s.Taints {
		if t.MatchTaint(&notReady) {
			return
		}
	}
	s.Taints = append(s.Taints, notReady)
}

// keepSecretNames keeps only the name in each reference of a ServiceAccount to a Secret, because the Secrets are in the
// namespace of the ServiceAccount.
func keepSecretNames(o *corev1.ServiceAccount) {
	for i := range o.Secrets {
		o.Secrets[i] = corev1.ObjectReference{Name: o.Secrets[i].Name}
	}
}

// isVolumeSource reports whether the dataSource of a PersistentVolumeClaim may have this kind. Other kinds need
// dataSourceRef.
func isVolumeSource(s *corev1.TypedLocalObjectReference) bool {
	if s == nil {
		return false
	}
	group := ""
	if s.APIGroup != nil {
		group = *s.APIGroup
	}
	return group == "" && s.Kind == "PersistentVolumeClaim" ||
		group == "snapshot.storage.k8s.io" && s.Kind == "VolumeSnapshot"
}

// dropOtherSource removes a dataSource that [isVolumeSource] rejects, unless the claim has a dataSourceRef or live has
// a source.
func dropOtherSource(s, live *corev1.PersistentVolumeClaimSpec) {
	if live.DataSource == nil && live.DataSourceRef == nil && s.DataSourceRef == nil && !isVolumeSource(s.DataSource) {
		s.DataSource = nil
	}
}

// syncDataSources copies dataSource to dataSourceRef, or the reverse, if only one of them is set. Only dataSourceRef
// can have a namespace; a reference with a namespace is not copied.
func syncDataSources(s *corev1.PersistentVolumeClaimSpec) {
	switch source, ref := s.DataSource, s.DataSourceRef; {
	case source != nil && ref == nil:
		source = source.DeepCopy()
		s.DataSourceRef = &corev1.TypedObjectReference{APIGroup: source.APIGroup, Kind: source.Kind, Name: source.Name}
	case source == nil && ref != nil && (ref.Namespace == nil || *ref.Namespace == ""):
		ref = ref.DeepCopy()
		s.DataSource = &corev1.TypedLocalObjectReference{APIGroup: ref.APIGroup, Kind: ref.Kind, Name: ref.Name}
	}
}

// defaultTolerationSeconds is how long a Pod stays on a node that is not ready or not reachable. It is the default of
// the admission plugin DefaultTolerationSeconds.
const defaultTolerationSeconds = int64(300)

// keepPriority keeps the priority that a Pod got at its creation.
func keepPriority(s, live *corev1.PodSpec) {
	if s.Priority == nil {
		s.Priority = live.Priority
	}
	if s.PreemptionPolicy == nil {
		s.PreemptionPolicy = live.PreemptionPolicy
	}
}

// addDefaultTolerations adds tolerations for the taints not-ready and unreachable, unless the Pod already tolerates
// them.
func addDefaultTolerations(s *corev1.PodSpec) {
	for _, taint := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		tolerated := slices.ContainsFunc(s.Tolerations, func(t corev1.Toleration) bool {
			return (t.Key == taint || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "")
		})
		if !tolerated {
			seconds := defaultTolerationSeconds
			s.Tolerations = append(s.Tolerations, corev1.Toleration{
				Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
				TolerationSeconds: &seconds,
			})
		}
	}
}
