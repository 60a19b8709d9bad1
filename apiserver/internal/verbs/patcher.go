package verbs

import (
	"context"
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

// A patcher computes the new object of a patch or apply request.
type patcher struct {
	c               *Call
	strategy        resources.Strategy
	patchType       types.PatchType
	body            []byte
	validation      string
	manager         string
	force           bool
	fields          *fieldmanager.FieldManager
	intent          *unstructured.Unstructured // of an apply; read-only
	mayKeep         bool                       // an apply may return live itself
	duplicateFields error                      // duplicate fields of the intent, which strict validation rejects
}

// maxOperations limits the operations of a JSON patch, as kube-apiserver does.
const maxOperations = 10_000

// maxCopied limits the bytes that the copy operations of a JSON patch add. The library has one
// global limit for the whole program: a limit that is set already stays.
const maxCopied = 3 << 20

func init() {
	if jsonpatch.AccumulatedCopySizeLimit == 0 {
		jsonpatch.AccumulatedCopySizeLimit = maxCopied
	}
}

// jsonPatch applies a JSON patch (RFC 6902) or a JSON merge patch (RFC 7386).
func (p *patcher) jsonPatch(ctx context.Context, live resources.Object) (resources.Object, error) {
	current, err := p.c.encodeLive(live)
	if err != nil {
		return nil, err
	}
	patched, duplicates, err := p.patchJSON(ctx, current)
	if err != nil {
		return nil, err
	}
	info, _ := runtime.SerializerInfoForMediaType(p.strategy.Serializers(), runtime.ContentTypeJSON)
	gvk := p.strategy.New().GetObjectKind().GroupVersionKind()
	decoded, _, err := info.StrictSerializer.Decode(patched, &gvk, p.strategy.New())
	invalid := func(text string) error {
		return apierrors.NewInvalid(schema.GroupKind{}, "",
			field.ErrorList{field.Invalid(field.NewPath("patch"), string(patched), text)})
	}
	unknown, err := strictTexts(err)
	if err != nil {
		return nil, invalid(err.Error())
	}
	obj, dropped, err := p.strategy.Decode(decoded)
	if isTooLarge(err) {
		return nil, err
	}
	if err != nil {
		return nil, invalid(err.Error())
	}
	if err := p.handleStrictErrors(slices.Concat(duplicates, unknown, dropped), invalid); err != nil {
		return nil, err
	}
	return p.updateManagedFields(live, obj)
}

// patchJSON returns current with the patch applied, and messages for the duplicate fields of
// the patch.
func (p *patcher) patchJSON(ctx context.Context, current []byte) (patched []byte, duplicates []string, err error) {
	var into any = &map[string]any{}
	prefix := ""
	if p.patchType == types.JSONPatchType {
		into, prefix = &[]operation{}, "json patch "
	}
	strict, err := kjson.UnmarshalStrict(p.body, into)
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	for _, e := range strict {
		duplicates = append(duplicates, prefix+e.Error())
	}
	if p.patchType == types.MergePatchType {
		patched, err = jsonpatch.MergePatch(current, p.body)
		if errors.Is(err, jsonpatch.ErrBadJSONPatch) {
			err = apierrors.NewBadRequest(err.Error())
		}
		return patched, duplicates, err
	}
	operations, err := jsonpatch.DecodePatch(p.body)
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	if len(operations) > maxOperations {
		return nil, nil, apierrors.NewRequestEntityTooLargeError(
			fmt.Sprintf("The allowed maximum operations in a JSON patch is %d, got %d", maxOperations, len(operations)))
	}
	patched, err = p.applyOperations(ctx, current, operations)
	return patched, duplicates, err
}

// operationsAtOnce is the number of JSON patch operations between two checks of the context
// and of the size of the object.
const operationsAtOnce = 250

// applyOperations applies the operations of a JSON patch, in chunks: one operation may take as
// long as reading the whole object.
func (p *patcher) applyOperations(ctx context.Context, doc []byte, operations jsonpatch.Patch) (_ []byte, err error) {
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

// operation is a JSON patch operation. Strict decoding into it finds unknown and duplicate
// fields.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	From  string `json:"from"`
	Value any    `json:"value"`
}

// strategicMergePatch applies a strategic merge patch.
func (p *patcher) strategicMergePatch(ctx context.Context, live resources.Object) (resources.Object, error) {
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
	// strategic.Merge changes the patch, so the error text is made before. The next attempt
	// decodes the body again.
	text := fmt.Sprintf("%+v", patch)
	merging, err := strategicpatch.NewPatchMetaFromStruct(p.strategy.PatchMetaStruct())
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
	obj := p.strategy.New()
	err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(patched, obj, true)
	more, err := strictTexts(err)
	if err != nil {
		return nil, invalid(err.Error())
	}
	if err := p.handleStrictErrors(append(unknown, more...), invalid); err != nil {
		return nil, err
	}
	admitted, _, err := p.strategy.Decode(obj)
	if isTooLarge(err) {
		return nil, err
	}
	if err != nil {
		return nil, invalid(err.Error())
	}
	return p.updateManagedFields(live, admitted)
}

// isTooLarge reports whether an error is a *resources.TooLargeError, which is returned to the
// client as it is.
func isTooLarge(err error) bool {
	var tooLarge *resources.TooLargeError
	return errors.As(err, &tooLarge)
}

// strategicError returns the API error for a strategic merge patch that failed.
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
	// Any other error is the patch's fault too: live objects are valid.
	return apierrors.NewBadRequest(err.Error())
}

// updateManagedFields makes the manager the owner of the fields that the patch changed.
func (p *patcher) updateManagedFields(live, obj resources.Object) (resources.Object, error) {
	if p.c.Hooks.Default != nil {
		p.c.Hooks.Default(obj)
	}
	markManagedFieldsReset(obj)
	return copyAndDecode(
		p.strategy,
		p.fields.UpdateNoErrors(context.Background(), live, obj, fieldmanager.UpdateOptions{Manager: p.manager}),
	)
}
