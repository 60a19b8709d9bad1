package apiserver_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/admission"
)

// TestHooks checks that hooks run on each write: the writer owns defaults, nobody owns mutations, and errors reject the
// write.
func TestHooks(t *testing.T) {
	var lock sync.Mutex
	var seen []string
	h := newHost(t, apiserver.Options{Hooks: admission.Hooks{
		Default: func(obj admission.Object) {
			if m, ok := obj.(*corev1.ConfigMap); ok && m.Data["default"] == "" {
				if m.Data == nil {
					m.Data = map[string]string{}
				}
				m.Data["default"] = "set"
			}
		},
		Mutate: func(_ context.Context, w *admission.Write) error {
			lock.Lock()
			seen = append(seen, string(w.Operation)+" "+w.Resource.Resource)
			lock.Unlock()
			if m, ok := w.Object.(*corev1.ConfigMap); ok {
				m.SetAnnotations(map[string]string{"by": "host"})
			}
			if w.Operation == admission.Delete && w.Live.GetName() == "kept" {
				return errors.New("it is kept")
			}
			return nil
		},
		Validate: func(_ context.Context, w *admission.Write) ([]string, error) {
			if m, ok := w.Object.(*corev1.ConfigMap); ok && m.Data["bad"] != "" {
				errs := field.ErrorList{field.Forbidden(field.NewPath("data").Key("bad"), "the host says so")}
				return nil, errs.ToAggregate()
			}
			switch m, ok := w.Object.(*corev1.ConfigMap); {
			case ok && m.Data["busy"] != "":
				return nil, apierrors.NewTooManyRequests("the host is busy", 7)
			case ok && m.Data["other"] != "":
				return nil, errors.New("it is another one's")
			}
			return []string{"looked at"}, nil
		},
	}})
	w := h.ask("POST", configMaps+"?fieldManager=m", "", `{"metadata":{"name":"kept"},"data":{"a":"b"}}`)
	require.Equal(t, http.StatusCreated, w.Code)
	require.Equal(t, `299 - "looked at"`, w.Header().Get("Warning"))
	m := h.must("GET", configMaps+"/kept", "", "")
	require.Equal(t, "host", m.GetAnnotations()["by"])
	require.Equal(t, map[string]any{"a": "b", "default": "set"}, m.Object["data"])
	require.JSONEq(t, `{"f:data":{".":{},"f:a":{},"f:default":{}}}`,
		string(m.GetManagedFields()[0].FieldsV1.GetRawBytes()))

	message := h.refused(http.StatusUnprocessableEntity, "PATCH", configMaps+"/kept", mergePatch, `{"data":{"bad":"x"}}`)
	require.Contains(t, message, "data[bad]: Forbidden: the host says so")
	w = h.ask("PATCH", configMaps+"/kept", mergePatch, `{"data":{"busy":"x"}}`)
	require.Equal(t, http.StatusTooManyRequests, w.Code, "a Status is returned as it is: %s", w.Body)
	require.Equal(t, "7", w.Header().Get("Retry-After"))
	message = h.refused(http.StatusForbidden, "PATCH", configMaps+"/kept", mergePatch, `{"data":{"other":"x"}}`)
	require.Contains(t, message, "it is another one's")
	require.Contains(t, h.refused(http.StatusForbidden, "DELETE", configMaps+"/kept", "", ""), "it is kept")
	require.Contains(t, h.refused(http.StatusForbidden, "DELETE", configMaps, "", ""), "it is kept")
	lock.Lock()
	defer lock.Unlock()
	require.Equal(t, []string{"CREATE configmaps", "UPDATE configmaps", "DELETE configmaps"}, slices.Compact(seen)[:3])
}

// TestAppliesAreRemembered checks that a server remembers no-op applies, except with a hook for defaults, which may
// give different results for equal objects.
func TestAppliesAreRemembered(t *testing.T) {
	for remembered, hook := range map[int]func(admission.Object){1: nil, 0: func(admission.Object) {}} {
		h := newHost(t, apiserver.Options{Hooks: admission.Hooks{Default: hook}})
		for range 2 {
			h.must("PATCH", configMaps+"/a?fieldManager=m", applyPatch,
				"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v}}")
		}
		require.Equal(t, remembered, apiserver.Unchanged(h.Server))
	}
}
