package strategy

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	require.NoError(t, u.UnmarshalJSON([]byte(text)), text)
	return u
}

func spec(t *testing.T, u *unstructured.Unstructured) string {
	data, err := json.Marshal(u.Object["spec"])
	require.NoError(t, err)
	return string(data)
}

// TestPrepareOf shows fields that a server restores or derives in an update. Plans in cmd/internal/cli test that
// nothing is missing.
func TestPrepareOf(t *testing.T) {
	for _, row := range []struct{ why, kind, live, merged, want string }{
		{"finalizers are for the finalize subresource", "Namespace", `{"finalizers":["kubernetes"]}`, `{"finalizers":[]}`,
			`{"finalizers":["kubernetes"]}`},
		{"an empty cluster IP is the allocated one", "Service", `{"clusterIP":"10.0.0.7","clusterIPs":["10.0.0.7"],` +
			`"ports":[{"port":80,"nodePort":30001}],"type":"NodePort"}`, `{"clusterIP":"","ports":[{"port":80}],` +
			`"type":"NodePort"}`, `{"clusterIP":"10.0.0.7","clusterIPs":["10.0.0.7"],"ports":[{"nodePort":30001,"port":80,` +
			`"targetPort":0}],"type":"NodePort"}`},
		{"the older field follows", "PersistentVolumeClaim", `{}`, `{"dataSourceRef":{"kind":"PersistentVolumeClaim",` +
			`"name":"x"}}`, `{"dataSource":{"apiGroup":null,"kind":"PersistentVolumeClaim","name":"x"},"dataSourceRef":{` +
			`"apiGroup":null,"kind":"PersistentVolumeClaim","name":"x"},"resources":{}}`},
	} {
		gvk := schema.GroupVersionKind{Version: "v1", Kind: row.kind}
		object := func(text string) *unstructured.Unstructured {
			return parse(t, `{"apiVersion":"v1","kind":"`+row.kind+`","spec":`+text+`}`)
		}
		live, merged := object(row.live), object(row.merged)
		given := live.DeepCopy()
		prepareOf(gvk)(merged, live)
		require.JSONEq(t, row.want, spec(t, merged), row.why)
		require.Equal(t, given, live, row.why)
	}
	require.Nil(t, prepareOf(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}))
	later := parse(t, `{"apiVersion":"v1","kind":"Pod","spec":{"later":1}}`)
	given := later.DeepCopy()
	prepareOf(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})(later, given)
	require.Equal(t, given, later, "a field of a later version: the tree is left alone")
}

// TestTreesOfExtensions has trees of kinds whose Go types are in other modules.
func TestTreesOfExtensions(t *testing.T) {
	crd := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	service := schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}
	for _, row := range []struct {
		why  string
		kind schema.GroupVersionKind
		spec string
		want string
	}{
		{"names and conversion have defaults", crd, `{"names":{"kind":"Thing","plural":"things","shortNames":[]}}`,
			`{"names":{"kind":"Thing","plural":"things","singular":"thing","listKind":"ThingList"},` +
				`"conversion":{"strategy":"None"}}`},
		{"so has the port of a webhook", crd,
			`{"conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"caBundle":"",` +
				`"service":{"namespace":"n","name":"s"}}}}}`, `{"conversion":{"strategy":"Webhook","webhook":{"clientConfig":{` +
				`"service":{"namespace":"n","name":"s","port":443}}}}}`},
		{"zero values of a schema are left out, but not those of its JSON, nor fields that are named as they", crd,
			`{"conversion":{"strategy":"None"},"versions":[{"deprecated":false,"schema":{"openAPIV3Schema":{` +
				`"nullable":false,"description":"","default":{"description":"","a":null},"enum":["",false],` +
				`"properties":{"description":{"title":""}},"items":{},"required":[]}}}]}`,
			`{"conversion":{"strategy":"None"},"versions":[{"schema":{"openAPIV3Schema":{` +
				`"default":{"description":"","a":null},"enum":["",false],"properties":{"description":{}},"items":{}}}}]}`},
		{"an APIService has a port", service, `{"group":"","service":{"name":"s"},"insecureSkipTLSVerify":false}`,
			`{"service":{"name":"s","port":443}}`},
		{"a local APIService has none", service, `{"group":"g","service":null}`, `{"group":"g"}`},
	} {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		require.NoError(t, json.Unmarshal([]byte(`{"spec":`+row.spec+`}`), &u.Object))
		given := runtime.DeepCopyJSON(u.Object)
		tree := u.Object
		defaulterOf(row.kind)(u)
		require.JSONEq(t, row.want, spec(t, u), row.why)
		require.Equal(t, given, tree, row.why)
		once := spec(t, u)
		defaulterOf(row.kind)(u)
		require.Equal(t, once, spec(t, u), "twice is once")
	}
}
