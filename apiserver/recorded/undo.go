package recorded

import (
	"context"
	"fmt"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	stores "github.com/tenure-ssa/tenure/apiserver/storage"
)

// A storedObject is the object of a step in the storage of the server.
type storedObject struct {
	storage.Interface
	key    string
	before *unstructured.Unstructured // without content: it does not exist
}

// openObject opens the storage of the object of a step.
func openObject(store stores.Store, step *Step) (*storedObject, error) {
	parts := below(step.Request.Path)
	namespace := namespaceOf(step)
	if namespace != "" {
		parts = parts[2:]
	}
	if len(parts) == 0 {
		parts = []string{"none"}
	}
	prefix := resources.PrefixOf(schema.GroupResource{Group: groupOf(step), Resource: parts[0]})
	config := &storagebackend.ConfigForResource{Config: storagebackend.Config{Codec: runtime.NewCodec(
		unstructured.UnstructuredJSONScheme, unstructured.UnstructuredJSONScheme)}}
	s, _, err := store.Open(config, prefix, func() runtime.Object { return &unstructured.Unstructured{} },
		func() runtime.Object { return &unstructured.UnstructuredList{} })
	return &storedObject{Interface: s, key: path.Join(prefix, namespace, strings.Join(parts[1:min(2, len(parts))], ""))}, err
}

// read reads the object.
func (o *storedObject) read(ctx context.Context) error {
	o.before = &unstructured.Unstructured{}
	return o.Get(ctx, o.key, storage.GetOptions{IgnoreNotFound: true}, o.before)
}

// undo restores the object before the step.
func (r *Replayer) undo(ctx context.Context, o *storedObject) error {
	if o.before.GetResourceVersion() == "" {
		err := o.Delete(ctx, o.key, &unstructured.Unstructured{}, nil, storage.ValidateAllObjectFunc, nil,
			storage.DeleteOptions{})
		if storage.IsNotFound(err) {
			return nil
		}
		return err
	}
	now := &unstructured.Unstructured{}
	err := o.GuaranteedUpdate(ctx, o.key, now, true, nil,
		storage.SimpleUpdate(func(live runtime.Object) (runtime.Object, error) {
			was := o.before.DeepCopy()
			was.SetResourceVersion(live.(*unstructured.Unstructured).GetResourceVersion())
			return was, nil
		}), nil)
	for recorded, ours := range r.versions {
		if ours == o.before.GetResourceVersion() {
			r.versions[recorded] = fmt.Sprint(now.GetResourceVersion())
		}
	}
	return err
}
