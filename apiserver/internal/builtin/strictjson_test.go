package builtin

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
)

// strictBodies are bodies of requests, with why each is here, and whether the fast decoder accepts it.
var strictBodies = []struct {
	name, why, body string
	accepted        bool
}{
	{
		"Pod",
		"what clients send",
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","labels":{"a":"b"},"creationTimestamp":null,` +
			`"managedFields":[{"fieldsV1":{"f:a": {} }}]},"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"0.10",` +
			`"memory":1}},"ports":[{"containerPort":80}],"livenessProbe":{"httpGet":{"port":"http"}},"env":[]}],` +
			`"nodeSelector":{},"activeDeadlineSeconds":3},"status":{"startTime":"2026-01-01T00:00:00Z"}}`,
		true,
	},
	{"null", "it means nothing", `{"apiVersion":"v1","kind":"Pod","metadata":null,"spec":{"containers":null,` +
		`"hostNetwork":null,"nodeName":null,"securityContext":null,"overhead":{"cpu":null}}}`, true},
	{"no kind", "a serializer fills it in", `{"metadata":{"name":"a"}}`, false},
	{"another kind", "it is an error", `{"apiVersion":"v1","kind":"Widget"}`, false},
	{"duplicate name", "clients are told", `{"apiVersion":"v1","kind":"Pod","kind":"Pod"}`, false},
	{
		"duplicate key of a map",
		"clients are told",
		`{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"a":"b","a":"c"}}}`,
		false,
	},
	{"unknown field", "clients are told", `{"apiVersion":"v1","kind":"Pod","spec":{"x":1}}`, false},
	{"another case", "it is an unknown field", `{"apiVersion":"v1","kind":"Pod","Spec":{}}`, false},
	{"not UTF-8", "it is replaced", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"` + "\xff" + `"}}`, false},
	{"half of a surrogate pair", "it is replaced", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"\ud800"}}`, false},
	{"fraction", "an integer has none", `{"apiVersion":"v1","kind":"Pod","spec":{"priority":1.0}}`, false},
	{"exponent", "an integer has none", `{"apiVersion":"v1","kind":"Pod","spec":{"priority":1e2}}`, false},
	{"too large", "it does not fit", `{"apiVersion":"v1","kind":"Pod","spec":{"priority":4294967296}}`, false},
	{"string for a list", "it is an error", `{"apiVersion":"v1","kind":"Pod","spec":{"containers":"c"}}`, false},
	{"trailing data", "it is an error", `{"apiVersion":"v1","kind":"Pod"}{}`, false},
	{"space", "it means nothing", " {\n\t\"apiVersion\" : \"v1\" , \"kind\":\"Pod\"}\r\n", true},
	{"Secret", "base64", `{"apiVersion":"v1","kind":"Secret","data":{"a":"Yg==","b":"","c":null}}`, true},
	{"Secret, broken lines", "one decoder skips them", `{"apiVersion":"v1","kind":"Secret","data":{"a":"Y\ng=="}}`, false},
	{"Secret, list of bytes", "one decoder accepts it", `{"apiVersion":"v1","kind":"Secret","data":{"a":[1,2]}}`, false},
	{"definition", "it has schemas", `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","spec":{` +
		`"versions":[{"name":"v1","schema":{"openAPIV3Schema":{"type":"object","default":{"a": [1, 2.50]},"items":[],` +
		`"additionalProperties":true,"maximum":1e3,"enum":[null,"a"],"x-kubernetes-int-or-string":true}}}]}}`, true},
	{"Deployment", "it is common", `{"apiVersion":"apps/v1","kind":"Deployment","spec":{"replicas":2,"strategy":{` +
		`"rollingUpdate":{"maxSurge":"25%","maxUnavailable":1}},"template":{"spec":{"containers":[]}}}}`, true},
	{
		"Event",
		"it has microseconds",
		`{"apiVersion":"events.k8s.io/v1","kind":"Event","eventTime":"2026-01-01T00:00:00.500000Z"}`,
		true,
	},
	{"ControllerRevision", "it has any JSON", `{"apiVersion":"apps/v1","kind":"ControllerRevision","data":{"a": [ 1 ]},` +
		`"revision":1}`, true},
	{
		"policy",
		"it has a duration",
		`{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","spec":{"minAvailable":"50%"},` +
			`"status":{"disruptedPods":{"a":"2026-01-01T00:00:00Z","b":null}}}`,
		true,
	},
}

// strategiesByKind are all strategies of stored kinds.
func strategiesByKind(t testing.TB) map[schema.GroupVersionKind]*kind {
	out := map[schema.GroupVersionKind]*kind{}
	for _, g := range Groups(Options{Now: time.Now}) {
		for _, v := range g.Versions {
			for _, r := range v.Resources {
				s, err := r.Strategy()
				require.NoError(t, err)
				if k, ok := s.(*kind); ok && r.Prefix != "" {
					out[k.gvk] = k
				}
			}
		}
	}
	return out
}

// checkStrict compares both decoders of a kind, and reports whether the fast one accepts data.
func checkStrict(t *testing.T, k *kind, data []byte) bool {
	info, _ := runtime.SerializerInfoForMediaType(k.Serializers(), runtime.ContentTypeJSON)
	fast, ok := k.DecodeStrict(data)
	if ok {
		slow, got, err := info.StrictSerializer.Decode(data, &k.gvk, k.New())
		require.NoError(t, err, "%s", data)
		require.Equal(t, k.gvk, *got)
		require.True(t, reflect.DeepEqual(slow, runtime.Object(fast)), "%s\n%#v\n%#v", data, slow, fast)
	}
	if lax, laxOK := k.decodeFast(data, k.gvk); laxOK {
		slow := k.New()
		require.NoError(t, kjson.UnmarshalCaseSensitivePreserveInts(data, slow), "%s", data)
		require.True(t, reflect.DeepEqual(slow, lax), "%s\n%#v\n%#v", data, slow, lax)
	}
	return ok
}

// TestStrictJSON: both decoders agree on what the fast one accepts.
func TestStrictJSON(t *testing.T) {
	strategies := strategiesByKind(t)
	for _, row := range strictBodies {
		t.Run(row.name, func(t *testing.T) {
			accepted := false
			for _, k := range strategies {
				accepted = checkStrict(t, k, []byte(row.body)) || accepted
			}
			require.Equal(t, row.accepted, accepted, row.why)
		})
	}
}

// TestStrictJSONOfEveryKind: the fast decoder accepts an object of every kind, so that no Go type is decoded twice.
func TestStrictJSONOfEveryKind(t *testing.T) {
	for _, k := range strategiesByKind(t) {
		obj := k.New()
		fill(reflect.ValueOf(obj).Elem(), 0)
		obj.GetObjectKind().SetGroupVersionKind(k.gvk)
		data, err := json.Marshal(obj)
		require.NoError(t, err)
		require.True(t, checkStrict(t, k, data), "%s: %s", k.gvk, data)
	}
}

// fill sets the fields of a struct, down to a depth, as far as any value fits.
func fill(v reflect.Value, depth int) {
	if _, ok := v.Addr().Interface().(json.Unmarshaler); ok || depth > 12 || !v.CanSet() && depth > 0 {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), depth+1)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), depth+1)
		}
	case reflect.String:
		v.SetString("a")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint8:
		if v.CanInt() {
			v.SetInt(7)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		value := reflect.New(v.Type().Elem()).Elem()
		fill(value, depth+1)
		v.SetMapIndex(reflect.ValueOf("a").Convert(v.Type().Key()), value)
	}
}

// FuzzStrictJSON compares the decoders of several kinds.
func FuzzStrictJSON(f *testing.F) {
	for _, row := range strictBodies {
		f.Add([]byte(row.body))
	}
	all := strategiesByKind(f)
	var some []*kind
	for _, gvk := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "Pod"}, {Version: "v1", Kind: "Secret"},
		{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "apps", Version: "v1", Kind: "ControllerRevision"},
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		{Group: "events.k8s.io", Version: "v1", Kind: "Event"},
		{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
	} {
		require.NotNil(f, all[gvk], gvk)
		some = append(some, all[gvk])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, k := range some {
			checkStrict(t, k, data)
		}
	})
}
