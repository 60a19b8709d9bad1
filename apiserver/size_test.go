package apiserver_test

import (
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/admission"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
)

// bombs are custom resources with huge defaults: 100 KB for each item of a list, and ten items
// on each level of a chain.
const bombs = "/apis/example.com/v1/namespaces/default/bombs"

func bombDefinition() string {
	chain := `{"type":"object"}`
	for range 12 {
		chain = `{"type":"object","properties":{"a":{"type":"array","default":[{},{},{},{},{},{},{},{},{},{}],"items":` +
			chain + `}}}`
	}
	return fmt.Sprintf(`{"metadata":{"name":"bombs.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
		"names":{"plural":"bombs","singular":"bomb","kind":"Bomb"},"versions":[{"name":"v1","served":true,"storage":true,
		"schema":{"openAPIV3Schema":{"type":"object","properties":{
			"items":{"type":"array","items":{"type":"object","properties":{"text":{"type":"string","default":"%s"}}}},
			"free":{"type":"object","additionalProperties":{"type":"object","properties":{"text":{"type":"string",
				"default":"%[1]s"}}}},
			"chain":%s}}}}]}}`, strings.Repeat("x", 100<<10), chain)
}

func bombOf(name, rest string) string {
	return `{"apiVersion":"example.com/v1","kind":"Bomb","metadata":{"name":"` + name + `"},` + rest + `}`
}

// emptyItems returns a list of n empty items.
func emptyItems(n int) string { return `[` + strings.Repeat("{},", n-1) + `{}]` }

// No request creates an object that exceeds the size limit, or allocates more than a few times
// that size.
func TestObjectSize(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	h.must("POST", crdPath, "", bombDefinition())
	h.must("POST", bombs, "", bombOf("b", `"items":[{},{}]`))
	h.must("POST", configMaps, "", `{"metadata":{"name":"m"},"data":{"a":"`+strings.Repeat("x", 1<<20)+`"}}`)
	h.must("POST", pods, "", `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
	for _, row := range []struct {
		name                            string
		method, path, contentType, body string
		says                            string
		why                             string
	}{
		{"defaults of list items", "POST", bombs, "", bombOf("c", `"items":`+emptyItems(1_400)),
			"items[15].text: the defaults of the object up to here: expected at most 1572864 bytes, got more",
			"4 KB become 140 MB"},
		{"defaults of many list items", "POST", bombs, "", bombOf("c", `"items":`+emptyItems(270_000)), "items[15].text",
			"800 KB become 27 GB"},
		{"defaults of map values", "POST", bombs, "", bombOf("c", `"free":{`+manyNames(1_000)+`}`), ".text",
			"a map's values have defaults as well"},
		{"defaults within defaults", "POST", bombs, "", bombOf("c", `"chain":{}`), "chain.a[0].a[0]",
			"each level has ten times as many items"},
		{"defaults in an update", "PUT", bombs + "/b", "", bombOf("b", `"items":`+emptyItems(1_400)), "items[15].text",
			"an update"},
		{"defaults in an apply", "PATCH", bombs + "/c?fieldManager=m", applyPatch, bombOf("c", `"items":`+emptyItems(1_400)),
			"items[15].text", "an apply"},
		{"defaults in a merge patch", "PATCH", bombs + "/b", mergePatch, `{"items":` + emptyItems(1_400) + `}`,
			"items[15].text", "a merge patch"},
		{"defaults in a JSON patch", "PATCH", bombs + "/b", jsonPatch, `[{"op":"add","path":"/items","value":` +
			emptyItems(1_400) + `}]`, "items[15].text", "a JSON patch"},
		{"copies in a JSON patch", "PATCH", configMaps + "/m", jsonPatch, `[{"op":"copy","from":"/data/a","path":"/data/b"}]`,
			"the object as it is stored: expected at most 1572864 bytes, got 2097", "what is copied is not sent"},
		{"copies in a JSON patch without storing", "PATCH", configMaps + "/m?dryRun=All", jsonPatch,
			`[{"op":"copy","from":"/data/a","path":"/data/b"}]`, "the object as it is stored",
			"a dry run says what a write would"},
		{"strategic merge patch", "PATCH", pods + "/p", strategicPatch, `{"metadata":{"annotations":{"a":"` +
			strings.Repeat("x", 200<<10) + `"}},"spec":{"containers":[{"name":"c","args":["` + strings.Repeat("x", 1500<<10) +
			`"]}]}}`, "spec.containers[0].args[0]: the object as it is stored", "built-in types alike"},
		{"create", "POST", configMaps, "", `{"metadata":{"name":"n"},"binaryData":{"a":"` + strings.Repeat("eHh4", 400<<10) +
			`"}}`, "binaryData.a: the object as it is stored: expected at most 1572864 bytes", "no expansion at all"},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := &host{t, h.Server}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			message := h.refused(http.StatusRequestEntityTooLarge, row.method, row.path, row.contentType, row.body)
			runtime.ReadMemStats(&after)
			require.Contains(t, message, row.says, row.why)
			require.Less(t, len(message), 1_000, "no part of the object")
			if !raceDetector {
				require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(maxAllocated), "memory")
			}
		})
	}
	h.refused(http.StatusNotFound, "GET", bombs+"/c", "", "")
}

func manyNames(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"f%d":{},`, i)
	}
	return b.String() + `"last":{}`
}

// Objects that exceeded the limit before can become smaller and be deleted.
func TestObjectSizeOfStored(t *testing.T) {
	store := memory.New(memory.Options{})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	before := newHost(t, apiserver.Options{Store: store, Limits: apiserver.Limits{Object: 2 << 20}})
	before.must("POST", configMaps, "", `{"metadata":{"name":"m","finalizers":["x.io/f"]},
		"data":{"a":"`+strings.Repeat("x", 900<<10)+`"},
		"binaryData":{"b":"`+strings.Repeat("eHh4", 200<<10)+`"}}`)
	h := newHost(t, apiserver.Options{Store: store})
	h.must("DELETE", configMaps+"/m", "", "")
	require.Contains(t, h.refused(http.StatusRequestEntityTooLarge, "PATCH", configMaps+"/m", mergePatch,
		`{"data":{"c":"more"}}`),
		"data.a: the object as it is stored")
	h.must("PATCH", configMaps+"/m", mergePatch, `{"data":{"a":"less"}}`)
	h.must("PATCH", configMaps+"/m", mergePatch, `{"metadata":{"finalizers":null}}`)
	h.gone(configMaps + "/m")
}

// inflater converts objects to very large ones.
type inflater struct{}

func (inflater) Convert(_ *apiextensionsv1.CustomResourceDefinition, objects []*unstructured.Unstructured,
	to string) ([]*unstructured.Unstructured, error) {
	for _, u := range objects {
		u.SetAPIVersion(to)
		if err := unstructured.SetNestedField(u.Object, strings.Repeat("x", 2<<20), "spec", "text"); err != nil {
			return nil, errors.Join(err)
		}
	}
	return objects, nil
}

func TestObjectSizeOfConverted(t *testing.T) {
	h := newHost(t, apiserver.Options{Hooks: admission.Hooks{Convert: inflater{}}})
	h.must("POST", crdPath, "", definition("v1", webhook))
	h.must("POST", widgetsV1, "", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"}}`)
	for _, row := range []struct{ name, method, path, contentType, body string }{
		{"read", "GET", widgetsV2 + "/w", "", ""},
		{"list", "GET", widgetsV2, "", ""},
		{"create", "POST", widgetsV2, "", `{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"name":"v"}}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := &host{t, h.Server}
			require.Contains(t, h.refused(http.StatusRequestEntityTooLarge, row.method, row.path, row.contentType, row.body),
				"spec.text: the object at version v")
		})
	}
}
