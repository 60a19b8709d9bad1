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

// ApplyOptions say how ClientSideApply merges.
type ApplyOptions struct {
	// Meta tells how lists and maps of the kind merge: from a Go struct
	// (strategicpatch.NewPatchMetaFromStruct) or an OpenAPI document ([PatchMeta]).
	// Without it the merge is a JSON merge patch, in which lists are replaced, as
	// kubectl applies custom resources.
	Meta strategicpatch.LookupPatchMeta
	// NoOverwrite fails with a conflict when the patch would change what somebody
	// else changed since the last apply: kubectl's --overwrite=false, which like
	// there says nothing of JSON merge patches.
	NoOverwrite bool
}

// Applied is what a client-side apply comes to.
type Applied struct {
	// Object is the object after it, of live's Go type, with live's managed fields:
	// what a server would hand to its field manager's Update. It is live itself when
	// Changed is false.
	Object runtime.Object
	// Changed says whether anything has to be written.
	Changed bool
	// Patch and Type are what kubectl sends; Patch is nil when the object is created,
	// and {} when there is nothing to send. A patch that clears what is not there is
	// sent, and changes nothing.
	Patch []byte
	Type  types.PatchType
}

// ClientSideApply applies intent to live as kubectl apply does without
// --server-side: a three-way merge of the last intent, which live's annotation
// holds, of this one, and of live. Fields that only the last intent has, and those
// that this one sets to null, are removed; everything that neither speaks of stays.
// The annotation holds intent afterwards. live is nil when there is no object yet.
//
// Objects are not changed. The result is of live's Go type (of intent's when live is
// nil) and may share memory with either.
//
// An error for which mergepatch.IsConflict holds is a conflict; ErrOtherObject says
// that intent is about another object, a LastAppliedError that the annotation can't
// be read, a SizeError that it would grow too large.
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

// merge makes the patch and applies it to live.
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
		// As it is: mergepatch.IsConflict does not look into what is wrapped.
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
	// The patched tree counts, but for managed fields, which no intent has a say in.
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

// like returns tree as an object of the Go type of o.
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

// PatchMeta returns what an OpenAPI v3 document in JSON, as a server has it at
// /openapi/v3/apis/apps/v1, says of how the lists and maps of a kind merge. The
// error is ErrNoType when the document does not describe the kind.
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
