package conformance_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

const hostContainer = `{"name":"NAME","image":"registry.example/app:1.2.3","command":["/app","--flag=1","--other"],
"ports":[{"name":"http","containerPort":8080,"protocol":"TCP"},
{"name":"metrics","containerPort":9090,"protocol":"TCP"}],
"env":[{"name":"A","value":"1"},{"name":"B","value":"2"},
{"name":"C","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}],
"resources":{"requests":{"cpu":"100m","memory":"64Mi"},"limits":{"memory":"128Mi"}},
"volumeMounts":[{"name":"data","mountPath":"/data"},{"name":"config","mountPath":"/etc/app"}],
"livenessProbe":{"httpGet":{"path":"/healthz","port":8080},"periodSeconds":10},
"readinessProbe":{"httpGet":{"path":"/ready","port":8080}}}`

func hostPodSpec() string {
	return fmt.Sprintf(`{"containers":[%s,%s],"terminationGracePeriodSeconds":30,
"securityContext":{"runAsNonRoot":true,"runAsUser":1000},
"tolerations":[{"key":"dedicated","operator":"Exists","effect":"NoSchedule"}],
"volumes":[{"name":"data","emptyDir":{}},{"name":"config","configMap":{"name":"app"}}]}`,
		strings.Replace(hostContainer, "NAME", "app", 1), strings.Replace(hostContainer, "NAME", "sidecar", 1))
}

const hostStatus = `{"phase":"Running","podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"}],"hostIP":"10.1.0.1",
"startTime":"2026-01-01T00:00:00Z","conditions":[
{"type":"Initialized","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"},
{"type":"Ready","status":"False","lastTransitionTime":"2026-01-01T00:00:00Z","message":"MESSAGE"},
{"type":"ContainersReady","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}],
"containerStatuses":[{"name":"app","image":"registry.example/app:1.2.3","imageID":"x","ready":true,"restartCount":0,
"started":true,"containerID":"c://1","state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}}}]}`

// BenchmarkHostWrites writes Go structs as kube-apiserver's handlers do, with the objects of hosts/kube-apiserver.
func BenchmarkHostWrites(b *testing.B) {
	pod := func(message string) *corev1.Pod {
		p := &corev1.Pod{}
		text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","uid":"u","labels":{"app":"web"}},
"spec":%s,"status":%s}`, hostPodSpec(), strings.Replace(hostStatus, "MESSAGE", message, 1))
		require.NoError(b, json.Unmarshal([]byte(text), p))
		return p
	}
	intent := func(label string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		require.NoError(b, json.Unmarshal(fmt.Appendf(nil, `{"apiVersion":"apps/v1","kind":"Deployment",
"metadata":{"name":"d","labels":{"app":"web","rev":%q}},"spec":{"replicas":3,"selector":{"matchLabels":{"app":"web"}},
"template":{"metadata":{"labels":{"app":"web"}},"spec":%s}}}`, label, hostPodSpec()), &u.Object))
		return u
	}
	none := &corev1.Pod{}
	none.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	pods, err := fieldmanager.New(corev1.SchemeGroupVersion.WithKind("Pod"), openapi.Builtin(),
		fieldmanager.WithEmptyObject(none))
	require.NoError(b, err)
	statuses, err := fieldmanager.New(corev1.SchemeGroupVersion.WithKind("Pod"), openapi.Builtin(),
		fieldmanager.WithSubresource("status"))
	require.NoError(b, err)
	deployments, err := fieldmanager.New(appsv1.SchemeGroupVersion.WithKind("Deployment"), openapi.Builtin())
	require.NoError(b, err)

	created := pod("m0")
	created.UID = ""
	live, err := pods.Update(none, created, "creator")
	require.NoError(b, err)
	live.(*corev1.Pod).UID = "u"
	live, err = statuses.Update(live, func() runtime.Object {
		p := live.DeepCopyObject().(*corev1.Pod)
		p.Status = pod("m1").Status
		return p
	}(), "kubelet")
	require.NoError(b, err)
	now := live.DeepCopyObject().(*corev1.Pod)
	now.Status = pod("m2").Status

	empty := &appsv1.Deployment{}
	empty.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	applied, err := deployments.Apply(empty, intent("1"), "m", true)
	require.NoError(b, err)
	applied.(*appsv1.Deployment).UID = "u"
	for _, row := range []struct {
		name string
		do   func() (runtime.Object, error)
	}{
		{"put-status", func() (runtime.Object, error) { return statuses.Update(live, now, "kubelet") }},
		{"create", func() (runtime.Object, error) { return pods.Update(none, created, "creator") }},
		{"apply-label", func() func() (runtime.Object, error) {
			changed := intent("2")
			return func() (runtime.Object, error) { return deployments.Apply(applied, changed, "m", true) }
		}()},
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
