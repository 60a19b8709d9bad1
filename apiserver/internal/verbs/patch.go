package verbs

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"

	"github.com/tenure-ssa/tenure/apiserver/internal/request"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/internal/response"
)

// patch handles a patch request.
func (c *Call) patch() error {
	obj, created, err := c.patchWith(c.Strategy,
		func(w write) (resources.Object, bool, error) { return c.guaranteedUpdate(w) },
		c.Info.Subresource)
	if err != nil {
		return err
	}
	if created {
		return c.respond(http.StatusCreated, obj)
	}
	return c.respond(http.StatusOK, obj)
}

// patchWith decodes a patch request and calls run with the write that it results in.
func (c *Call) patchWith(
	strategy resources.Strategy, run func(write) (resources.Object, bool, error), subresource string,
) (resources.Object, bool, error) {
	of, err := c.patchType(strategy)
	if err != nil {
		return nil, false, err
	}
	body, err := request.Body(c.Request, c.Body)
	if err != nil {
		return nil, false, err
	}
	options, err := request.Patch(c.Request, of)
	if err != nil {
		return nil, false, err
	}
	p := &patcher{
		c: c, strategy: strategy, patchType: of, body: body,
		validation: validationOf(options.FieldValidation), manager: options.FieldManager,
		force: options.Force != nil && *options.Force,
	}
	if p.fields, err = strategy.FieldManager(subresource); err != nil {
		return nil, false, err
	}
	isApply := of == types.ApplyYAMLPatchType || of == types.ApplyCBORPatchType
	if !isApply {
		p.manager = c.managerOf(p.manager)
	}
	p.mayKeep = isApply && strategy == c.Strategy
	obj, created, err := run(write{
		name: c.Info.Name, mayCreate: isApply && subresource == "", change: p.newObject,
		options: metav1.UpdateOptions{
			DryRun: options.DryRun, FieldManager: options.FieldManager, FieldValidation: options.FieldValidation,
		},
	})
	if err == nil && isApply && p.intent == nil {
		request.Release(body) // it is a known one, which was not decoded
	}
	if err != nil && isApply {
		// What is wrong with the body counts first.
		if invalid := p.decodeIntent(); invalid != nil {
			err = invalid
		}
	}
	return obj, created, err
}

// patchTypes returns the patch media types that a resource supports.
func patchTypes(strategy resources.Strategy) []string {
	out := []string{string(types.JSONPatchType), string(types.MergePatchType)}
	if strategy.PatchMetaStruct() != nil {
		out = append(out, string(types.StrategicMergePatchType))
	}
	return append(out, string(types.ApplyYAMLPatchType), string(types.ApplyCBORPatchType))
}

func (c *Call) patchType(strategy resources.Strategy) (types.PatchType, error) {
	contentType, _, _ := strings.Cut(c.Request.Header.Get("Content-Type"), ";")
	contentType = strings.TrimSpace(contentType)
	if contentType == string(types.ApplyYAMLPatchType) {
		return types.ApplyYAMLPatchType, nil // of all resources, and the most frequent
	}
	known := patchTypes(strategy)
	switch {
	case slices.Contains(known, contentType):
		return types.PatchType(contentType), nil
	case c.Resource.Custom:
		// kube-apiserver does not list CBOR here. Clients that read the list do not try it
		// then.
		return "", negotiation.NewUnsupportedMediaTypeError(known[:len(known)-1])
	}
	return "", response.UnsupportedMediaType()
}

// newObject returns the patched object, or live itself. live is nil if the object does not exist.
func (p *patcher) newObject(ctx context.Context, live resources.Object) (resources.Object, error) {
	if live == nil {
		if err := p.c.authorize("create"); err != nil {
			return nil, err
		}
	}
	var obj resources.Object
	var err error
	switch p.patchType {
	case types.ApplyYAMLPatchType, types.ApplyCBORPatchType:
		obj, err = p.apply(live)
	case types.StrategicMergePatchType:
		obj, err = p.strategicMergePatch(ctx, live)
	default:
		obj, err = p.jsonPatch(ctx, live)
	}
	if err != nil || obj == live {
		return obj, err
	}
	if live == nil && obj.GetUID() != "" {
		return nil, apierrors.NewConflict(p.c.Resource.GroupResource(), p.c.Info.Name,
			fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", obj.GetUID()))
	}
	if err := p.c.matchNamespace(obj); err != nil {
		return nil, err
	}
	return obj, p.c.checkName(obj)
}

// handleStrictErrors handles unknown and duplicate fields of a patch as fieldValidation
// demands: it ignores them, warns, or returns the error that refuse makes of them.
func (p *patcher) handleStrictErrors(texts []string, refuse func(text string) error) error {
	switch {
	case len(texts) == 0 || p.validation == metav1.FieldValidationIgnore:
		return nil
	case p.validation == metav1.FieldValidationStrict:
		return refuse(strictError(texts).Error())
	}
	p.c.warnStrict(texts)
	return nil
}
