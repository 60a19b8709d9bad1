package apiserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/admission"
)

func allow(*admissionv1.AdmissionRequest, *unstructured.Unstructured) reply { return reply{} }

// TestWebhookRequests checks that webhooks get the same requests as from kube-apiserver, for each verb and subresource.
func TestWebhookRequests(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	h.must("POST", crdPath, "", definition("v1", none))
	h.must("POST", "/api/v1/namespaces/default/pods", "", pod("p", ""))
	h.must("POST", "/api/v1/namespaces/default/pods", "", pod("q", ""))
	h.must("POST", "/api/v1/namespaces/default/serviceaccounts", "", `{"metadata":{"name":"s"}}`)
	h.must("POST", "/apis/apps/v1/namespaces/default/deployments", "", deployment)
	hook := newHook(t, allow)
	h.must("POST", mutatingWebhooks, "", configuration("m", hook.client(), everything, ""))
	h.must("POST", validatingWebhooks, "", configuration("v", hook.client(), everything, ""))
	for _, row := range []struct {
		name, method, path, contentType, body string
		sees                                  []string
		options, why                          string
	}{
		{"create", "POST", configMaps, "", `{"metadata":{"name":"m"}}`, both("CREATE configmaps m"), "CreateOptions",
			"mutating webhooks first"},
		{"generateName", "POST", configMaps, "", `{"metadata":{"generateName":"g-"}}`,
			[]string{"CREATE configmaps ", "CREATE configmaps g-"}, "CreateOptions",
			"the name is generated after mutating admission"},
		{"update", "PUT", configMaps + "/m", "", `{"metadata":{"name":"m"},"data":{"a":"b"}}`, both("UPDATE configmaps m"),
			"UpdateOptions", ""},
		{"patch", "PATCH", configMaps + "/m", mergePatch, `{"data":{"a":"c"}}`, both("UPDATE configmaps m"),
			"UpdateOptions", "kube-apiserver turns PatchOptions into UpdateOptions"},
		{"apply", "PATCH", configMaps + "/m?fieldManager=a&force=true", applyPatch,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"},"data":{"a":"d"}}`, both("UPDATE configmaps m"),
			"UpdateOptions", ""},
		{"apply that creates", "PATCH", configMaps + "/n?fieldManager=a", applyPatch,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"n"}}`, both("CREATE configmaps n"), "CreateOptions",
			"the object does not exist"},
		{"update that creates", "PUT", "/api/v1/namespaces/default/services/s", "",
			`{"metadata":{"name":"s"},"spec":{"ports":[{"port":1}]}}`, both("CREATE services s"), "CreateOptions",
			"the object does not exist"},
		{"delete", "DELETE", configMaps + "/n", "", "", both("DELETE configmaps n"), "DeleteOptions", ""},
		{"delete of a collection", "DELETE", configMaps + "?fieldSelector=metadata.name=m", "", "",
			both("DELETE configmaps "), "DeleteOptions", "the request names no object"},
		{"namespace", "POST", "/api/v1/namespaces", "", `{"metadata":{"name":"o"}}`, both("CREATE namespaces o"),
			"CreateOptions", ""},
		{"status", "PATCH", "/apis/apps/v1/namespaces/default/deployments/d/status", mergePatch,
			`{"status":{"replicas":1}}`, both("UPDATE deployments/status d"), "UpdateOptions", ""},
		{"scale", "PATCH", "/apis/apps/v1/namespaces/default/deployments/d/scale", mergePatch, `{"spec":{"replicas":2}}`,
			both("UPDATE deployments/scale d"), "UpdateOptions", ""},
		{"binding", "POST", "/api/v1/namespaces/default/pods/p/binding", "",
			`{"metadata":{"name":"p"},"target":{"kind":"Node","name":"n"}}`, both("CREATE pods/binding p"), "CreateOptions",
			"the write to the Pod is no request"},
		{"eviction", "POST", "/api/v1/namespaces/default/pods/q/eviction", "", `{"metadata":{"name":"q"}}`,
			both("CREATE pods/eviction q"), "CreateOptions", "the delete of the Pod is no request"},
		{"token", "POST", "/api/v1/namespaces/default/serviceaccounts/s/token", "",
			`{"spec":{"audiences":[]}}`, both("CREATE serviceaccounts/token s"), "CreateOptions", ""},
		{"custom resource", "POST", widgetsV1, "",
			`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"}}`, both("CREATE widgets w"),
			"CreateOptions", ""},
		{"configuration", "PATCH", validatingWebhooks + "/v", mergePatch, `{"metadata":{"labels":{"a":"b"}}}`, nil, "",
			"webhooks must not prevent their own removal"},
		{"read", "GET", configMaps, "", "", nil, "", "admission is for writes"},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := &host{t, h.Server}
			w := h.ask(row.method, row.path, row.contentType, row.body)
			require.Less(t, w.Code, 300, w.Body.String())
			requests := hook.requests()
			var sees []string
			for _, r := range requests {
				sees = append(sees, requestText(r))
				options := &metav1.TypeMeta{}
				require.NoError(t, json.Unmarshal(r.Options.Raw, options))
				require.Equal(t, metav1.TypeMeta{Kind: row.options, APIVersion: "meta.k8s.io/v1"}, *options)
				require.Equal(t, "system:admin", r.UserInfo.Username)
				require.Equal(t, r.Operation != "DELETE", len(r.Object.Raw) > 0)
				require.Equal(t, r.Operation != "CREATE", len(r.OldObject.Raw) > 0)
			}
			require.Equal(t, row.sees, sees, row.why)
		})
	}
}

func both(text string) []string { return []string{text, text} }

// pod returns a Pod, with fields added to its spec.
func pod(name, spec string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"containers":[{"name":"c","image":"i"}]%s}}`, name, spec)
}

const deployment = `{"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},
	"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`

// TestMutatingWebhook checks that the fields that a mutating webhook changes get defaults, have no owner, and are
// validated.
func TestMutatingWebhook(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	first := newHook(t, func(r *admissionv1.AdmissionRequest, obj *unstructured.Unstructured) reply {
		switch {
		case obj == nil:
			return reply{}
		case r.Kind.Kind == "ConfigMap" && obj.GetName() == "bad":
			return reply{patch: `[{"op":"add","path":"/metadata/labels","value":{"a b":"c d"}}]`}
		case r.Kind.Kind == "ConfigMap" && obj.GetName() == "fields":
			return reply{patch: `[{"op":"replace","path":"/metadata/managedFields/0/operation","value":"Wish"}]`}
		case r.Kind.Kind == "ConfigMap":
			return reply{patch: `[{"op":"add","path":"/data","value":{"hook":"yes"}}]`, warnings: []string{"changed"}}
		case r.Kind.Kind == "Scale":
			return reply{patch: `[{"op":"replace","path":"/spec/replicas","value":7}]`}
		case r.Kind.Kind == "Pod":
			return reply{patch: `[{"op":"add","path":"/spec/containers/-","value":{"name":"side","image":"s"}}]`}
		}
		return reply{}
	})
	rules := `[{"operations":["*"],"apiGroups":["*"],"apiVersions":["*"],"resources":["*/*"]}]`
	h.must("POST", mutatingWebhooks, "", configuration("m", first.client(), rules, ""))
	last := newHook(t, allow)
	h.must("POST", validatingWebhooks, "", configuration("v", last.client(), rules, ""))

	w := h.ask("POST", configMaps+"?fieldManager=me", "", `{"metadata":{"name":"m"},"immutable":false}`)
	require.Equal(t, http.StatusCreated, w.Code)
	require.Equal(t, `299 - "changed"`, w.Header().Get("Warning"))
	m := h.must("GET", configMaps+"/m", "", "")
	require.Equal(t, map[string]any{"hook": "yes"}, m.Object["data"])
	require.JSONEq(t, `{"f:immutable":{}}`, string(m.GetManagedFields()[0].FieldsV1.GetRawBytes()),
		"nobody owns what a webhook set")
	seen := &unstructured.Unstructured{}
	require.NoError(t, seen.UnmarshalJSON(first.requests()[0].Object.Raw))
	require.Empty(t, seen.GetUID(), "mutating admission comes before the server's metadata")
	require.Len(t, seen.GetManagedFields(), 1, "the managed fields are known")
	require.NoError(t, seen.UnmarshalJSON(last.requests()[0].Object.Raw))
	require.Equal(t, m.GetUID(), seen.GetUID(), "validating admission sees what will be stored")

	p := h.must("POST", "/api/v1/namespaces/default/pods", "", pod("p", ""))
	side := p.Object["spec"].(map[string]any)["containers"].([]any)[1].(map[string]any)
	require.Equal(t, "Always", side["imagePullPolicy"], "defaults are set after a mutation")
	require.NoError(t, seen.UnmarshalJSON(last.requests()[0].Object.Raw))
	require.Len(t, seen.Object["spec"].(map[string]any)["containers"], 2)

	message := h.refused(http.StatusUnprocessableEntity, "POST", configMaps, "", `{"metadata":{"name":"bad"}}`)
	require.Contains(t, message, "metadata.labels: Invalid value: \"a b\"")
	w = h.ask("POST", configMaps+"?fieldManager=me", "", `{"metadata":{"name":"fields"},"data":{"a":"b"}}`)
	require.Equal(t, http.StatusCreated, w.Code)
	require.Contains(t, w.Header().Get("Warning"), ".metadata.managedFields was in an invalid state after admission")
	require.Equal(t, metav1.ManagedFieldsOperationUpdate,
		h.must("GET", configMaps+"/fields", "", "").GetManagedFields()[0].Operation, "they are reset")

	h.must("POST", "/apis/apps/v1/namespaces/default/deployments", "", deployment)
	scale := h.must("PATCH", "/apis/apps/v1/namespaces/default/deployments/d/scale", mergePatch,
		`{"spec":{"replicas":2}}`)
	require.Equal(t, map[string]any{"replicas": int64(7)}, scale.Object["spec"])
}

// TestMutatingWebhookOfCustomResource checks that a custom resource that a webhook has changed gets the defaults of its
// schema and is pruned.
func TestMutatingWebhookOfCustomResource(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	h.must("POST", crdPath, "", `{"metadata":{"name":"things.example.com"},"spec":{"group":"example.com",
		"scope":"Namespaced","names":{"plural":"things","kind":"Thing"},"versions":[{"name":"v1","served":true,"storage":true,
		"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{
		"a":{"type":"object","properties":{"b":{"type":"string","default":"x"},"c":{"type":"integer"}}}}}}}}}]}}`)
	hook := newHook(t, func(_ *admissionv1.AdmissionRequest, obj *unstructured.Unstructured) reply {
		if obj.GetName() == "bad" {
			return reply{patch: `[{"op":"add","path":"/spec","value":{"a":{"c":"text"}}}]`}
		}
		return reply{patch: `[{"op":"add","path":"/spec","value":{"a":{"c":1,"unknown":2}}}]`}
	})
	h.must("POST", mutatingWebhooks, "", configuration("m", hook.client(), everythingIn("example.com"), ""))
	const things = "/apis/example.com/v1/namespaces/default/things"
	made := h.must("POST", things, "", `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"t"}}`)
	require.Equal(t, map[string]any{"a": map[string]any{"b": "x", "c": int64(1)}}, made.Object["spec"])
	message := h.refused(http.StatusUnprocessableEntity, "POST", things, "",
		`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"bad"}}`)
	require.Contains(t, message, "spec.a.c: Invalid value")
}

// TestWhichWebhooksAreCalled checks that rules, selectors, conditions and the match policy decide which webhooks are
// called.
func TestWhichWebhooksAreCalled(t *testing.T) {
	hook := newHook(t, func(*admissionv1.AdmissionRequest, *unstructured.Unstructured) reply { return reply{deny: "no"} })
	autoscalersV2 := `[{"operations":["CREATE"],"apiGroups":["autoscaling"],"apiVersions":["v2"],` +
		`"resources":["horizontalpodautoscalers"]}]`
	const autoscaler = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
	const autoscalerBody = `{"metadata":{"name":"h"},"spec":{"maxReplicas":3,"targetCPUUtilizationPercentage":50,` +
		`"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"}}}`
	widgetsAtV2 := `[{"operations":["CREATE"],"apiGroups":["example.com"],"apiVersions":["v2"],"resources":["widgets"]}]`
	const widget = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"text":"abc"}}`
	for _, row := range []struct {
		name, rules, fields, path, body string
		called                          bool
		kind, why                       string
	}{
		{"namespace selector", configMapsOnly,
			`"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"default"}}`, configMaps,
			`{"metadata":{"name":"m"}}`, true, "v1/ConfigMap", "every Namespace has this label"},
		{"other namespace", configMapsOnly,
			`"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"kube-system"}}`, configMaps,
			`{"metadata":{"name":"m"}}`, false, "", "it is another Namespace's"},
		{"false condition", configMapsOnly, `"matchConditions":[{"name":"c","expression":"object.metadata.name == 'n'"}]`,
			configMaps, `{"metadata":{"name":"m"}}`, false, "", "the condition is false"},
		{"equivalent version", autoscalersV2, "", autoscaler, autoscalerBody, true,
			"v2/HorizontalPodAutoscaler", "the default match policy, Equivalent, converts"},
		{"exact version", autoscalersV2, `"matchPolicy":"Exact"`, autoscaler, autoscalerBody, false, "",
			"the rule names another version"},
		{"equivalent custom version", widgetsAtV2, "", widgetsV1, widget, true, "v2/Widget",
			"the conversion webhook converts"},
	} {
		for _, of := range []string{mutatingWebhooks, validatingWebhooks} {
			t.Run(row.name+of[len(admissionPath)-1:], func(t *testing.T) {
				h := newHost(t, apiserver.Options{Hooks: admission.Hooks{Convert: reverser{}}})
				if row.path == widgetsV1 {
					h.must("POST", crdPath, "", definition("v1", webhook))
				}
				h.must("POST", of, "", configuration("w", hook.client(), row.rules, row.fields))
				w := h.ask("POST", row.path, "", row.body)
				requests := hook.requests()
				if !row.called {
					require.Equal(t, http.StatusCreated, w.Code, w.Body.String())
					require.Empty(t, requests, row.why)
					return
				}
				require.Equal(t, http.StatusForbidden, w.Code, row.why)
				require.Len(t, requests, 1)
				require.Equal(t, row.kind, requests[0].Kind.Version+"/"+requests[0].Kind.Kind, row.why)
				u := &unstructured.Unstructured{}
				require.NoError(t, u.UnmarshalJSON(requests[0].Object.Raw))
				require.Equal(t, requests[0].Kind.Version, u.GroupVersionKind().Version)
				if row.path == widgetsV1 {
					require.Equal(t, "cba", spec(u, "text"))
				}
			})
		}
	}
}

// TestMutatingWebhookAtEquivalentVersion checks that the mutation of an object at another version is converted back.
func TestMutatingWebhookAtEquivalentVersion(t *testing.T) {
	h := newHost(t, apiserver.Options{Hooks: admission.Hooks{Convert: reverser{}}})
	h.must("POST", crdPath, "", definition("v1", webhook))
	hook := newHook(t, func(r *admissionv1.AdmissionRequest, _ *unstructured.Unstructured) reply {
		if r.Kind.Kind == "HorizontalPodAutoscaler" {
			return reply{patch: `[{"op":"replace","path":"/spec/maxReplicas","value":9}]`}
		}
		return reply{patch: `[{"op":"replace","path":"/spec/text","value":"xyz"}]`}
	})
	rules := `[{"operations":["*"],"apiGroups":["autoscaling","example.com"],"apiVersions":["v2"],"resources":["*"]}]`
	h.must("POST", mutatingWebhooks, "", configuration("m", hook.client(), rules, ""))
	made := h.must("POST", widgetsV1, "",
		`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"text":"abc"}}`)
	require.Equal(t, "zyx", spec(made, "text"))
	h.must("POST", "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers", "", `{"metadata":{"name":"h"},
		"spec":{"maxReplicas":3,"targetCPUUtilizationPercentage":50,
		"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"}}}`)
	scaler := h.must("GET", "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers/h", "", "")
	spec := scaler.Object["spec"].(map[string]any)
	require.Equal(t, int64(9), spec["maxReplicas"])
	require.Equal(t, int64(50), spec["targetCPUUtilizationPercentage"])
}

// TestWebhooksThatFail checks that failures of webhooks reject the write or are ignored, depending on the
// failurePolicy.
func TestWebhooksThatFail(t *testing.T) {
	down := newHook(t, allow)
	client := down.client()
	down.Close()
	released := make(chan struct{})
	slow := newHook(t, func(*admissionv1.AdmissionRequest, *unstructured.Unstructured) reply {
		<-released
		return reply{}
	})
	t.Cleanup(func() { close(released) })
	broken := newHook(t, func(*admissionv1.AdmissionRequest, *unstructured.Unstructured) reply {
		return reply{patch: `[{"op":"replace","path":"/nowhere/at/all","value":1}]`}
	})
	effects := newHook(t, allow)
	for _, row := range []struct {
		name, of, client, fields, query string
		code                            int
		says, why                       string
	}{
		{"down", mutatingWebhooks, client, "", "", http.StatusInternalServerError,
			"failed to call webhook: Post ", "failurePolicy is Fail by default"},
		{"ignored", mutatingWebhooks, client, `"failurePolicy":"Ignore"`, "", http.StatusCreated, "", "it says so"},
		{"slow", validatingWebhooks, slow.client(), `"timeoutSeconds":1`, "", http.StatusInternalServerError,
			"context deadline exceeded", "timeoutSeconds ends the call"},
		{"patch that does not fit", mutatingWebhooks, broken.client(), `"failurePolicy":"Ignore"`, "",
			http.StatusInternalServerError, "replace operation does not apply", "that is no failure to call the webhook"},
		{"service", validatingWebhooks, `{"service":{"namespace":"n","name":"s"}}`, "", "", http.StatusInternalServerError,
			"service n/s can't be reached without a cluster", "there is no cluster network"},
		{"condition that fails", validatingWebhooks, effects.client(),
			`"matchConditions":[{"name":"c","expression":"object.data.missing == 'x'"}]`, "", http.StatusForbidden,
			"no such key: data", "an error of a condition counts as a failure"},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := newHost(t, apiserver.Options{})
			h.must("POST", row.of, "", configuration("w", row.client, configMapsOnly, row.fields))
			w := h.ask("POST", configMaps+row.query, "", `{"metadata":{"name":"m"}}`)
			require.Equal(t, row.code, w.Code, w.Body.String())
			require.Contains(t, w.Body.String(), row.says, row.why)
		})
	}
}

// TestReinvocation checks that a webhook with reinvocationPolicy IfNeeded, and the host's hooks, are called a second
// time if a later webhook changed the object.
func TestReinvocation(t *testing.T) {
	for _, row := range []struct {
		policy       string
		calls, hooks int
		why          string
	}{
		{"IfNeeded", 2, 2, "the second webhook changes what the first one saw"},
		{"Never", 1, 2, "the default"},
	} {
		t.Run(row.policy, func(t *testing.T) {
			hooks := 0
			h := newHost(t, apiserver.Options{Hooks: admission.Hooks{
				Mutate: func(_ context.Context, w *admission.Write) error {
					if w.Resource.Resource == "configmaps" {
						hooks++
					}
					return nil
				},
			}})
			first := newHook(t, allow)
			second := newHook(t, func(_ *admissionv1.AdmissionRequest, obj *unstructured.Unstructured) reply {
				if obj.GetLabels()["a"] != "" {
					return reply{}
				}
				return reply{patch: `[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`}
			})
			h.must("POST", mutatingWebhooks, "",
				configuration("a", first.client(), configMapsOnly, fmt.Sprintf(`"reinvocationPolicy":%q`, row.policy)))
			h.must("POST", mutatingWebhooks, "", configuration("b", second.client(), configMapsOnly, ""))
			h.must("POST", configMaps, "", `{"metadata":{"name":"m"}}`)
			require.Len(t, first.requests(), row.calls, row.why)
			require.Len(t, second.requests(), 1)
			require.Equal(t, row.hooks, hooks, "kube-apiserver calls compiled-in plugins again, whatever the webhooks say")
		})
	}
}

// TestHooksAndWebhooks checks that hooks run before the webhooks of the same phase, and that Mutate is called again
// after a webhook has changed the object.
func TestHooksAndWebhooks(t *testing.T) {
	hook := newHook(t, func(_ *admissionv1.AdmissionRequest, obj *unstructured.Unstructured) reply {
		if obj.GetAnnotations()["host"] == "" {
			return reply{deny: "the hook was not called"}
		}
		return reply{patch: `[{"op":"add","path":"/metadata/annotations/hook","value":"yes"}]`}
	})
	h := newHost(t, apiserver.Options{Hooks: admission.Hooks{
		Mutate: func(_ context.Context, w *admission.Write) error {
			if w.Resource.Resource == "configmaps" {
				annotations := w.Object.GetAnnotations()
				if annotations == nil {
					annotations = map[string]string{}
				}
				annotations["host"] = "yes"
				w.Object.SetAnnotations(annotations)
			}
			return nil
		},
		Validate: func(_ context.Context, w *admission.Write) ([]string, error) {
			if w.Resource.Resource == "configmaps" && w.Object.GetAnnotations()["hook"] == "" {
				return nil, field.Required(field.NewPath("hook"), "the webhook was not called")
			}
			return nil, nil
		},
	}})
	h.must("POST", mutatingWebhooks, "", configuration("m", hook.client(), configMapsOnly, ""))
	h.must("POST", configMaps, "", `{"metadata":{"name":"m"}}`)
}

// TestWebhookServices checks that the host's ResolveService, or else the externalName, resolves a Service in a
// clientConfig. The webhook's certificate must be valid for the name of the Service.
func TestWebhookServices(t *testing.T) {
	hook := newHook(t, func(*admissionv1.AdmissionRequest, *unstructured.Unstructured) reply { return reply{deny: "no"} })
	hookURL, err := url.Parse(hook.URL)
	require.NoError(t, err)
	var asked string
	h := newHost(t, apiserver.Options{Hooks: admission.Hooks{
		ResolveService: func(namespace, name string, port int32) (*url.URL, error) {
			asked = fmt.Sprintf("%s/%s:%d", namespace, name, port)
			return hookURL, nil
		},
	}})
	client := fmt.Sprintf(`{"service":{"namespace":"n","name":"s","path":"/p"},"caBundle":%q}`, hook.ca())
	h.must("POST", validatingWebhooks, "", configuration("v", client, configMapsOnly, ""))
	message := h.refused(http.StatusInternalServerError, "POST", configMaps, "", `{"metadata":{"name":"m"}}`)
	require.Contains(t, message, "not s.n.svc", "the certificate is for example.com")
	require.Equal(t, "n/s:443", asked)

	host, port, err := net.SplitHostPort(hookURL.Host)
	require.NoError(t, err)
	h = newHost(t, apiserver.Options{})
	h.must("POST", "/api/v1/namespaces/default/services", "",
		fmt.Sprintf(`{"metadata":{"name":"s"},"spec":{"type":"ExternalName","externalName":%q}}`, host))
	client = fmt.Sprintf(`{"service":{"namespace":"default","name":"s","port":%s},"caBundle":%q}`, port, hook.ca())
	h.must("POST", validatingWebhooks, "", configuration("v", client, configMapsOnly, ""))
	require.Contains(t, h.refused(http.StatusInternalServerError, "POST", configMaps, "", `{"metadata":{"name":"m"}}`),
		"not s.default.svc", "it was reached")
}

// TestWebhookKeepsNamespace checks that webhooks see the deletes of a Namespace's contents, and that the Namespace
// exists while they reject them.
func TestWebhookKeepsNamespace(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	hook := newHook(t, func(r *admissionv1.AdmissionRequest, _ *unstructured.Unstructured) reply {
		if r.Operation == admissionv1.Delete {
			return reply{deny: "kept for " + r.UserInfo.Username}
		}
		return reply{}
	})
	h.must("POST", "/api/v1/namespaces", "", `{"metadata":{"name":"n"}}`)
	h.must("POST", "/api/v1/namespaces/n/configmaps", "", `{"metadata":{"name":"m"}}`)
	h.must("POST", validatingWebhooks, "", configuration("v", hook.client(), configMapsOnly, ""))
	h.must("DELETE", "/api/v1/namespaces/n", "", "")
	require.Eventually(t, func() bool { return len(hook.requests()) > 0 }, wait, tick)
	h.must("GET", "/api/v1/namespaces/n/configmaps/m", "", "")
	h.must("DELETE", validatingWebhooks+"/v", "", "")
	h.gone("/api/v1/namespaces/n")
}

// TestWebhookConfigurationsOfOthers checks that a server loads stored configurations at its start, and watches the
// configurations that other servers write.
func TestWebhookConfigurationsOfOthers(t *testing.T) {
	store := newStore(t)
	deny := newHook(t, func(*admissionv1.AdmissionRequest, *unstructured.Unstructured) reply { return reply{deny: "no"} })
	writer := newHost(t, apiserver.Options{Store: store})
	follower := newHost(t, apiserver.Options{Store: store})
	writer.must("POST", validatingWebhooks, "", configuration("v", deny.client(), configMapsOnly, ""))
	create := func(h *host) int {
		return h.ask("POST", configMaps+"?dryRun=All", "", `{"metadata":{"name":"m"}}`).Code
	}
	require.Equal(t, http.StatusForbidden, create(writer))
	require.Equal(t, http.StatusForbidden, create(newHost(t, apiserver.Options{Store: store})))
	require.Eventually(t, func() bool { return create(follower) == http.StatusForbidden }, wait, tick)
	writer.must("DELETE", validatingWebhooks+"/v", "", "")
	require.Eventually(t, func() bool { return create(follower) == http.StatusCreated }, wait, tick)
}
