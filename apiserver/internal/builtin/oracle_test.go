package builtin_test

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pmezard/go-difflib/difflib"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/pkg/util/parsers"
	"sigs.k8s.io/randfill"

	"github.com/tenure-ssa/tenure/strategy"

	"github.com/tenure-ssa/tenure/apiserver/admission"
	"github.com/tenure-ssa/tenure/apiserver/internal/builtin"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// These tests use k8s.io/kubernetes as the oracle: for random objects of each built-in kind, package strategy must set
// the same defaults.
//
//	SEEDS=1000:200000 go test ./apiserver/internal/builtin -run TestOracle
//
// SEEDS, in the form FIRST:NUMBER, selects other seeds.

// now is the time of all fields of random objects.
var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// fuzz calls compare for each seed of a run: the seeds of SEEDS, or a few in CI.
func fuzz(t *testing.T, number int64, compare func(seed int64)) {
	first := int64(0)
	if text := os.Getenv("SEEDS"); text != "" {
		_, err := fmt.Sscanf(text, "%d:%d", &first, &number)
		require.NoError(t, err)
	}
	for seed := first; seed < first+number; seed++ {
		compare(seed)
	}
}

// subject is a built-in kind at one version.
type subject struct{ *resources.Resource }

// subjects returns the kinds that package strategy has, except kinds that a conversion changes.
func subjects(t *testing.T) (out []subject) {
	for _, g := range builtin.Groups(builtin.Options{}) {
		for _, v := range g.Versions {
			for _, r := range v.Resources {
				if _, ok := strategy.NewObject(r.GVK()); ok && r.Prefix != "" && r.Stored == r.GVK() {
					out = append(out, subject{r})
				}
			}
		}
	}
	require.Greater(t, len(out), 45)
	return out
}

// zero returns an empty object of the kind.
func (s subject) zero(t *testing.T) admission.Object {
	obj, err := builtin.SchemeOf(s.Group).New(s.GVK())
	require.NoError(t, err)
	return obj.(admission.Object)
}

// words are strings that defaults and strategies compare with, and others.
var words = strings.Fields(`a b ClusterIP NodePort LoadBalancer ExternalName None RollingUpdate Recreate OnDelete
	Always Never IfNotPresent TCP UDP HTTP HTTPS Local Cluster ClientIP Container Pod PersistentVolumeClaim Resource Pods
	External Object ContainerResource Utilization Indexed NonIndexed User Group ServiceAccount ExactCount All Filesystem
	Block Limited Exempt Queue Reject Exact Prefix Ignore Fail Equivalent Immediate Retain Delete Opaque Webhook Ingress
	Egress rbac.authorization.k8s.io SingleStack PreferDualStack IPv4 IPv6 Unconfined Localhost RuntimeDefault File
	FallbackToLogsOnError Shared Managed i i:1 i:latest r:80/i i:latest@sha256:x ko://x/y UPPER i:v_1 example.com/UPPER
	example.com:80/a/b:latest i@sha256:0123456789012345678901234567890123456789012345678901234567890123
	i:latest@sha256:0123456789012345678901234567890123456789012345678901234567890123`)

// quantities are different spellings of quantities.
var quantities = strings.Fields("0 1 1m 0.5 0.0005 0.1m 100n 1Gi 1.5Gi 1e3 2k 1000m 0.3 123456789u -1 -0.0005")

var resourceNames = []corev1.ResourceName{"cpu", "memory", "storage", "ephemeral-storage", "hugepages-2Mi", "pods",
	"example.com/gpu"}

func filler(seed int64) *randfill.Filler {
	nilChance := []float64{0.3, 0.6, 0.85}[seed%3]
	return randfill.NewWithSeed(seed).NilChance(nilChance).NumElements(1, 2).MaxDepth(14).Funcs(
		func(s *string, c randfill.Continue) {
			*s = ""
			if c.Float64() > nilChance {
				*s = words[c.Intn(len(words))]
			}
		},
		func(i *int32, c randfill.Continue) { *i = int32(c.Intn(4)) },
		func(i *int64, c randfill.Continue) { *i = int64(c.Intn(4)) },
		func(q *resource.Quantity, c randfill.Continue) {
			*q = resource.MustParse(quantities[c.Intn(len(quantities))])
		},
		func(l *corev1.ResourceList, c randfill.Continue) {
			if c.Float64() < nilChance {
				return
			}
			*l = corev1.ResourceList{}
			for range 2 {
				(*l)[resourceNames[c.Intn(len(resourceNames))]] = resource.MustParse(quantities[c.Intn(len(quantities))])
			}
		},
		func(v *intstr.IntOrString, c randfill.Continue) {
			*v = intstr.FromInt32(int32(c.Intn(3)))
			if c.Bool() {
				*v = intstr.FromString(words[c.Intn(3)])
			}
		},
		func(v *metav1.Time, c randfill.Continue) { *v = metav1.NewTime(now) },
		func(v *metav1.MicroTime, c randfill.Continue) { *v = metav1.NewMicroTime(now) },
		func(v *metav1.Duration, c randfill.Continue) { v.Duration = time.Duration(c.Intn(3)) * time.Second },
		func(v *runtime.RawExtension, c randfill.Continue) { v.Raw = []byte(`{"a":1}`) },
		func(v *metav1.FieldsV1, c randfill.Continue) { *v = metav1.FieldsV1{} },
		func(v *metav1.ObjectMeta, c randfill.Continue) {
			*v = metav1.ObjectMeta{Name: "n"}
			if c.Bool() {
				v.Labels = map[string]string{"a": "b"}
			}
		},
		func(v *[]byte, c randfill.Continue) { *v = []byte("b") },
	)
}

// random returns a random object of a kind, as a client may send it in JSON.
func (s subject) random(t *testing.T, seed int64) runtime.Object {
	obj := s.zero(t)
	filler(seed).Fill(obj)
	vary(reflect.ValueOf(obj), rand.New(rand.NewSource(seed)))
	obj.GetObjectKind().SetGroupVersionKind(s.GVK())
	obj.SetName("n")
	if s.Namespaced {
		obj.SetNamespace("default")
	}
	data, err := json.Marshal(obj)
	require.NoError(t, err)
	out := s.zero(t)
	require.NoError(t, json.Unmarshal(data, out))
	out.GetObjectKind().SetGroupVersionKind(s.GVK())
	return out
}

// vary replaces all strings of named types by words, because a filler sets them to random letters. It sets some
// pointers to nil, because a filler function sets all of them. It keeps times, because a server sets a missing time to
// the time of the request.
func vary(v reflect.Value, r *rand.Rand) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.CanSet() && v.Type() != reflect.TypeFor[*metav1.Time]() && r.Intn(3) == 0 {
			v.SetZero()
		}
		if !v.IsNil() {
			vary(v.Elem(), r)
		}
	case reflect.Struct:
		if strings.HasPrefix(v.Type().Name(), "RollingUpdate") {
			return // kube-apiserver's conversion sets fields of strategies of other types, which its validation rejects
		}
		for i := range v.NumField() {
			vary(v.Field(i), r)
		}
	case reflect.Slice:
		for i := range v.Len() {
			vary(v.Index(i), r)
		}
	case reflect.String:
		if v.CanSet() && v.Len() > 0 && v.Type() != reflect.TypeFor[string]() {
			v.SetString(words[r.Intn(len(words))])
		}
	}
}

// decoded returns the result of kube-apiserver decoding an object, at the version of the object.
func (s subject) decoded(t *testing.T, obj runtime.Object) runtime.Object {
	obj = obj.DeepCopyObject()
	scheme := builtin.SchemeOf(s.Group)
	scheme.Default(obj)
	internal, err := scheme.ConvertToVersion(obj, runtime.InternalGroupVersioner)
	require.NoError(t, err)
	out, err := scheme.ConvertToVersion(internal, s.GroupVersion())
	require.NoError(t, err)
	return out
}

// text returns an object as JSON, with sorted names, one value on a line.
func (s subject) text(t *testing.T, obj runtime.Object) string {
	obj.GetObjectKind().SetGroupVersionKind(s.GVK())
	obj.(admission.Object).SetAnnotations(nil) // conversions add some
	data, err := json.Marshal(obj)
	require.NoError(t, err)
	var tree any
	require.NoError(t, json.Unmarshal(data, &tree))
	data, err = json.MarshalIndent(tree, "", " ")
	require.NoError(t, err)
	return string(data)
}

func difference(want, got string) string {
	if want == got {
		return ""
	}
	out, _ := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{A: difflib.SplitLines(want), B: difflib.SplitLines(got),
		FromFile: "kube-apiserver", ToFile: "strategy", Context: 6})
	return out
}

// TestOracleDefaults compares defaults.
func TestOracleDefaults(t *testing.T) {
	for _, s := range subjects(t) {
		t.Run(s.GroupResource().String()+"."+s.Version, func(t *testing.T) {
			fuzz(t, 60, func(seed int64) {
				obj := s.random(t, seed)
				ours := obj.DeepCopyObject()
				strategy.SetDefaults(ours)
				require.Empty(t, difference(s.text(t, s.decoded(t, obj)), s.text(t, ours)), "seed %d", seed)
			})
		})
	}
}

// TestOracleImages compares the pull policies of images.
func TestOracleImages(t *testing.T) {
	parts := strings.Split("a|b.c|UPPER|localhost|:|/|//|@|:80|:latest|latest|_|__|-|.|@sha256:| |://|[::1]", "|")
	parts = append(parts, strings.Repeat("0f", 32))
	fuzz(t, 20000, func(seed int64) {
		r := rand.New(rand.NewSource(seed))
		image := ""
		for range 1 + r.Intn(6) {
			image += parts[r.Intn(len(parts))]
		}
		_, tag, _, _ := parsers.ParseImageName(image)
		want := corev1.PullIfNotPresent
		if tag == "latest" {
			want = corev1.PullAlways
		}
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: image}}}}
		strategy.SetDefaults(pod)
		require.Equal(t, want, pod.Spec.Containers[0].ImagePullPolicy, "seed %d: %q", seed, image)
	})
}
