package apiserver_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/apiserver"
)

// conversionWebhook starts a conversion webhook and returns the field spec.conversion of a definition that uses it.
func conversionWebhook(t *testing.T, convert func(u *unstructured.Unstructured, to string) error) string {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := &apiextensionsv1.ConversionReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer := &apiextensionsv1.ConversionResponse{UID: review.Request.UID,
			Result: metav1.Status{Status: metav1.StatusSuccess}}
		for _, raw := range review.Request.Objects {
			u := &unstructured.Unstructured{}
			err := u.UnmarshalJSON(raw.Raw)
			if err == nil {
				u.SetAPIVersion(review.Request.DesiredAPIVersion)
				err = convert(u, review.Request.DesiredAPIVersion)
			}
			if err != nil {
				answer.Result = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
				break
			}
			answer.ConvertedObjects = append(answer.ConvertedObjects, runtime.RawExtension{Object: u})
		}
		review.Request, review.Response = nil, answer
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return fmt.Sprintf(`{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],`+
		`"clientConfig":{"url":"%s/convert","caBundle":%q}}}`,
		server.URL, base64.StdEncoding.EncodeToString(ca))
}

// reversed reverses the text in a widget.
func reversed(u *unstructured.Unstructured, to string) error {
	_, err := reverser{}.Convert(nil, []*unstructured.Unstructured{u}, to)
	return err
}

// TestConversionWebhook checks that the server calls the conversion webhook for reads and writes at versions other than
// the storage version.
func TestConversionWebhook(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	h.must("POST", crdPath, "", definition("v1", conversionWebhook(t, reversed)))
	made := h.must("POST", widgetsV2, "",
		`{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"name":"w"},"spec":{"text":"abc"}}`)
	require.Equal(t, "abc", spec(made, "text"))
	require.Equal(t, "cba", spec(h.must("GET", widgetsV1+"/w", "", ""), "text"))
	require.Equal(t, "abc", spec(h.must("GET", widgetsV2+"/w", "", ""), "text"))
	require.Equal(t, []string{"w"}, names(h.must("GET", widgetsV2, "", "")))
	watch := h.watch(widgetsV2 + "?watch=true")
	seen := <-watch
	require.Equal(t, "abc", spec(&seen.Object, "text"))
	applied := h.must("PATCH", widgetsV2+"/w?fieldManager=m&force=true", applyPatch,
		`{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"name":"w"},"spec":{"text":"xyz"}}`)
	require.Equal(t, "xyz", spec(applied, "text"))
	require.Equal(t, "zyx", spec(h.must("GET", widgetsV1+"/w", "", ""), "text"))
	h.must("DELETE", widgetsV2+"/w", "", "")
}

// TestConversionWebhookErrors checks that the errors of webhooks equal kube-apiserver's.
func TestConversionWebhookErrors(t *testing.T) {
	for _, row := range []struct{ name, conversion, says, why string }{
		{"refuses", conversionWebhook(t, func(*unstructured.Unstructured, string) error { return fmt.Errorf("not today") }),
			"conversion webhook for example.com/v1, Kind=Widget failed: not today", "its own words"},
		{"another name", conversionWebhook(t, func(u *unstructured.Unstructured,
			_ string) error {
			u.SetName("other")
			return nil
		}),
			"returned invalid object: must have the same name", "it may change no metadata but labels and annotations"},
		{"too large", conversionWebhook(t, func(u *unstructured.Unstructured, _ string) error {
			return unstructured.SetNestedField(u.Object, strings.Repeat("x", 10<<20), "spec", "text")
		}), "http: request body too large", "its answer is not read to the end"},
		{"nobody there", webhook, "conversion webhook for example.com/v1, Kind=Widget failed: Post " +
			"\"https://localhost/convert", "no connection"},
		{"a service", `{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],` +
			`"clientConfig":{"service":{"namespace":"ns","name":"hook"}}}}`,
			"service ns/hook can't be reached without a cluster: expected a clientConfig with a url",
			"there is no cluster behind the server"},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := newHost(t, apiserver.Options{})
			h.must("POST", crdPath, "", definition("v1", row.conversion))
			h.must("POST", widgetsV1, "", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"}}`)
			require.Contains(t, h.refused(http.StatusInternalServerError, "GET", widgetsV2+"/w", "", ""), row.says, row.why)
			h.must("GET", widgetsV1+"/w", "", "")
		})
	}
}

// TestConversionWebhookRecovers checks that a failed conversion is tried again: a controller's webhook responds only
// after the controller has started.
func TestConversionWebhookRecovers(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	ready := false
	h.must("POST", crdPath, "", definition("v1", conversionWebhook(t, func(u *unstructured.Unstructured, to string) error {
		if !ready {
			return fmt.Errorf("not ready")
		}
		return reversed(u, to)
	})))
	h.must("POST", widgetsV1, "",
		`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"text":"abc"}}`)
	require.Contains(t, h.refused(http.StatusInternalServerError, "GET", widgetsV2, "", ""), "not ready")
	ready = true
	require.Equal(t, []string{"w"}, names(h.must("GET", widgetsV2, "", "")))
	require.Equal(t, "cba", spec(h.must("GET", widgetsV2+"/w", "", ""), "text"))
}
