package conformance_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// BenchmarkWrites updates and applies a Deployment that is held as a Go struct.
func BenchmarkWrites(b *testing.B) {
	kind := appsv1.SchemeGroupVersion.WithKind("Deployment")
	m, err := fieldmanager.New(kind, openapi.Builtin())
	require.NoError(b, err)
	newObject := func() *appsv1.Deployment {
		replicas := int32(3)
		d := &appsv1.Deployment{}
		d.SetGroupVersionKind(kind)
		d.ObjectMeta = metav1.ObjectMeta{Name: "web", Namespace: "default", Labels: map[string]string{"app": "web"}}
		d.Spec.Replicas = &replicas
		d.Spec.Selector = &metav1.LabelSelector{MatchLabels: d.Labels}
		d.Spec.Template.Labels = d.Labels
		d.Spec.Template.Spec.Containers = []corev1.Container{{
			Name: "web", Image: "web:1", Ports: []corev1.ContainerPort{{ContainerPort: 80, Protocol: "TCP"}},
			Env:       []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}},
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1")}},
		}}
		return d
	}
	live, err := m.Apply(nil, newObject(), "alice", false)
	require.NoError(b, err)
	stored := live.(*appsv1.Deployment)
	stored.UID = "x"
	scaled := stored.DeepCopy()
	*scaled.Spec.Replicas = 5
	image := stored.DeepCopy()
	image.Spec.Template.Spec.Containers[0].Image = "web:2"
	for _, row := range []struct {
		name string
		do   func() (runtime.Object, error)
	}{
		{"update/replicas", func() (runtime.Object, error) { return m.Update(stored, scaled, "hpa") }},
		{"update/image", func() (runtime.Object, error) { return m.Update(stored, image, "bob") }},
		{"update/nothing", func() (runtime.Object, error) { return m.Update(stored, stored.DeepCopy(), "bob") }},
		{"apply/nothing", func() (runtime.Object, error) { return m.Apply(stored, newObject(), "alice", false) }},
	} {
		b.Run(row.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := row.do(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
