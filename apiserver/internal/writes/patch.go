package writes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/apiserver/internal/request"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/internal/response"
)

// Limits of patches.
const (
	maxOperations = 10_000 // in a JSON Patch
	// maxPatchItems limits the length of a list in a strategic merge patch, because a merge takes time proportional to
	// this length times the number of live items.
	maxPatchItems = 1_000
)

// maxCopied limits how many bytes the operations "copy" of a JSON Patch may add, as in kube-apiserver. The JSON Patch
// library has one variable for the whole process.
const maxCopied = 3 << 20

func init() {
	if jsonpatch.AccumulatedCopySizeLimit == 0 {
		jsonpatch.AccumulatedCopySizeLimit = maxCopied
	}
}

// Patch handles a patch or an apply.
func (h *Handler) Patch(e *resources.Endpoint, w http.ResponseWriter, r *http.Request) {
	h.serve(e, w, r, (*call).patch)
}

// A patcher handles one patch.
type patcher struct {
	*call
	patchType  types.PatchType
	body       []byte
	options    *metav1.PatchOptions
	validation string
	intent     *intent // only for an apply
	live       version // version of the live object
}

func (c *call) patch(ctx context.Context) (runtime.Object, error) {
	patchType, err := c.patchType()
	if err != nil {
		return nil, err
	}
	p := &patcher{call: c, patchType: patchType, options: &metav1.PatchOptions{}}
	// A patch is decoded into the type of the endpoint's kind, even if it names another kind.
	target := request.As(request.Kinds(c.Scope.Creater, c.Scope.Kind)(schema.GroupVersionKind{}))
	if patchType == types.JSONPatchType {
		target = request.As(reflect.TypeFor[[]operation]())
	}
	if p.body, err = request.Body(c.request, c.Limits, target); err != nil {
		return nil, err
	}
	validate := func() field.ErrorList { return validation.ValidatePatchOptions(p.options, patchType) }
	if err := c.decodeOptions(p.options, "PatchOptions", validate); err != nil {
		return nil, err
	}
	p.validation = cmp.Or(p.options.FieldValidation, metav1.FieldValidationWarn)
	audited, err := auditedPatch(p.body, patchType)
	if err != nil {
		return nil, err
	}
	audit.LogRequestPatch(c.request.Context(), audited)
	change := p.patchLive
	isApply := patchType == types.ApplyYAMLPatchType
	if isApply {
		change = p.apply
	}
	options := &metav1.UpdateOptions{
		DryRun: p.options.DryRun, FieldManager: p.options.FieldManager, FieldValidation: p.options.FieldValidation,
	}
	update := func(ctx context.Context) (runtime.Object, error) {
		return c.update(ctx, nil, options, isApply,
			func(ctx context.Context, _, live runtime.Object) (runtime.Object, error) {
				p.live = versionOf(live)
				obj, err := change(ctx, live)
				if err != nil {
					return nil, err
				}
				return obj, p.check(obj, live)
			})
	}
	if isApply && p.Unchanged != nil && !p.Custom && len(options.DryRun) == 0 {
		return p.unlessUnchanged(ctx, options, update)
	}
	return update(ctx)
}

// auditedPatch returns a patch as JSON, for audit events. An apply may be JSON or YAML; all other patches must be JSON.
// For any other body, auditedPatch returns a 400.
func auditedPatch(body []byte, patchType types.PatchType) ([]byte, error) {
	if json.Valid(body) {
		return body, nil
	}
	if patchType != types.ApplyYAMLPatchType {
		return nil, apierrors.NewBadRequest("invalid JSON patch")
	}
	out, err := yaml.YAMLToJSON(body)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error encoding patch: %v", err))
	}
	return out, nil
}

// patchTypes are the media types of patches.
var patchTypes = []types.PatchType{types.JSONPatchType, types.MergePatchType, types.StrategicMergePatchType,
	types.ApplyYAMLPatchType}

// patchType returns the type of a patch, or a 415 if the media type is not supported.
func (c *call) patchType() (types.PatchType, error) {
	contentType, _, _ := strings.Cut(c.request.Header.Get("Content-Type"), ";")
	var known []string
	for _, t := range patchTypes {
		if c.Custom && t == types.StrategicMergePatchType {
			continue
		}
		if string(t) == contentType {
			return t, nil
		}
		known = append(known, string(t))
	}
	if !c.Custom {
		return "", response.UnsupportedMediaType()
	}
	return "", negotiation.NewUnsupportedMediaTypeError(known)
}

// check rejects a patched object that is not the object in the path of the request.
func (p *patcher) check(obj, live runtime.Object) error {
	if o, err := meta.Accessor(obj); err == nil && o.GetUID() != "" && !exists(live) {
		return apierrors.NewConflict(p.Scope.Resource.GroupResource(), p.name, fmt.Errorf(
			"uid mismatch: the provided object specified uid %s, and no existing object was found", o.GetUID()))
	}
	if err := p.matchNamespace(obj); err != nil {
		return err
	}
	return p.checkName(obj)
}

// patchLive returns the patched object, with its managed fields.
func (p *patcher) patchLive(ctx context.Context, live runtime.Object) (obj runtime.Object, err error) {
	if !exists(live) {
		return nil, apierrors.NewNotFound(p.Scope.Resource.GroupResource(), p.name)
	}
	if p.patchType == types.StrategicMergePatchType {
		obj, err = p.patchStrategically(ctx, live)
	} else {
		obj, err = p.patchEncoded(ctx, live)
	}
	if err != nil {
		return nil, err
	}
	return p.Fields.UpdateNoErrors(live, obj, p.manager(p.options.FieldManager)), nil
}

// patchEncoded applies a JSON Patch or a merge patch to the JSON of live.
func (p *patcher) patchEncoded(ctx context.Context, live runtime.Object) (runtime.Object, error) {
	s := p.Scope
	info, _ := runtime.SerializerInfoForMediaType(s.Serializer.SupportedMediaTypes(), runtime.ContentTypeJSON)
	before, err := runtime.Encode(s.Serializer.EncoderForVersion(info.Serializer, s.Kind.GroupVersion()), live)
	if err != nil {
		return nil, err
	}
	after, faults, err := p.patchJSON(before)
	if err != nil {
		return nil, err
	}
	if err := request.Kinds(s.Creater, s.Kind).CheckJSON(after); err != nil {
		return nil, err
	}
	obj := p.Storage.New()
	decoder := s.Serializer.DecoderToVersion(serializer(info, p.validation), s.HubGroupVersion)
	if err := runtime.DecodeInto(decoder, after, obj); err != nil {
		strict, ok := runtime.AsStrictDecodingError(err)
		if !ok {
			return nil, invalidPatch(string(after), err)
		}
		faults = append(faults, strict.Errors()...)
	}
	return obj, p.handleStrict(ctx, string(after), faults)
}

// patchJSON returns the patched JSON, and errors for unknown and duplicate fields of the patch.
func (p *patcher) patchJSON(before []byte) (after []byte, faults []error, err error) {
	var tree any = &map[string]any{}
	if p.patchType == types.JSONPatchType {
		tree = &[]operation{}
	}
	if p.validation != metav1.FieldValidationIgnore {
		if faults, err = kjson.UnmarshalStrict(p.body, tree); err != nil {
			return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
		}
	}
	if p.patchType == types.MergePatchType {
		unfolded := request.NestedSize(before) + request.NestedSize(p.body)
		if err := checkUnfolded(unfolded, len(before)+len(p.body)); err != nil {
			return nil, nil, err
		}
		after, err = jsonpatch.MergePatch(before, p.body)
		if errors.Is(err, jsonpatch.ErrBadJSONPatch) {
			err = apierrors.NewBadRequest(err.Error())
		}
		return after, faults, err
	}
	for i := range faults {
		faults[i] = fmt.Errorf("json patch %w", faults[i])
	}
	patch, err := jsonpatch.DecodePatch(p.body)
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	if len(patch) > maxOperations {
		return nil, nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
			"The allowed maximum operations in a JSON patch is %d, got %d", maxOperations, len(patch)))
	}
	if err := checkPaths(patch, len(before)+len(p.body)); err != nil {
		return nil, nil, err
	}
	if after, err = applyOperations(patch, before); err != nil {
		return nil, nil, unprocessable(err)
	}
	return after, faults, nil
}

// The JSON Patch library keeps a copy of each value on a path, so it copies a text once for each level above the text.
// Besides maxCopied, these constants limit how many bytes a patch copies. The limit depends on the sizes of the object
// and of the patch.
const (
	minUnfolded     = 16 << 20
	unfoldedPerByte = 32
)

// checkPaths rejects operations whose paths are too long for the size of the object and the patch. The lengths of the
// paths of moves and copies are summed up, because these operations may nest values deeper.
func checkPaths(patch jsonpatch.Patch, size int) error {
	longest, nested := 0, 0
	for _, op := range patch {
		path, _ := op.Path()
		from, _ := op.From()
		longest = max(longest, strings.Count(path, "/"), strings.Count(from, "/"))
		if from != "unknown" {
			nested += strings.Count(path, "/")
		}
	}
	return checkUnfolded((longest+nested)*size, size)
}

func checkUnfolded(unfolded, size int) error {
	if limit := minUnfolded + unfoldedPerByte*size; unfolded > limit {
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("values that the patch changes are nested too deep for "+
			"their size: expected at most %d bytes in all levels, got %d", limit, unfolded))
	}
	return nil
}

// applyOperations calls patch.Apply, and returns an error if patch.Apply panics.
func applyOperations(patch jsonpatch.Patch, before []byte) (after []byte, err error) {
	for _, op := range patch {
		if _, ok := op["value"]; op != nil && !ok {
			if path, err := op.Path(); err == nil && path == "" {
				op["value"] = nil // a missing value is null, which the library reports as an error
			}
		}
	}
	// Other panics depend on the results of earlier operations. The library panics if it compares a list that contains
	// null, or if a path leads into a copy of null.
	defer func() {
		if p := recover(); p != nil {
			after, err = nil, errors.New("the JSON patch can't be applied to null")
		}
	}()
	return patch.Apply(before)
}

// operation is an operation of a JSON Patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	From  string `json:"from"`
	Value any    `json:"value"`
}

func unprocessable(err error) error {
	return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(),
		0, false)
}

// invalidPatch returns the 422 for a patch whose result is not an object of the kind.
func invalidPatch(what string, err error) error {
	return apierrors.NewInvalid(schema.GroupKind{}, "",
		field.ErrorList{field.Invalid(field.NewPath("patch"), what, err.Error())})
}

// handleStrict handles unknown and duplicate fields as the field validation of the request requires.
func (p *patcher) handleStrict(ctx context.Context, what string, faults []error) error {
	switch {
	case len(faults) == 0 || p.validation == metav1.FieldValidationIgnore:
		return nil
	case p.validation == metav1.FieldValidationStrict:
		return invalidPatch(what, runtime.NewStrictDecodingError(faults))
	}
	warnStrict(ctx, faults)
	return nil
}

// patchStrategically applies a strategic merge patch.
func (p *patcher) patchStrategically(ctx context.Context, live runtime.Object) (obj runtime.Object, err error) {
	s := p.Scope
	patch := map[string]any{}
	var faults []error
	if p.validation == metav1.FieldValidationIgnore {
		err = kjson.UnmarshalCaseSensitivePreserveInts(p.body, &patch)
	} else {
		faults, err = kjson.UnmarshalStrict(p.body, &patch)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if n := longestList(patch); n > maxPatchItems {
		return nil, apierrors.NewRequestEntityTooLargeError(
			fmt.Sprintf("a list in a strategic merge patch may have %d items, got %d", maxPatchItems, n))
	}
	versioned, err := s.UnsafeConvertor.ConvertToVersion(live, s.Kind.GroupVersion())
	if err != nil {
		return nil, err
	}
	before, err := runtime.DefaultUnstructuredConverter.ToUnstructured(versioned)
	if err != nil {
		return nil, err
	}
	out, err := s.Creater.New(s.Kind)
	if err != nil {
		return nil, err
	}
	after, err := mergeStrategically(before, patch, out)
	if err != nil {
		return nil, err
	}
	strict := p.validation != metav1.FieldValidationIgnore
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(after, out, strict); err != nil {
		unknown, ok := runtime.AsStrictDecodingError(err)
		if !ok {
			return nil, invalidPatch(fmt.Sprintf("%+v", patch), err)
		}
		faults = append(faults, unknown.Errors()...)
	}
	if err := p.handleStrict(ctx, fmt.Sprintf("%+v", patch), faults); err != nil {
		return nil, err
	}
	s.Defaulter.Default(out)
	return s.UnsafeConvertor.ConvertToVersion(out, s.HubGroupVersion)
}

// mergeStrategically calls strategicpatch.StrategicMergeMapPatch, and converts its errors to API errors. It also
// returns an API error if that function panics, for example for null in a list.
func mergeStrategically(before, patch map[string]any, like runtime.Object) (after map[string]any, err error) {
	defer func() {
		if p := recover(); p != nil {
			after, err = nil, apierrors.NewBadRequest(fmt.Sprintf("the strategic merge patch can't be applied: %v", p))
		}
	}()
	after, err = strategicpatch.StrategicMergeMapPatch(before, patch, like)
	switch {
	case errors.Is(err, mergepatch.ErrNoListOfLists), errors.Is(err, mergepatch.ErrPatchContentNotMatchRetainKeys):
		return nil, unprocessable(err)
	case err != nil:
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return after, nil
}

// longestList returns the number of items of the longest list in a value.
func longestList(v any) (longest int) {
	switch t := v.(type) {
	case map[string]any:
		for _, item := range t {
			longest = max(longest, longestList(item))
		}
	case []any:
		longest = len(t)
		for _, item := range t {
			longest = max(longest, longestList(item))
		}
	}
	return longest
}
