package recorded

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/tenure-ssa/tenure/internal/trees"

	"github.com/tenure-ssa/tenure/apiserver/internal/builtin"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

var builtinKinds = sync.OnceValue(func() *resources.Table {
	return resources.NewTable(builtin.Groups(builtin.Options{Now: time.Now}), 1)
})

// Default returns an object of a built-in kind as a server decodes it: without what its Go
// type leaves out, and with defaults. A field that the kind does not have is an error. The
// object is not changed.
func Default(gvk schema.GroupVersionKind, tree map[string]any) (map[string]any, error) {
	r := builtinKinds().ResourceOf(gvk)
	if r == nil || r.Prefix == "" {
		return nil, fmt.Errorf("%s: not a built-in kind whose objects are stored", gvk)
	}
	strategy, err := r.Strategy()
	if err != nil {
		return nil, err
	}
	tree, _ = trees.Plain(tree).(map[string]any)
	decoded := strategy.New()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(tree, decoded, true); err != nil {
		return nil, err
	}
	obj, unknown, err := strategy.Decode(decoded)
	if err != nil {
		return nil, err
	}
	if len(unknown) > 0 {
		return nil, errors.New(unknown[0])
	}
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	return out, kjson.UnmarshalCaseSensitivePreserveInts(data, &out)
}
