package kubernetes

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/registry/rest"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolume"
	"k8s.io/kubernetes/plugin/pkg/admission/defaulttolerationseconds"
	"k8s.io/kubernetes/plugin/pkg/admission/nodetaint"
	"k8s.io/utils/ptr"
	smd "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/tenure-ssa/tenure/typed/fieldpath"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// TestOracleTraits compares what strategies allow.
func TestOracleTraits(t *testing.T) {
	for _, s := range subjects(t) {
		theirs := upstream()[s.GroupKind()]
		update := theirs.update[""]
		require.Equal(t, theirs.NamespaceScoped(), s.Namespaced, s.name())
		require.Equal(t, update.AllowCreateOnUpdate(), s.strategy.AllowCreateOnUpdate(), s.name())
		require.Equal(t, update.AllowUnconditionalUpdate(), s.strategy.AllowUnconditionalUpdate(), s.name())
	}
}

// owned are fields of all that filters of reset fields tell apart, but for resizePolicy of containers, which upstream's
// filter forgets (difference 14).
const owned = `{"f:metadata":{"f:labels":{"f:a":{}},"f:deletionTimestamp":{},"f:ownerReferences":{}},"f:spec":{` +
	`"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:image":{},"f:resources":{"f:limits":{}}}},` +
	`"f:initContainers":{"k:{\"name\":\"i\"}":{".":{},"f:image":{},"f:resources":{}}},` +
	`"f:ephemeralContainers":{"k:{\"name\":\"d\"}":{".":{},"f:image":{}}},"f:nodeName":{}},` +
	`"f:status":{"f:conditions":{"k:{\"type\":\"T\"}":{".":{},"f:status":{}}},"f:certificate":{},"f:phase":{}}}`

// TestOracleResetFields compares the fields that managers own after a write through a subresource. Scales have no reset
// fields: the write is one of spec.replicas.
func TestOracleResetFields(t *testing.T) {
	for _, s := range subjects(t) {
		version := smd.APIVersion(s.GroupVersion().String())
		for _, sub := range s.updates() {
			if sub == "scale" {
				continue
			}
			var filter smd.Filter
			switch strategy := upstream()[s.GroupKind()].update[sub].(type) {
			case rest.ResetFieldsFilterStrategy:
				filter = strategy.GetResetFieldsFilter()[version]
			case rest.ResetFieldsStrategy:
				if set := strategy.GetResetFields()[version]; set != nil {
					filter = smd.NewExcludeSetFilter(set)
				}
			}
			want := &smd.Set{}
			require.NoError(t, want.FromJSON(strings.NewReader(owned)))
			got, err := fieldpath.Parse([]byte(owned))
			require.NoError(t, err)
			if filter != nil {
				want = filter.Filter(want)
			}
			ours := s.strategy.(interface {
				GetResetFieldsFilter(subresource string) fieldpath.Filter
			})
			if own := ours.GetResetFieldsFilter(sub); own != nil {
				got = own.Filter(got)
			}
			data, err := want.ToJSON()
			require.NoError(t, err)
			require.JSONEq(t, string(data), string(got.AppendJSON(nil)), "%s/%s", s.name(), sub)
		}
	}
}

// TestOracleCreate compares objects after PrepareForCreate.
func TestOracleCreate(t *testing.T) {
	for _, s := range subjects(t) {
		t.Run(s.name(), func(t *testing.T) {
			fuzz(t, 8, 1, func(t *testing.T, seed int64) bool {
				obj, _ := s.pair(t, seed)
				ctx := s.request(obj, nil, "")
				want := s.internal(t, obj)
				if !attempt(func() { s.prepareForCreate(t, ctx, want) }) {
					return false
				}
				got := obj.DeepCopyObject().(resources.Object)
				s.strategy.PrepareForCreate(ctx, got)
				s.strategy.Canonicalize(got)
				text := s.masked(t, s.text(t, s.stored(t, want)), obj)
				require.Empty(t, difference(text, s.masked(t, s.text(t, got), obj)), "seed %d", seed)
				return true
			})
		})
	}
}

// TestOracleUpdate compares objects after PrepareForUpdate, for each subresource.
func TestOracleUpdate(t *testing.T) {
	for _, s := range subjects(t) {
		for _, sub := range s.updates() {
			t.Run(s.name()+"/"+sub, func(t *testing.T) {
				fuzz(t, 8, 1/float64(len(s.updates())), func(t *testing.T, seed int64) bool {
					obj, live := s.pair(t, seed)
					ctx := s.request(obj, live, sub)
					want := s.internal(t, obj)
					if !attempt(func() { s.prepareForUpdate(t, ctx, want, s.internal(t, live), sub) }) {
						return false
					}
					got := obj.DeepCopyObject().(resources.Object)
					s.strategy.PrepareForUpdate(got, live, sub)
					s.strategy.Canonicalize(got)
					text := s.masked(t, s.text(t, s.stored(t, want)), obj, live)
					require.Empty(t, difference(text, s.masked(t, s.text(t, got), obj, live)), "seed %d", seed)
					return true
				})
			})
		}
	}
}

// prepareForCreate does to an internal object what kube-apiserver does before it stores it: mutating admission, as far
// as it is enabled by default and this server does it, and the strategy.
func (s subject) prepareForCreate(t *testing.T, ctx context.Context, obj runtime.Object) {
	s.admit(t, obj, nil, "")
	s.begin(t, ctx, obj, nil)
	strategy := upstream()[s.GroupKind()]
	strategy.PrepareForCreate(ctx, obj)
	strategy.Canonicalize(obj)
	s.setTimes(obj)
}

// prepareForUpdate does the same for an update through a subresource.
func (s subject) prepareForUpdate(t *testing.T, ctx context.Context, obj, live runtime.Object, subresource string) {
	s.admit(t, obj, live, subresource)
	if subresource == "" {
		s.begin(t, ctx, obj, live)
	}
	strategy := upstream()[s.GroupKind()].update[subresource]
	strategy.PrepareForUpdate(ctx, obj, live)
	strategy.Canonicalize(obj)
	s.setTimes(obj)
}

func (s subject) admit(t *testing.T, obj, live runtime.Object, subresource string) {
	plugin := defaulttolerationseconds.NewDefaultTolerationSeconds()
	plugin.InspectFeatureGates(utilfeature.DefaultFeatureGate)
	require.NoError(t, plugin.Admit(t.Context(), admission.NewAttributesRecord(obj, live, s.GVK(), "default", "n", s.GVR(),
		subresource, admission.Update, nil, false, requester), nil))
	if live == nil {
		plugin := nodetaint.NewPlugin()
		require.NoError(t, plugin.Admit(t.Context(), admission.NewAttributesRecord(obj, nil, s.GVK(), "", "n", s.GVR(),
			subresource, admission.Create, nil, false, requester), nil))
	}
	pod, ok := obj.(*core.Pod)
	if !ok || subresource != "" {
		return
	}
	// The plugin Priority does this where no PriorityClass is the default.
	if before, ok := live.(*core.Pod); ok {
		if pod.Spec.Priority == nil {
			pod.Spec.Priority = before.Spec.Priority
		}
		if pod.Spec.PreemptionPolicy == nil {
			pod.Spec.PreemptionPolicy = before.Spec.PreemptionPolicy
		}
		return
	}
	if pod.Spec.Priority == nil {
		pod.Spec.Priority = new(int32)
	}
	if pod.Spec.PreemptionPolicy == nil {
		pod.Spec.PreemptionPolicy = ptr.To(core.PreemptLowerPriority)
	}
}

// setTimes sets the times that upstream takes from the clock of the machine.
func (s subject) setTimes(obj runtime.Object) {
	switch o := obj.(type) {
	case *apiregistration.APIService:
		for i := range o.Status.Conditions {
			if c := &o.Status.Conditions[i]; !c.LastTransitionTime.Time.Equal(now) {
				c.LastTransitionTime = metav1.NewTime(later)
			}
		}
	case *core.Pod:
		for i := range o.Status.Conditions {
			if c := &o.Status.Conditions[i]; !c.LastTransitionTime.Time.Equal(now) {
				c.LastTransitionTime = metav1.NewTime(later)
			}
		}
	}
}

func init() {
	persistentvolume.NowFunc = func() metav1.Time { return metav1.NewTime(later) }
}
