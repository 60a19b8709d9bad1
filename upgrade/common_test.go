package upgrade_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/fieldmanager/fieldmanagertest"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

var builtin = openapi.Builtin()

const kubectlWrote = `{"apiVersion":"v1","data":{"a":"1","b":"2"},"kind":"ConfigMap","metadata":{"annotations":{},"name":"settings","namespace":"default"}}` + "\n"

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

// server has one object, which tests may change, and makes writes to it like a server.
type server struct {
	t    *testing.T
	h    *fieldmanagertest.Harness
	live *unstructured.Unstructured
}

func newServer(t *testing.T) *server { return &server{t: t, h: fieldmanagertest.New(t)} }

func (s *server) do(w fieldmanagertest.Write) *unstructured.Unstructured {
	s.t.Helper()
	if s.live != nil {
		s.h.Store(s.live)
	}
	out := s.h.Do(w)
	require.NoError(s.t, out.Err)
	s.live = out.Object
	return s.live
}

func (s *server) apply(manager, intent string) *unstructured.Unstructured {
	s.t.Helper()
	return s.do(fieldmanagertest.Apply(manager, intent))
}

// put stores now as an update by manager.
func (s *server) put(manager string, updated runtime.Object) *unstructured.Unstructured {
	s.t.Helper()
	return s.do(fieldmanagertest.Update(manager, updated))
}

// managed returns the managed fields as lines: manager, operation, and owned fields.
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
