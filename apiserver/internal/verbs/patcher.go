package verbs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/tenure-ssa/tenure/fieldmanager"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/internal/strategic"
)

// patcher makes of an object what a patch says.
type patcher struct {
	c          *Call
	kind       resources.Strategy
	of         types.PatchType
	body       []byte
	validation string
	manager    string
	force      bool
	fields     *fieldmanager.FieldManager
	intent     *unstructured.Unstructured // of an apply; it is not changed
	doubled    error                      // what a strict reader finds fault with in it
}

// maxOperations is how many operations a JSON patch may have.
const maxOperations = 10_000

// maxCopied is how much the operations of a JSON patch may copy, in bytes. The
// library has one limit for all who use it in a program; another one's is left.
const maxCopied = 3 << 20

func init() {
	if jsonpatch.AccumulatedCopySizeLimit == 0 {
		jsonpatch.AccumulatedCopySizeLimit = maxCopied
	}
}

// json does a JSON patch (RFC 6902) or a JSON merge patch (RFC 7386).
func (p *patcher) json(ctx context.Context, live resources.Object) (resources.Object, error) {
	current, err := json.Marshal(live)
	if err != nil {
		return nil, err
	}
	patched, doubled, err := p.patchJSON(ctx, current)
	if err != nil {
		return nil, err
	}
	info, _ := runtime.SerializerInfoForMediaType(p.kind.Serializers(), runtime.ContentTypeJSON)
	gvk := p.kind.New().GetObjectKind().GroupVersionKind()
	decoded, _, err := info.StrictSerializer.Decode(patched, &gvk, p.kind.New())
	invalid := func(text string) error {
		return apierrors.NewInvalid(schema.GroupKind{}, "",
			field.ErrorList{field.Invalid(field.NewPath("patch"), string(patched), text)})
	}
	unknown := doubled
	if strict, ok := runtime.AsStrictDecodingError(err); ok {
		for _, e := range strict.Errors() {
			unknown = append(unknown, e.Error())
		}
	} else if err != nil {
		return nil, invalid(err.Error())
	}
	obj, dropped, err := p.kind.Decode(decoded)
	if isTooLarge(err) {
		return nil, err
	}
	if err != nil {
		return nil, invalid(err.Error())
	}
	if err := p.strict(append(unknown, dropped...), invalid); err != nil {
		return nil, err
	}
	return p.track(live, obj)
}

// patchJSON returns current with the patch done, and what is wrong with the patch
// for a strict reader.
func (p *patcher) patchJSON(ctx context.Context, current []byte) (patched []byte, doubled []string, err error) {
	var into any = &map[string]any{}
	prefix := ""
	if p.of == types.JSONPatchType {
		into, prefix = &[]operation{}, "json patch "
	}
	strict, err := kjson.UnmarshalStrict(p.body, into)
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	for _, e := range strict {
		doubled = append(doubled, prefix+e.Error())
	}
	if p.of == types.MergePatchType {
		patched, err = jsonpatch.MergePatch(current, p.body)
		if errors.Is(err, jsonpatch.ErrBadJSONPatch) {
			err = apierrors.NewBadRequest(err.Error())
		}
		return patched, doubled, err
	}
	operations, err := jsonpatch.DecodePatch(p.body)
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	if len(operations) > maxOperations {
		return nil, nil, apierrors.NewRequestEntityTooLargeError(
			fmt.Sprintf("The allowed maximum operations in a JSON patch is %d, got %d", maxOperations, len(operations)))
	}
	patched, err = p.operate(ctx, current, operations)
	return patched, doubled, err
}

// operationsAtOnce is how many operations of a JSON patch are done between two looks at
// the context and at the size of the object.
const operationsAtOnce = 250

// operate does the operations of a JSON patch. One may take as long as it takes to read the
// whole object.
func (p *patcher) operate(ctx context.Context, doc []byte, operations jsonpatch.Patch) (_ []byte, err error) {
	limit := max(p.c.Body.Bytes, int64(len(doc))) + p.c.Body.Bytes
	for some := range slices.Chunk(operations, operationsAtOnce) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var copied *jsonpatch.AccumulatedCopySizeError
		if doc, err = some.Apply(doc); errors.As(err, &copied) {
			return nil, apierrors.NewRequestEntityTooLargeError(err.Error())
		} else if err != nil {
			return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "",
				err.Error(), 0, false)
		}
		if int64(len(doc)) > limit {
			return nil,
				&resources.TooLargeError{What: "the object after a part of the patch", Size: int64(len(doc)), Limit: limit}
		}
	}
	return doc, nil
}

// operation is one operation of a JSON patch, for a strict reader.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	From  string `json:"from"`
	Value any    `json:"value"`
}

// strategic does a strategic merge patch.
func (p *patcher) strategic(ctx context.Context, live resources.Object) (resources.Object, error) {
	current, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return nil, err
	}
	patch := map[string]any{}
	strict, err := kjson.UnmarshalStrict(p.body, &patch)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	var unknown []string
	for _, e := range strict {
		unknown = append(unknown, e.Error())
	}
	// The patch is changed on the way; the next attempt reads it anew.
	text := fmt.Sprintf("%+v", patch)
	merging, err := strategicpatch.NewPatchMetaFromStruct(p.kind.PatchMetaStruct())
	if err != nil {
		return nil, err
	}
	patched, err := strategic.Merge(ctx, current, patch, merging)
	if err != nil {
		return nil, strategicError(err)
	}
	invalid := func(why string) error {
		return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{field.Invalid(field.NewPath("patch"), text, why)})
	}
	obj := p.kind.New()
	err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(patched, obj, true)
	if strict, ok := runtime.AsStrictDecodingError(err); ok {
		for _, e := range strict.Errors() {
			unknown = append(unknown, e.Error())
		}
	} else if err != nil {
		return nil, invalid(err.Error())
	}
	if err := p.strict(unknown, invalid); err != nil {
		return nil, err
	}
	admitted, _, err := p.kind.Decode(obj)
	if isTooLarge(err) {
		return nil, err
	}
	if err != nil {
		return nil, invalid(err.Error())
	}
	return p.track(live, admitted)
}

// isTooLarge reports whether an error says that an object became too large, which is
// answered as it is.
func isTooLarge(err error) bool {
	var tooLarge *resources.TooLargeError
	return errors.As(err, &tooLarge)
}

// strategicError is the answer to a strategic merge patch that can't be done.
func strategicError(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return err
	}
	for _, bad := range []error{
		mergepatch.ErrBadJSONDoc, mergepatch.ErrBadPatchFormatForPrimitiveList, mergepatch.ErrBadPatchFormatForRetainKeys,
		mergepatch.ErrBadPatchFormatForSetElementOrderList, mergepatch.ErrUnsupportedStrategicMergePatchFormat,
	} {
		if errors.Is(err, bad) {
			return apierrors.NewBadRequest(err.Error())
		}
	}
	for _, bad := range []error{mergepatch.ErrNoListOfLists, mergepatch.ErrPatchContentNotMatchRetainKeys} {
		if errors.Is(err, bad) {
			return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "",
				err.Error(), 0, false)
		}
	}
	// The object is one that a server made: what can't be done with it is the patch.
	return apierrors.NewBadRequest(err.Error())
}

// track gives the manager what the patch changed.
func (p *patcher) track(live, obj resources.Object) (resources.Object, error) {
	if p.c.Hooks.Default != nil {
		p.c.Hooks.Default(obj)
	}
	askReset(obj)
	return p.own(p.fields.UpdateNoErrors(live, obj, p.manager))
}

// own is Call.own for the kind that is patched.
func (p *patcher) own(obj runtime.Object) (resources.Object, error) {
	out, _, err := p.kind.Decode(obj.DeepCopyObject())
	return out, err
}
