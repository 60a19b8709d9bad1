package builtin_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/tenure-ssa/tenure/apiserver/internal/builtin"
)

// Objects are the same JSON, whatever they were encoded as.
func TestToJSON(t *testing.T) {
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(autoscalingv1.AddToScheme(scheme))
	types := serializer.NewCodecFactory(scheme, serializer.WithSerializer(cbor.NewSerializerInfo)).SupportedMediaTypes()
	for _, row := range []struct {
		name string
		obj  runtime.Object
		want string
	}{
		{"a core kind", &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"b": "c"}},
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"b":"c"}}`},
		{"a Scale, of any group's subresources", &autoscalingv1.Scale{
			TypeMeta:   metav1.TypeMeta{APIVersion: "autoscaling/v1", Kind: "Scale"},
			ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: autoscalingv1.ScaleSpec{Replicas: 2}},
			`{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"a"},"spec":{"replicas":2},` +
				`"status":{"replicas":0}}`},
		{"a Status, which is in every group version", &metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Code: 409},
			`{"apiVersion":"v1","kind":"Status","metadata":{},"status":"Failure","code":409}`},
	} {
		for _, info := range types {
			t.Run(row.name+" in "+info.MediaType, func(t *testing.T) {
				data, err := runtime.Encode(info.Serializer, row.obj)
				require.NoError(t, err)
				got, err := builtin.ToJSON(info.MediaType, data)
				require.NoError(t, err)
				require.JSONEq(t, row.want, string(got))
			})
		}
	}
	for _, media := range []string{
		"application/json", "application/yaml", "application/cbor", "application/vnd.kubernetes.protobuf", "",
	} {
		_, err := builtin.ToJSON(media, []byte("k8s\x00{\xff"))
		require.Error(t, err, media)
	}
}
