package kubernetes

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// TestOracleValidation sends creates, and updates through each subresource, to this server over HTTP, and compares the
// errors and warnings of the responses with those of upstream's registry. Valid objects are those of TestPlansAreTrue;
// what is sent is one of them with parts of another, or of a random object.
func TestOracleValidation(t *testing.T) {
	server, err := apiserver.New(t.Context(), apiserver.Options{Token: "token", Validation: Validate})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	for _, s := range subjects(t) {
		t.Run(s.name(), func(t *testing.T) {
			o := newValidated(t, s, server)
			fuzz(t, 8, 1, func(t *testing.T, seed int64) bool {
				r := rand.New(rand.NewSource(seed))
				compared := o.compareCreate(t, r, seed)
				for _, sub := range s.updates() {
					if sub != "scale" && o.compareUpdate(t, r, seed, sub) {
						compared = true
					}
				}
				return compared
			})
		})
	}
}

// validated is a kind with valid objects, which are stored.
type validated struct {
	subject
	server  http.Handler
	path    string
	objects []resources.Object
}

func newValidated(t *testing.T, s subject, server http.Handler) *validated {
	i := slices.IndexFunc(plannedKinds, func(k plannedKind) bool {
		return k.apiVersion == s.GroupVersion().String() && k.kind == s.Kind
	})
	require.GreaterOrEqual(t, i, 0)
	kind := plannedKinds[i]
	o := &validated{subject: s, server: server, path: kind.path}
	for i, body := range kind.bodies {
		name := kind.nameOf(i)
		text := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q},%s}`, kind.apiVersion, kind.kind, name, body)
		w := send(server, http.MethodPatch, kind.path+"/"+name+"?fieldManager=m", text)
		require.Equal(t, http.StatusCreated, w.Code, "%s: %s", text, w.Body)
		obj := s.strategy.New()
		w = send(server, http.MethodGet, kind.path+"/"+name, "") // which may have another status by now
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), obj))
		o.objects = append(o.objects, obj)
	}
	return o
}

// changed returns a stored object, and what a client sends in its place, as JSON.
func (o *validated) changed(t *testing.T, r *rand.Rand, seed int64) (live resources.Object, text string) {
	live = o.objects[r.Intn(len(o.objects))]
	from := o.objects[r.Intn(len(o.objects))].DeepCopyObject()
	if r.Intn(3) > 0 {
		from = o.random(t, seed)
	}
	obj := live.DeepCopyObject().(resources.Object)
	probability := []float64{0.01, 0.03, 0.1, 0.3}[r.Intn(4)]
	cross(reflect.ValueOf(obj).Elem(), reflect.ValueOf(from).Elem(), r, probability)
	m := metav1.ObjectMeta{Name: live.GetName(), Namespace: live.GetNamespace()}
	switch r.Intn(8) {
	case 0:
		m.Labels = map[string]string{pick(r, "a", "a b", "x/y/z", ""): pick(r, "b", "b c", "")}
	case 1:
		m.Annotations = map[string]string{pick(r, "a", "a b", "UPPER/a"): "b"}
	case 2:
		m.Finalizers = []string{pick(r, "example.com/f", "f", "orphan", "a b")}
	case 3:
		m.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: pick(r, "v1", "a/b/c", ""), Kind: pick(r, "Pod", "Event", ""), Name: pick(r, "n", ""),
			UID: "u", Controller: pick(r, nil, new(bool)),
		}}
	}
	obj.SetLabels(m.Labels)
	obj.SetAnnotations(m.Annotations)
	obj.SetFinalizers(m.Finalizers)
	obj.SetOwnerReferences(m.OwnerReferences)
	obj.SetName(m.Name)
	obj.SetNamespace(m.Namespace)
	obj.SetGenerateName("")
	obj.SetManagedFields(nil)
	obj.SetResourceVersion(live.GetResourceVersion())
	obj.SetUID("")
	obj.SetDeletionTimestamp(nil)
	obj.SetDeletionGracePeriodSeconds(nil)
	obj.SetSelfLink("")
	obj.GetObjectKind().SetGroupVersionKind(o.GVK())
	data, err := json.Marshal(obj)
	require.NoError(t, err)
	return live, string(data)
}

func (o *validated) compareCreate(t *testing.T, r *rand.Rand, seed int64) bool {
	_, text := o.changed(t, r, seed)
	obj := o.parsed(t, text)
	obj.SetResourceVersion("")
	obj.SetName(pick(r, "new", "new", "new", "A", "a.b", "v1.g", "10.9.9.9", "system:a"))
	obj.GetObjectKind().SetGroupVersionKind(o.GVK())
	if pod, ok := obj.(*corev1.Pod); ok { // the plugin Priority would refuse others
		pod.Spec.Priority, pod.Spec.PriorityClassName, pod.Spec.PreemptionPolicy = nil, "", nil
	}
	data, err := json.Marshal(obj)
	require.NoError(t, err)
	obj = o.parsed(t, string(data)) // with defaults for the name
	var want recorder
	var failed error
	ok := attempt(func() {
		ctx := want.record(o.request(obj, nil, ""))
		internal := o.internal(t, obj)
		o.admit(t, internal, nil, "")
		rest.FillObjectMetaSystemFields(internal.(metav1.Object))
		o.begin(t, ctx, internal, nil)
		failed = rest.BeforeCreate(upstream()[o.GroupKind()], ctx, internal)
	})
	if !ok {
		return false
	}
	got := o.send(t, http.MethodPost, o.path+"?dryRun=All", string(data))
	require.Empty(t, difference(response(t, failed, want), got), "seed %d: create of %s", seed, data)
	return true
}

func (o *validated) compareUpdate(t *testing.T, r *rand.Rand, seed int64, sub string) bool {
	live, text := o.changed(t, r, seed)
	obj := o.parsed(t, text)
	var want recorder
	var failed error
	ok := attempt(func() {
		ctx := want.record(o.request(obj, live, sub))
		internal, before := o.internal(t, obj), o.internal(t, live)
		o.admit(t, internal, before, sub)
		if sub == "" {
			o.begin(t, ctx, internal, before)
		}
		failed = rest.BeforeUpdate(upstream()[o.GroupKind()].update[sub], ctx, internal, before)
	})
	if !ok {
		return false
	}
	path := o.path + "/" + live.GetName()
	if sub != "" {
		path += "/" + sub
	}
	got := o.send(t, http.MethodPut, path+"?dryRun=All", text)
	require.Empty(t, difference(response(t, failed, want), got), "seed %d: update %s of %s\nby %s", seed, sub,
		o.text(t, live), text)
	return true
}

// send returns the response of this server as text.
func (o *validated) send(t *testing.T, method, path, body string) string {
	w := send(o.server, method, path, body)
	var warnings recorder
	found, errs := net.ParseWarningHeaders(w.Header().Values("Warning"))
	require.Empty(t, errs)
	for _, header := range found {
		if header.Text != "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice" { // of all requests
			warnings = append(warnings, header.Text)
		}
	}
	if w.Code < 300 {
		return response(t, nil, warnings)
	}
	status := apierrors.StatusError{}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &status.ErrStatus), w.Body)
	return response(t, &status, warnings)
}

// uids are those of new objects, which are random.
var uids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// nodePorts are allocated ports that two ports of a Service share.
var nodePorts = regexp.MustCompile(`Duplicate value: 3[0-2]\d{3}$`)

// response returns an error and warnings as text, with sorted causes: some are found in the random order of a map.
func response(t *testing.T, err error, warnings recorder) string {
	slices.Sort(warnings)
	if err == nil {
		return "accepted\n" + warnings.text()
	}
	failed, ok := err.(apierrors.APIStatus)
	require.True(t, ok, err)
	status := failed.Status()
	status.TypeMeta = metav1.TypeMeta{}
	status.Message = uids.ReplaceAllString(strings.ReplaceAll(status.Message, ".extensions ", ".networking.k8s.io "), "U")
	if status.Details != nil {
		if status.Details.Group == "extensions" {
			// The first group of Ingresses and NetworkPolicies depends on which packages this test imports.
			status.Details.Group = "networking.k8s.io"
		}
		for i := range status.Details.Causes {
			cause := &status.Details.Causes[i]
			cause.Message = uids.ReplaceAllString(cause.Message, "U")
			cause.Message = nodePorts.ReplaceAllString(cause.Message, "Duplicate value: P")
		}
		slices.SortFunc(status.Details.Causes, func(a, b metav1.StatusCause) int {
			return strings.Compare(a.Field+string(a.Type)+a.Message, b.Field+string(b.Type)+b.Message)
		})
		if len(status.Details.Causes) > 1 {
			status.Message = "" // the causes, in the order in which they were found
		}
	}
	return indented(t, status) + "\n" + warnings.text()
}
