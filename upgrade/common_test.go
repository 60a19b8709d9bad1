package upgrade_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

var builtin = openapi.Builtin()

const kubectlWrote = `{"apiVersion":"v1","data":{"a":"1","b":"2"},"kind":"ConfigMap","metadata":{"annotations":{},"name":"settings","namespace":"default"}}` + "\n"

var (
	configMapKind  = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	deploymentKind = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
)

func manifest(text string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = u.UnmarshalJSON(data)
	}
	if err != nil {
		panic(err)
	}
	return u
}

// server does writes as a server would: it tracks them, one a second.
type server struct {
	t       *testing.T
	manager *fieldmanager.FieldManager
	seconds int
	live    *unstructured.Unstructured
}

func newServer(t *testing.T, kind schema.GroupVersionKind) *server {
	s := &server{t: t}
	var err error
	s.manager, err = fieldmanager.New(kind, openapi.Builtin(),
		fieldmanager.Options{Clock: func() time.Time { return time.Date(2026, 1, 2, 3, 4, s.seconds, 0, time.UTC) }})
	require.NoError(t, err)
	return s
}

func (s *server) object() runtime.Object {
	if s.live == nil {
		return nil
	}
	return s.live
}

func (s *server) store(obj runtime.Object, err error) *unstructured.Unstructured {
	s.t.Helper()
	require.NoError(s.t, err)
	s.seconds++
	s.live = obj.(*unstructured.Unstructured).DeepCopy()
	s.live.SetUID("56f45eff-ee80-4f81-bfc4-b71cd663085e")
	s.live.SetResourceVersion("1")
	return s.live
}

func (s *server) apply(manager, intent string) *unstructured.Unstructured {
	s.t.Helper()
	return s.store(writetest.Apply(s.manager, s.object(), manifest(intent), manager, false))
}

// edit stores the object after f changed it, as an update by manager.
func (s *server) edit(manager string, f func(tree map[string]any)) *unstructured.Unstructured {
	s.t.Helper()
	now := s.live.DeepCopy()
	f(now.Object)
	return s.store(writetest.Update(s.manager, s.object(), now, manager))
}

// put stores now, of which an update by manager is made.
func (s *server) put(manager string, now runtime.Object) *unstructured.Unstructured {
	s.t.Helper()
	return s.store(writetest.Update(s.manager, s.object(), now, manager))
}

// managed returns managed fields: manager, operation, and what it owns, a line each.
func managed(t *testing.T, obj runtime.Object) (out []string) {
	t.Helper()
	for _, e := range obj.(*unstructured.Unstructured).GetManagedFields() {
		b, err := json.Marshal(e.FieldsV1)
		require.NoError(t, err)
		out = append(out, e.Manager+" "+string(e.Operation)+" "+string(b))
	}
	return out
}

func set(tree map[string]any, v any, path ...string) {
	if err := unstructured.SetNestedField(tree, v, path...); err != nil {
		panic(err)
	}
}
