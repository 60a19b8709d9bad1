package storage_test

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/kubernetes/scheme"

	stores "github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/bbolt"
	"github.com/tenure-ssa/tenure/apiserver/storage/etcd"
	"github.com/tenure-ssa/tenure/apiserver/storage/etcdtest"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
)

var deploymentCodec = func() runtime.Codec {
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
	return scheme.Codecs.CodecForVersions(info.Serializer, info.Serializer, appsv1.SchemeGroupVersion,
		appsv1.SchemeGroupVersion)
}()

func BenchmarkMemory(b *testing.B) {
	benchmarkStore(b, func(b *testing.B) stores.Store { return memory.New(memory.Options{}) })
}

func BenchmarkBbolt(b *testing.B) {
	benchmarkStore(b, func(b *testing.B) stores.Store {
		store, err := bbolt.Open(filepath.Join(b.TempDir(), "store"), bbolt.Options{})
		require.NoError(b, err)
		return store
	})
}

func BenchmarkEtcd(b *testing.B) {
	server := etcdtest.Start(b)
	prefixes := 0
	benchmarkStore(b, func(b *testing.B) stores.Store {
		prefixes++
		config := clientv3.Config{Endpoints: []string{server.Endpoint}}
		store, err := etcd.Open(b.Context(), etcd.Options{Config: config, Prefix: fmt.Sprint(prefixes)})
		require.NoError(b, err)
		return store
	})
}

func benchmarkStore(b *testing.B, open func(*testing.B) stores.Store) {
	run := func(name string, do func(b *testing.B, s storage.Interface)) {
		b.Run(name, func(b *testing.B) {
			store := open(b)
			defer func() { require.NoError(b, store.Close()) }()
			config := storagebackend.NewDefaultConfig("", deploymentCodec)
			s, destroy, err := store.Open(config.ForResource(schema.GroupResource{Group: "apps", Resource: "deployments"}),
				"/apps/deployments", func() runtime.Object { return &appsv1.Deployment{} },
				func() runtime.Object { return &appsv1.DeploymentList{} })
			require.NoError(b, err)
			defer destroy()
			b.ReportAllocs()
			do(b, s)
		})
	}
	run("create", func(b *testing.B, s storage.Interface) {
		for n := 0; b.Loop(); n++ {
			create(b, s, n)
		}
	})
	run("get", func(b *testing.B, s storage.Interface) {
		create(b, s, 0)
		for b.Loop() {
			require.NoError(b, s.Get(b.Context(), key(0), storage.GetOptions{}, &appsv1.Deployment{}))
		}
	})
	run("update", func(b *testing.B, s storage.Interface) {
		create(b, s, 0)
		for b.Loop() {
			update(b, s)
		}
	})
	run("list of 2000", func(b *testing.B, s storage.Interface) {
		for n := range 2000 {
			create(b, s, n)
		}
		for b.Loop() {
			list := &appsv1.DeploymentList{}
			require.NoError(b, s.GetList(b.Context(), "/apps/deployments", everything, list))
			require.Len(b, list.Items, 2000)
		}
	})
	run("event to 200 watches", func(b *testing.B, s storage.Interface) {
		create(b, s, 0)
		ctx, cancel := context.WithCancel(b.Context())
		var received, done sync.WaitGroup
		for range 200 {
			w, err := s.Watch(ctx, "/apps/deployments", everything)
			require.NoError(b, err)
			<-w.ResultChan()
			done.Go(func() {
				for event := range w.ResultChan() {
					if event.Type == watch.Error {
						panic(event.Object)
					}
					// As a server does.
					if err := deploymentCodec.Encode(event.Object, io.Discard); err != nil {
						panic(err)
					}
					received.Done()
				}
			})
		}
		for b.Loop() {
			received.Add(200)
			update(b, s)
			received.Wait()
		}
		cancel()
		done.Wait()
	})
}

var everything = storage.ListOptions{Predicate: storage.Everything, Recursive: true}

func key(n int) string { return fmt.Sprintf("/apps/deployments/default/a%06d", n) }

func create(b *testing.B, s storage.Interface, n int) {
	require.NoError(b, s.Create(b.Context(), key(n), deployment(n), &appsv1.Deployment{}, 0))
}

func update(b *testing.B, s storage.Interface) {
	require.NoError(b, s.GuaranteedUpdate(b.Context(), key(0), &appsv1.Deployment{}, false, nil, storage.SimpleUpdate(
		func(o runtime.Object) (runtime.Object, error) {
			o.(*appsv1.Deployment).Generation++
			return o, nil
		}), nil))
}

// deployment returns a Deployment of 3.6 kB.
func deployment(n int) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("a%06d", n), Namespace: "default", Generation: 1, UID: "11111111-2222-3333-4444-555555555555",
		Labels: map[string]string{"app": "a", "team": "b"},
		ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: "kubectl", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "apps/v1", FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{},"f:selector":{},"f:template":{}}}`),
		}},
	}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: d.Labels}
	d.Spec.Template.Labels = d.Labels
	for c := range 8 {
		container := corev1.Container{Name: fmt.Sprint("c", c), Image: "registry.example/image:1"}
		for e := range 4 {
			container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprint("VARIABLE_", e), Value: "value"})
		}
		container.Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: int32(8000 + c), Protocol: "TCP"}}
		container.TerminationMessagePath = "/dev/termination-log"
		d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, container)
	}
	return d
}
