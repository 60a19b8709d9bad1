package upgrade

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/kube-openapi/pkg/spec3"

	"github.com/tenure-ssa/tenure/typed"
)

// ApplyOptions configure ClientSideApply.
type ApplyOptions struct {
	// Meta is how lists and maps of the kind merge: from a Go struct (strategicpatch.NewPatchMetaFromStruct) or an
	// OpenAPI document ([PatchMeta]). Without it the merge is a JSON merge patch, which replaces lists, as kubectl
	// applies custom resources.
	Meta strategicpatch.LookupPatchMeta
	// NoOverwrite returns a conflict if the patch would change a value that somebody else changed since the last apply:
	// kubectl's --overwrite=false. As in kubectl, it has no effect on JSON merge patches.
	NoOverwrite bool
}

// Applied is the result of a client-side apply.
type Applied struct {
	// Object is the object after the apply, of live's Go type and with live's managed fields: the new object of the
	// Update of a server's field manager. It is live itself if Changed is false.
	Object runtime.Object
	// Changed reports whether anything must be written.
	Changed bool
	// Patch and Type are what kubectl sends. Patch is nil if the object is created, and {} if there is nothing to send.
	// A patch that removes missing fields is sent, but changes nothing.
	Patch []byte
	Type  types.PatchType
}

// ClientSideApply applies intent to live as kubectl apply without --server-side does: by a three-way merge of the
// last intent, which is in live's annotation, of intent, and of live. It removes fields that only the last intent
// has, and fields that are null in intent. It keeps fields that neither of them has. The annotation of the result
// holds intent. live is nil if the object does not exist.
//
// It does not change its arguments. The result has live's Go type (intent's if live is nil) and may share memory with
// both.
//
// The error is a conflict if mergepatch.IsConflict reports true; ErrOtherObject if intent is for another object;
// LastAppliedError if the annotation is malformed; SizeError if it would be too large.
func ClientSideApply(live, intent runtime.Object, o ApplyOptions) (Applied, error) {
	i, err := read(intent)
	if err != nil {
		return Applied{}, fmt.Errorf("intent: %w", err)
	}
	text, err := encodeIntent(i.tree)
	if err != nil {
		return Applied{}, err
	}
	annotations, err := i.annotated(text)
	if err != nil {
		return Applied{}, err
	}
	if live == nil {
		created, err := i.with(map[string]any{"annotations": annotations})
		return Applied{Object: created.given, Changed: true}, err
	}
	l, err := read(live)
	if err != nil {
		return Applied{}, fmt.Errorf("live: %w", err)
	}
	if err := sameObject(l, i); err != nil {
		return Applied{}, err
	}
	if _, err := l.lastAppliedOrNone(); err != nil {
		return Applied{}, err
	}
	original, _, _ := l.lastAppliedText()
	modified, err := json.Marshal(withAnnotations(i.tree, annotations))
	if err != nil {
		return Applied{}, fmt.Errorf("intent: %w", err)
	}
	current, err := json.Marshal(l.tree)
	if err != nil {
		return Applied{}, fmt.Errorf("live: %w", err)
	}
	return merge(l, []byte(original), modified, current, o)
}

// merge computes the patch and applies it to live.
func merge(live object, original, modified, current []byte, o ApplyOptions) (out Applied, err error) {
	var patched map[string]any
	if o.Meta != nil {
		out.Type = types.StrategicMergePatchType
		out.Patch, err = strategicpatch.CreateThreeWayMergePatch(original, modified, current, o.Meta, !o.NoOverwrite)
	} else {
		out.Type = types.MergePatchType
		out.Patch, err = jsonmergepatch.CreateThreeWayJSONMergePatch(original, modified, current)
	}
	if err != nil {
		// Not wrapped: mergepatch.IsConflict does not unwrap errors.
		return Applied{}, err
	}
	if string(out.Patch) == "{}" {
		out.Object = live.given
		return out, nil
	}
	if o.Meta != nil {
		var b []byte
		if b, err = strategicpatch.StrategicMergePatchUsingLookupPatchMeta(current, out.Patch, o.Meta); err == nil {
			err = utiljson.Unmarshal(b, &patched)
		}
	} else {
		var patch map[string]any
		if err = utiljson.Unmarshal(out.Patch, &patch); err == nil {
			patched = mergeJSON(live.tree, patch)
		}
	}
	if err != nil {
		return Applied{}, fmt.Errorf("patching: %w", err)
	}
	metadata, ok := patched["metadata"].(map[string]any)
	if !ok {
		return Applied{}, errors.New("patching: expected metadata to be left")
	}
	if err := checkSize((object{tree: patched}).annotations()); err != nil {
		return Applied{}, err
	}
	// The patched tree is the result, with live's managed fields, which no intent can change.
	metadata = maps.Clone(metadata)
	delete(metadata, "managedFields")
	if v, ok := live.metadata()["managedFields"]; ok {
		metadata["managedFields"] = v
	}
	patched["metadata"] = metadata
	if typed.Equal(patched, live.tree) {
		out.Object = live.given
		return out, nil
	}
	out.Changed = true
	out.Object, err = live.like(patched)
	return out, err
}

// like returns tree as an object of o's Go type.
func (o object) like(tree map[string]any) (runtime.Object, error) {
	if _, ok := o.given.(runtime.Unstructured); ok {
		return &unstructured.Unstructured{Object: tree}, nil
	}
	like, err := object{o.given, tree}.with(nil)
	return like.given, err
}

// mergeJSON returns target with a JSON merge patch (RFC 7396) applied. The result
// shares memory with both.
func mergeJSON(target, patch map[string]any) map[string]any {
	out := maps.Clone(target)
	if out == nil {
		out = map[string]any{}
	}
	for name, v := range patch {
		switch v := v.(type) {
		case nil:
			delete(out, name)
		case map[string]any:
			below, _ := out[name].(map[string]any)
			out[name] = mergeJSON(below, v)
		default:
			out[name] = v
		}
	}
	return out
}

// PatchMeta returns how the lists and maps of a kind merge, from an OpenAPI v3 document in JSON such as that at
// /openapi/v3/apis/apps/v1. The error is ErrNoType if the document does not have the kind.
func PatchMeta(document []byte, kind schema.GroupVersionKind) (strategicpatch.LookupPatchMeta, error) {
	var doc spec3.OpenAPI
	if err := json.Unmarshal(document, &doc); err != nil {
		return nil, fmt.Errorf("OpenAPI document: %w", err)
	}
	if doc.Components != nil {
		for _, s := range doc.Components.Schemas {
			var kinds []schema.GroupVersionKind
			if err := s.Extensions.GetObject("x-kubernetes-group-version-kind", &kinds); err != nil {
				continue
			}
			for _, k := range kinds {
				if k == kind {
					return strategicpatch.PatchMetaFromOpenAPIV3{Schema: s, SchemaList: doc.Components.Schemas}, nil
				}
			}
		}
	}
	return nil, fmt.Errorf("%s: %w", kind, ErrNoType)
}
