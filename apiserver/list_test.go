package apiserver_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
)

func names(list *unstructured.Unstructured) (out []string) {
	items, _ := list.Object["items"].([]any)
	for _, item := range items {
		out = append(out, (&unstructured.Unstructured{Object: item.(map[string]any)}).GetName())
	}
	return out
}

func continueOf(list *unstructured.Unstructured) string {
	token, _, _ := unstructured.NestedString(list.Object, "metadata", "continue")
	return url.QueryEscape(token)
}

// The pages of a list are a consistent snapshot.
func TestPagesAreOneSnapshot(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	for i := range 5 {
		h.must("POST", configMaps, "", configMap(fmt.Sprintf("m%d", i), ""))
	}
	first := h.must("GET", configMaps+"?limit=2", "", "")
	require.Equal(t, []string{"m0", "m1"}, names(first))
	rest, _, _ := unstructured.NestedFieldNoCopy(first.Object, "metadata", "remainingItemCount")
	require.EqualValues(t, 3, rest)
	h.must("DELETE", configMaps+"/m3", "", "")
	h.must("POST", configMaps, "", configMap("m11", ""))
	second := h.must("GET", configMaps+"?limit=2&continue="+continueOf(first), "", "")
	require.Equal(t, []string{"m2", "m3"}, names(second), "deleted since")
	require.Equal(t, first.GetResourceVersion(), second.GetResourceVersion())
	third := h.must("GET", configMaps+"?limit=2&continue="+continueOf(second), "", "")
	require.Equal(t, []string{"m4"}, names(third))
	require.Empty(t, continueOf(third))
	require.Equal(t, []string{"m0", "m1", "m11", "m2", "m4"}, names(h.must("GET", configMaps, "", "")),
		"in the order of names")
}

// A page with selectors is full, however many other objects are between the selected ones.
func TestPagesOfSelected(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	for i := range 20 {
		h.must("POST", configMaps, "", configMap(fmt.Sprintf("m%02d", i), fmt.Sprintf(`"even":"%v"`, i%2 == 0)))
	}
	var got []string
	token := ""
	for {
		page := h.must("GET", configMaps+"?limit=3&labelSelector=even%3Dtrue&continue="+token, "", "")
		got = append(got, names(page)...)
		if token = continueOf(page); token == "" {
			break
		}
		require.Len(t, names(page), 3)
	}
	require.Len(t, got, 10)
	require.IsIncreasing(t, got)
}

func TestListAcrossNamespaces(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	h.must("POST", "/api/v1/namespaces", "", `{"metadata":{"name":"other"}}`)
	h.must("POST", configMaps, "", configMap("a", ""))
	h.must("POST", "/api/v1/namespaces/other/configmaps", "", configMap("b", ""))
	require.Equal(t, []string{"a", "b"}, names(h.must("GET", "/api/v1/configmaps", "", "")))
	require.Equal(t, []string{"b"}, names(h.must("GET", "/api/v1/configmaps?fieldSelector=metadata.namespace%3Dother", "",
		"")))
	require.Equal(t, []string{"b"}, names(h.must("GET", "/api/v1/configmaps?fieldSelector=metadata.name%3Db", "", "")))
	require.Empty(t, names(h.must("GET", configMaps+"?fieldSelector=metadata.namespace%3Dother", "", "")))
	items, ok := h.must("GET", "/api/v1/namespaces/other/secrets", "", "").Object["items"].([]any)
	require.True(t, ok && items != nil, "an empty list is a list")
}

// After compaction a client can continue a list at the current revision.
func TestContinueExpired(t *testing.T) {
	store := memory.New(memory.Options{})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	h := newHost(t, apiserver.Options{Store: store})
	for i := range 4 {
		h.must("POST", configMaps, "", configMap(fmt.Sprintf("m%d", i), ""))
	}
	for _, selector := range []string{"", "&labelSelector=none!%3Dsuch"} {
		first := h.must("GET", configMaps+"?limit=2"+selector, "", "")
		h.must("POST", configMaps, "", configMap("m4"+fmt.Sprint(len(selector)), ""))
		now := h.must("GET", configMaps, "", "").GetResourceVersion()
		revision, err := strconv.ParseInt(now, 10, 64)
		require.NoError(t, err)
		require.NoError(t, store.Compact(revision))

		w := h.ask("GET", configMaps+"?limit=2&continue="+continueOf(first)+selector, "", "")
		require.Equal(t, http.StatusGone, w.Code)
		expired := &unstructured.Unstructured{}
		require.NoError(t, expired.UnmarshalJSON(w.Body.Bytes()))
		require.Equal(t, "Expired", expired.Object["reason"])
		require.Contains(t, expired.Object["message"], "results in an inconsistent list")

		rest := h.must("GET", configMaps+"?limit=2&continue="+continueOf(expired)+selector, "", "")
		require.Equal(t, []string{"m2", "m3"}, names(rest))
		require.NotEqual(t, first.GetResourceVersion(), rest.GetResourceVersion())
		rest = h.must("GET", configMaps+"?continue="+continueOf(rest)+selector, "", "")
		require.Contains(t, names(rest), "m4"+fmt.Sprint(len(selector)))
	}
}

// Invalid continue tokens are rejected.
func TestContinueTokens(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	for _, token := range []string{"x", "e30", "bnVsbA", "W10",
		"eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIuLi8uLi9jb3JlL3NlY3JldHMvIn0", // ../../core/secrets/
		"eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MCwic3RhcnQiOiJhIn0",                         // revision 0
		"eyJ2IjoidjIiLCJydiI6MSwic3RhcnQiOiJhIn0",                                         // version v2
	} {
		require.Contains(t, h.refused(http.StatusBadRequest, "GET", configMaps+"?limit=1&continue="+token, "", ""),
			"continue key is not valid", token)
	}
	require.Contains(t, h.refused(http.StatusGatewayTimeout, "GET", configMaps+"?resourceVersion=999999", "", ""),
		"Too large resource version")
}

// A list that is copied from stored JSON equals one that is encoded from objects.
func TestListCopied(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	for i := range 3 {
		h.must("POST", configMaps, "", configMap(fmt.Sprintf("m%d", i), `"t":"a"`))
	}
	h.must("POST", "/apis/apps/v1/namespaces/default/deployments", "",
		`{"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},`+
			`"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`)
	h.must("POST", "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers", "",
		`{"metadata":{"name":"h"},"spec":{"maxReplicas":3,"targetCPUUtilizationPercentage":50,`+
			`"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"}}}`)
	for _, path := range []string{
		configMaps, "/api/v1/configmaps", "/api/v1/namespaces", "/api/v1/namespaces/default/secrets",
		"/apis/apps/v1/deployments",
		"/apis/autoscaling/v1/horizontalpodautoscalers", "/apis/autoscaling/v2/horizontalpodautoscalers",
	} {
		copied := h.must("GET", path, "", "")
		// A selector that selects everything is not seen to do so.
		made := h.must("GET", path+"?labelSelector=none!%3Dsuch", "", "")
		require.Equal(t, made, copied, path)
	}
	first := h.must("GET", configMaps+"?limit=2", "", "")
	require.Equal(t, []string{"m0", "m1"}, names(first))
	require.Equal(t, []string{"m2"}, names(h.must("GET", configMaps+"?limit=2&continue="+continueOf(first), "", "")))
}
