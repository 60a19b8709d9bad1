package writetest

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/kube-openapi/pkg/spec3"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// ClientSideApply returns live after a client-side apply of an intent, as kubectl does it for built-in kinds, with a
// strategic three-way merge. live is nil for a create.
func ClientSideApply(live, intent *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	intent = intent.DeepCopy()
	annotations := intent.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	intent.SetAnnotations(annotations)
	text, err := json.Marshal(intent.Object)
	if err != nil {
		return nil, err
	}
	annotations[fieldmanager.LastAppliedAnnotation] = string(text) + "\n"
	intent.SetAnnotations(annotations)
	if live == nil {
		return intent, nil
	}
	meta, err := patchMeta(intent.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	modified, err := intent.MarshalJSON()
	if err != nil {
		return nil, err
	}
	current, err := live.MarshalJSON()
	if err != nil {
		return nil, err
	}
	original := []byte(live.GetAnnotations()[fieldmanager.LastAppliedAnnotation])
	patch, err := strategicpatch.CreateThreeWayMergePatch(original, modified, current, meta, true)
	if err != nil {
		return nil, err
	}
	after, err := strategicpatch.StrategicMergePatchUsingLookupPatchMeta(current, patch, meta)
	if err != nil {
		return nil, err
	}
	out := &unstructured.Unstructured{}
	return out, out.UnmarshalJSON(after)
}

// patchMeta returns how the lists and maps of a built-in kind merge.
func patchMeta(kind schema.GroupVersionKind) (strategicpatch.LookupPatchMeta, error) {
	data, ok := openapi.BuiltinDocument(kind.GroupVersion())
	var document spec3.OpenAPI
	if err := json.Unmarshal(data, &document); !ok || err != nil {
		return nil, fmt.Errorf("%s: no OpenAPI document", kind)
	}
	for _, s := range document.Components.Schemas {
		var kinds []schema.GroupVersionKind
		if s.Extensions.GetObject("x-kubernetes-group-version-kind", &kinds) == nil && len(kinds) == 1 && kinds[0] == kind {
			return strategicpatch.PatchMetaFromOpenAPIV3{Schema: s, SchemaList: document.Components.Schemas}, nil
		}
	}
	return nil, fmt.Errorf("%s: not in its OpenAPI document", kind)
}

// LastApplied returns the intent of the last client-side apply.
func LastApplied(obj runtime.Object) (*unstructured.Unstructured, error) {
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	text := (&unstructured.Unstructured{Object: tree}).GetAnnotations()[fieldmanager.LastAppliedAnnotation]
	out := &unstructured.Unstructured{}
	return out, out.UnmarshalJSON([]byte(text))
}
