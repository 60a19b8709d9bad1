package kubernetes

import (
	"context"
	"encoding/json"
	"math/rand"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/kubernetes/pkg/apis/core"

	"github.com/tenure-ssa/tenure/apiserver/admission"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// pair returns an object and the live object that it replaces. The object is live with values of another random object
// in some places, so that most fields are the same, as in an update.
func (s subject) pair(t *testing.T, seed int64) (obj, live resources.Object) {
	live = s.object(t, s.random(t, seed))
	internal := s.internal(t, live)
	s.allocate(t, internal)
	live = s.parsed(t, s.text(t, s.stored(t, internal)))
	live.SetUID("0001-u")
	live.SetResourceVersion("7")
	live.SetGeneration(3)
	r := rand.New(rand.NewSource(seed))
	obj = s.object(t, s.random(t, seed+1))
	if r.Intn(4) > 0 {
		from := obj
		obj = live.DeepCopyObject().(resources.Object)
		cross(reflect.ValueOf(obj).Elem(), reflect.ValueOf(from).Elem(), r, []float64{0.02, 0.1, 0.4}[r.Intn(3)])
		obj = s.parsed(t, s.text(t, obj))
	}
	obj.SetName("n")
	obj.SetNamespace(live.GetNamespace())
	obj.SetUID("0001-u")
	obj.SetGeneration(3)
	return obj, live
}

// parsed decodes JSON.
func (s subject) parsed(t *testing.T, text string) resources.Object {
	out := s.strategy.New()
	require.NoError(t, json.Unmarshal([]byte(text), out))
	return s.object(t, out)
}

// object decodes an object as this server does, with defaults.
func (s subject) object(t *testing.T, obj runtime.Object) resources.Object {
	out, _, err := s.strategy.Decode(obj)
	require.NoError(t, err)
	return out
}

// cross replaces values of an object by those of another, each with this probability.
func cross(to, from reflect.Value, r *rand.Rand, probability float64) {
	if to.Type() == reflect.TypeFor[[]byte]() {
		return // the text of a RawExtension
	}
	if to.CanSet() && r.Float64() < probability {
		to.Set(from)
		return
	}
	switch to.Kind() {
	case reflect.Pointer:
		if !to.IsNil() && !from.IsNil() {
			cross(to.Elem(), from.Elem(), r, probability)
		}
	case reflect.Struct:
		for i := range to.NumField() {
			if f := to.Type().Field(i); f.IsExported() && f.Type != reflect.TypeFor[metav1.TypeMeta]() {
				cross(to.Field(i), from.Field(i), r, probability)
			}
		}
	case reflect.Slice:
		for i := range min(to.Len(), from.Len()) {
			cross(to.Index(i), from.Index(i), r, probability)
		}
	}
}

// requester is the user of all requests: CertificateSigningRequests name it.
var requester = &user.DefaultInfo{Name: "jane", UID: "j", Groups: []string{"g"}, Extra: map[string][]string{"k": {"v"}}}

// request returns a request's context; live is nil for a create.
func (s subject) request(obj, live resources.Object, subresource string) context.Context {
	w := &admission.Write{Operation: admission.Create, Object: obj, Resource: s.GVR(), Subresource: subresource,
		User: requester}
	if live != nil {
		w.Operation = admission.Update
	}
	return withRequest(apirequest.WithUser(context.Background(), requester), w)
}

// internal returns the internal object of an object that has its defaults.
func (s subject) internal(t *testing.T, obj runtime.Object) runtime.Object {
	out, err := toInternal(obj)
	require.NoError(t, err)
	return out
}

// stored returns what clients read after kube-apiserver stored an object: it went through protobuf at the storage
// version, and got defaults again.
func (s subject) stored(t *testing.T, obj runtime.Object) runtime.Object {
	encoded, err := scheme().ConvertToVersion(obj, s.Stored.GroupVersion())
	require.NoError(t, err)
	data, err := encoded.(interface{ Marshal() ([]byte, error) }).Marshal()
	require.NoError(t, err)
	out, err := scheme().New(s.Stored)
	require.NoError(t, err)
	require.NoError(t, out.(interface{ Unmarshal([]byte) error }).Unmarshal(data))
	scheme().Default(out)
	internal := s.internal(t, out)
	if service, ok := internal.(*core.Service); ok {
		newServices(t).Decorator(service)
	}
	return internal
}

// attempt calls upstream's code, which panics on some objects that its validation would have refused. ok is false then.
func attempt(f func()) (ok bool) {
	defer func() { ok = recover() == nil }()
	f()
	return true
}

// updates are the subresources of a kind that upstream has an update strategy for; "" is the kind itself.
func (s subject) updates() []string {
	out := []string{""}
	for _, sub := range s.Subresources {
		if _, ok := upstream()[s.GroupKind()].update[sub.Name]; ok {
			out = append(out, sub.Name)
		}
	}
	return out
}

func (s subject) name() string {
	return s.Kind + "." + strings.TrimSuffix(s.GroupVersion().String(), "/")
}
