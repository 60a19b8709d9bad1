package apiserver_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/tenure-ssa/tenure/apiserver"
)

// The heap may grow by maxHeapPerByte for each byte of a body, and by minHeap for a small body. A custom resource with
// very many small maps, such as {"a":1} in a list, takes the most: the smallest Go map takes 300 bytes, and the body is
// in memory three times: decoded, in its stored form, and as its field set. A ConfigMap takes a tenth of that. A small
// body may use the fixed part of each limit: for structs, for YAML, and for patches.
const (
	maxHeapPerByte = 192
	minHeap        = 48 << 20
)

// heapOf returns the maximum growth of the heap while do runs, with frequent garbage collections.
func heapOf(do func()) int {
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	runtime.GC()
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	read := func() int {
		metrics.Read(sample)
		return int(sample[0].Value.Uint64())
	}
	before, peak := read(), 0
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for ticks := time.NewTicker(time.Millisecond); ; {
			select {
			case <-stop:
				ticks.Stop()
				return
			case <-ticks.C:
				peak = max(peak, read())
			}
		}
	}()
	do()
	close(stop)
	<-stopped
	return max(peak, read()) - before
}

// requireHeap sends a request and requires that it takes no more memory than the size of its body allows.
func requireHeap(t *testing.T, h *host, why, method, path, contentType, body string) (code int) {
	t.Helper()
	var answer string
	heap := heapOf(func() {
		w := h.ask(method, path, contentType, body)
		code, answer = w.Code, w.Body.String()
	})
	if !raceDetector() { // the race detector takes memory too
		require.LessOrEqual(t, heap, minHeap+maxHeapPerByte*len(body), "%s: %d bytes: %d %s", why, len(body), code,
			shortened(answer))
	}
	require.Less(t, code, http.StatusInternalServerError, "%s: %s", why, shortened(answer))
	t.Logf("%s: %d: %d of %d bytes, %d for each byte: %s", why, code, heap, len(body), heap/len(body),
		answer[:min(len(answer), 150)])
	return code
}

const hostileSize = 100_000 // size of a body

// repeated returns a text, repeated with commas to about hostileSize.
func repeated(text string) string {
	return strings.Repeat(text+",", hostileSize/(len(text)+1)) + text
}

// members returns members of a JSON object with different names, up to hostileSize.
func members(prefix, value string) string {
	var b strings.Builder
	for i := 0; b.Len() < hostileSize; i++ {
		fmt.Fprintf(&b, `"%s%x":%s,`, prefix, i, value)
	}
	return strings.TrimSuffix(b.String(), ",")
}

func deepOf(spec string) string {
	return `{"apiVersion":"example.com/v1","kind":"Deep","metadata":{"name":"d"},"spec":` + spec + `}`
}

func mapOf(rest string) string {
	return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"},` + rest + `}`
}

// allBodies makes tests try all bodies instead of a selection. BODIES=all sets it.
var allBodies = os.Getenv("BODIES") == "all"

// TestMemoryOfBodies checks that no body, in any form, takes more memory than its size allows (spec rule 12.9).
func TestMemoryOfBodies(t *testing.T) {
	const inYAML, asProtobuf = "application/yaml", "application/vnd.kubernetes.protobuf"
	h := newHost(t, apiserver.Options{})
	h.must("POST", crdPath, "", deepDefinition)
	h.must("POST", configMaps, "", mapOf(`"data":{"k":"v"}`))
	h.must("POST", deeps, "", deepOf("{}"))
	h.must("POST", pods, "", longPod(3))
	scalar := "x: &a " + strings.Repeat("x", hostileSize/2) + "\n"
	aliases := "y: [" + strings.Repeat("*a,", hostileSize/6) + "]\n"
	const head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\n"
	const dry = "?dryRun=All"
	patched := func(spec string) string { return `{"spec":` + spec + `}` }
	values := map[string]string{
		"empty maps": "[" + repeated(`{}`) + "]", "small maps": "[" + repeated(`{"a":1}`) + "]",
		"numbers": "[" + repeated(`0`) + "]", "texts": "[" + repeated(`""`) + "]", "lists": "[" + repeated(`[[]]`) + "]",
		"names": "{" + members("", `{}`) + "}", "a name again and again": "{" + repeated(`"a":{"b":1}`) + "}",
		"deep maps": "[" + repeated(strings.Repeat(`{"a":`, 900)+"1"+strings.Repeat("}", 900)) + "]",
	}
	for name, v := range values {
		if !allBodies && !slices.Contains([]string{"empty maps", "small maps", "names"}, name) {
			continue
		}
		requireHeap(t, h, name+" to create", "POST", deeps+dry, "", deepOf(v))
		requireHeap(t, h, name+" to apply", "PATCH", deeps+"/d"+dry+"&fieldManager=m", applyPatch, deepOf(v))
		requireHeap(t, h, name+" to merge", "PATCH", deeps+"/d"+dry, mergePatch, patched(v))
		requireHeap(t, h, name+" to add", "PATCH", deeps+"/d"+dry, jsonPatch, `[{"op":"add","path":"/spec","value":`+v+`}]`)
		requireHeap(t, h, name+" in YAML", "POST", deeps+dry, inYAML, deepOf(v))
		requireHeap(t, h, name+" that are not declared", "POST", configMaps+dry, "", mapOf(`"x":`+v))
		requireHeap(t, h, name+" of containers", "PATCH", pods+"/long"+dry, strategicPatch, `{"spec":{"containers":`+v+`}}`)
		requireHeap(t, h, name+" of containers to merge", "PATCH", pods+"/long"+dry, mergePatch,
			`{"spec":{"containers":`+v+`}}`)
		requireHeap(t, h, name+" of delete options", "DELETE", configMaps+"/m"+dry, "", `{"dryRun":`+v+`}`)
		requireHeap(t, h, name+" of operations", "PATCH", configMaps+"/m"+dry, jsonPatch, v)
		requireHeap(t, h, name+" of field sets", "POST", configMaps+dry, "", `{"metadata":{"name":"n","managedFields":[{`+
			`"manager":"a","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":`+v+`}]}}`)
	}
	for _, row := range []struct {
		why, method, path, contentType, body string
		code                                 int
	}{
		{"aliases of a long scalar", "POST", configMaps + dry, inYAML, head + scalar + aliases, 413},
		{"the same to apply", "PATCH", configMaps + "/m" + dry + "&fieldManager=m", applyPatch, head + scalar + aliases, 413},
		{"the same with a content type that can't be parsed", "PATCH", configMaps + "/m" + dry + "&fieldManager=m",
			applyPatch + ";;", head + scalar + aliases, 413},
		{"the same of delete options", "DELETE", configMaps + "/m" + dry, inYAML, scalar + aliases, 413},
		{"the same of a collection", "DELETE", configMaps + dry, inYAML, scalar + aliases, 413},
		{"the same of an eviction", "POST", pods + "/long/eviction" + dry, inYAML, scalar + aliases, 413},
		{"the same of a token", "POST", "/api/v1/namespaces/default/serviceaccounts/default/token", inYAML, scalar + aliases,
			413},
		{"the same of a review", "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", inYAML, scalar + aliases,
			413},
		{"a long scalar in merge keys", "POST", configMaps + dry, inYAML, head + "x: &a {k: " +
			strings.Repeat("x", hostileSize/2) + "}\ny: [" + strings.Repeat("{<<: *a},\n", 10_000) + "]\n", 413},
		{"a list of a kind", "POST", pods + dry, inYAML, "kind: !!binary UG9kTGlzdA==\napiVersion: v1\nx: &a [" +
			strings.Repeat("{},", 20_000) + "]\nitems: *a\n", 413},
		{"aliases in place of empty containers", "POST", pods + dry, inYAML, "spec:\n  containers: [&a {}, " +
			strings.Repeat("*a,\n", 40_000) + "]\n", 413},
		{"aliases of aliases of empty maps", "POST", deeps + dry, inYAML, deepAliases(), 413},
		{"an escaped name", "POST", pods + dry, "", `{"spec":{"\u0063ontainers":[` + repeated("{}") + `]}}`, 413},
		{"keys without values in YAML", "POST", configMaps + dry, inYAML, head + "x: [" +
			strings.Repeat("{a},", 100_000) + "]", 413},
		{"numbers of a list in protobuf", "POST", pods + dry, asProtobuf, protobuf("v1", "Pod",
			message(2, message(14, message(4, []byte(strings.Repeat("\x01", hostileSize)))))), 422},
	} {
		require.Equal(t, row.code, requireHeap(t, h, row.why, row.method, row.path, row.contentType, row.body), row.why)
	}
}

// deepAliases returns a custom resource with a million empty maps, which it makes with YAML aliases.
func deepAliases() string {
	out := "apiVersion: example.com/v1\nkind: Deep\nmetadata: {name: d}\nspec:\n  a0: &a0 {}\n"
	for i := range 6 {
		out += fmt.Sprintf("  a%d: &a%d [%s]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d,", i), 10))
	}
	return out
}

// A step is a field on the path from a struct to a nested field.
type step struct {
	name   string // in JSON
	number int    // in protobuf
	kind   reflect.Kind
}

// largest calls found for each list or map below a type whose elements are large structs.
func largest(t reflect.Type, path []step, seen map[reflect.Type]bool, found func(path []step)) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	for i := 0; t.Kind() == reflect.Struct && i < t.NumField(); i++ {
		f := t.Field(i)
		tag := strings.Split(f.Tag.Get("protobuf"), ",")
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if len(tag) < 2 || name == "" { // an embedded struct without a JSON name is another message in protobuf
			continue
		}
		number, _ := strconv.Atoi(tag[1])
		to := f.Type
		for to.Kind() == reflect.Pointer {
			to = to.Elem()
		}
		fieldPath := append(path[:len(path):len(path)], step{name, number, to.Kind()})
		if to.Kind() == reflect.Slice || to.Kind() == reflect.Map {
			if to = to.Elem(); to.Kind() == reflect.Struct && to.Size() > 200 && !seen[to] {
				found(fieldPath)
			}
		}
		if !seen[to] {
			seen[to] = true
			largest(to, fieldPath, seen, found)
		}
	}
}

// inJSON returns an object that has as many empty elements at a path as fit into hostileSize.
func inJSON(gvk schema.GroupVersionKind, path []step) string {
	open, end := fmt.Sprintf(`{"apiVersion":%q,"kind":%q`, gvk.GroupVersion(), gvk.Kind), "}"
	open += ","
	for i, s := range path {
		open += fmt.Sprintf("%q:", s.name)
		last := i == len(path)-1
		switch {
		case s.kind == reflect.Slice && last:
			open, end = open+"["+repeated("{}"), "]"+end
		case s.kind == reflect.Map && last:
			open, end = open+"{"+members("", "0"), "}"+end
		case s.kind == reflect.Slice:
			open, end = open+"[{", "}]"+end
		case s.kind == reflect.Map:
			open, end = open+`{"k":{`, "}}"+end
		default:
			open, end = open+"{", "}"+end
		}
	}
	return open + end
}

// inProtobuf is inJSON for protobuf.
func inProtobuf(gvk schema.GroupVersionKind, path []step) string {
	last := path[len(path)-1]
	tag := binary.AppendUvarint(nil, uint64(last.number)<<3|2)
	var raw []byte
	for i := 0; len(raw) < hostileSize; i++ {
		var element []byte
		if last.kind == reflect.Map {
			element = message(1, []byte(strconv.FormatInt(int64(i), 36)))
		}
		raw = append(append(append(raw, tag...), byte(len(element))), element...)
	}
	for i := len(path) - 2; i >= 0; i-- {
		if path[i].kind == reflect.Map {
			raw = append(message(1, []byte("k")), message(2, raw)...)
		}
		raw = message(path[i].number, raw)
	}
	version, kind := gvk.ToAPIVersionAndKind()
	return protobuf(version, kind, raw)
}

// TestMemoryOfElements sends bodies with as many empty elements as fit into a list or a map, for each Go type with
// large elements. A body whose kind does not match its path is decoded before it is rejected, so one path serves all
// kinds.
func TestMemoryOfElements(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	found := 0
	seen := map[reflect.Type]bool{}
	try := func(path string, gvk schema.GroupVersionKind, fieldPath []step) {
		if found++; !allBodies && found%4 != 0 {
			return
		}
		for contentType, body := range map[string]string{
			"": inJSON(gvk, fieldPath), "application/vnd.kubernetes.protobuf": inProtobuf(gvk, fieldPath),
		} {
			what := fmt.Sprintf("%v at %v in %s", gvk, fieldPath, contentType)
			code := requireHeap(t, h, what, "POST", path, contentType, body)
			require.Equal(t, http.StatusRequestEntityTooLarge, code, "%v at %v", gvk, fieldPath)
		}
	}
	for gvk, goType := range legacyscheme.Scheme.AllKnownTypes() {
		if gvk.Version == "v1" && strings.HasPrefix(goType.PkgPath(), "k8s.io/api/") {
			largest(goType, nil, seen, func(at []step) { try(configMaps, gvk, at) })
		}
	}
	largest(reflect.TypeFor[apiextensionsv1.CustomResourceDefinition](), nil, seen, func(at []step) {
		try(crdPath, apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"), at)
	})
	require.Greater(t, found, 50)
}

// TestLargeBodies checks that bodies that people and controllers write, also with aliases, do not reach the limits.
func TestLargeBodies(t *testing.T) {
	const inYAML = "application/yaml"
	h := newHost(t, apiserver.Options{})
	h.must("POST", crdPath, "", deepDefinition)
	var addresses, items, lines, properties strings.Builder
	for i := range 1_000 {
		fmt.Fprintf(&addresses,
			`,{"ip":"10.0.%d.%d","nodeName":"n","targetRef":{"kind":"Pod","namespace":"d","name":"p-%d"}}`, i/250, i%250+1, i)
	}
	for i := range 20_000 {
		fmt.Fprintf(&items, `,{"a":%d,"b":""}`, i)
		fmt.Fprintf(&lines, "- a: %d\n  b: ''\n", i)
	}
	for i := range 20_000 {
		fmt.Fprintf(&properties, `"p%d":{"type":"string","description":"a text of some length, and more"},`, i)
	}
	crd := strings.Replace(deepDefinition, `"x-kubernetes-preserve-unknown-fields":true`,
		`"properties":{`+strings.TrimSuffix(properties.String(), ",")+`}`, 1)
	require.Greater(t, len(crd), 1_400_000)
	const meta = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n  namespace: default\n"
	csv := strings.Repeat("    12345,6,\"a\": [1, {}]\n", 35_000)
	for _, row := range []struct{ why, method, path, contentType, body string }{
		{"1,000 addresses", "POST", "/api/v1/namespaces/default/endpoints", "", `{"metadata":{"name":"e"},"subsets":[{` +
			`"addresses":[` + addresses.String()[1:] + `],"ports":[{"port":80}]}]}`},
		{"a definition of 1.4 MB", "PUT", crdPath + "/deeps.example.com?dryRun=All", "", strings.Replace(crd,
			`{"metadata":{`, `{"metadata":{"resourceVersion":"`+h.must("GET", crdPath+"/deeps.example.com", "", "").
				GetResourceVersion()+`",`, 1)},
		{"a ConfigMap of 1 MB", "POST", configMaps + "?dryRun=All", "", mapOf(`"data":{"k":"` +
			strings.Repeat("x,[{", 1_000_000/4) + `"}`)},
		{"a text of 800 KB in YAML", "POST", configMaps + "?dryRun=All", inYAML, meta + "data:\n  k: |\n" + csv[:800_000]},
		{"20,000 items", "POST", deeps + "?dryRun=All", "", deepOf("[" + items.String()[1:] + "]")},
		{"20,000 items to apply", "PATCH", deeps + "/d?fieldManager=m&dryRun=All", applyPatch,
			deepOf("[" + items.String()[1:] + "]")},
		{"20,000 items in YAML", "POST", deeps + "?dryRun=All", inYAML, "apiVersion: example.com/v1\nkind: Deep\n" +
			"metadata: {name: d}\nspec:\n" + lines.String()},
		{"aliases of 500 KB in YAML", "PATCH", configMaps + "/c?fieldManager=m&dryRun=All", applyPatch, meta +
			"data:\n  k: &a " + strings.Repeat("x", 400_000) + "\n  l: *a\n"},
	} {
		w := h.ask(row.method, row.path, row.contentType, row.body)
		require.Less(t, w.Code, 300, "%s: %s", row.why, shortened(w.Body.String()))
	}
}

// TestClosedServersAreCollected: nothing outside of a server keeps it, its decoded objects and its caches alive, so a
// test suite may start any number of them.
func TestClosedServersAreCollected(t *testing.T) {
	collected := make(chan bool)
	func() {
		s, err := apiserver.New(context.Background(), apiserver.Options{Token: "token"})
		require.NoError(t, err)
		runtime.AddCleanup(s, func(done chan bool) { close(done) }, collected)
		h := &host{t, s}
		h.must(http.MethodPost, "/api/v1/namespaces/default/configmaps", "",
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`)
		for _, path := range []string{"/api/v1/namespaces/default/configmaps/a", "/api/v1/configmaps", "/openapi/v3"} {
			require.Equal(t, http.StatusOK, h.ask(http.MethodGet, path, "", "").Code)
		}
		require.NoError(t, s.Close())
	}()
	require.Eventually(t, func() bool {
		runtime.GC()
		select {
		case <-collected:
			return true
		default:
			return false
		}
	}, time.Minute, 10*time.Millisecond)
}
