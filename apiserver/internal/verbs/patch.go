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

	"github.com/tenure-ssa/tenure/apiserver/internal/answer"
	"github.com/tenure-ssa/tenure/apiserver/internal/request"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// patch changes an object as the patch in the body says.
func (c *Call) patch() error {
	obj, created, err := c.patched(c.Strategy, func(w write) (resources.Object, bool, error) { return c.run(w) },
		c.Info.Subresource)
	if err != nil {
		return err
	}
	if created {
		return c.answer(http.StatusCreated, obj)
	}
	return c.answer(http.StatusOK, obj)
}

// patched reads a patch of an object of kind and has run write what comes of it.
func (c *Call) patched(
	kind resources.Strategy, run func(write) (resources.Object, bool, error), subresource string,
) (resources.Object, bool, error) {
	of, err := c.patchType(kind)
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
		c: c, kind: kind, of: of, body: body,
		validation: validationOf(options.FieldValidation), manager: options.FieldManager,
		force: options.Force != nil && *options.Force,
	}
	if p.fields, err = kind.FieldManager(subresource); err != nil {
		return nil, false, err
	}
	isApply := of == types.ApplyYAMLPatchType || of == types.ApplyCBORPatchType
	if !isApply {
		p.manager = c.managerOf(p.manager)
	} else if err := p.decodeIntent(); err != nil {
		return nil, false, err
	}
	return run(write{
		name: c.Info.Name, dryRun: isDryRun(options.DryRun), mayCreate: isApply && subresource == "",
		change: p.change,
	})
}

// patchTypes are the types of patches that an object of kind can be sent.
func patchTypes(kind resources.Strategy) []string {
	out := []string{string(types.JSONPatchType), string(types.MergePatchType)}
	if kind.PatchMetaStruct() != nil {
		out = append(out, string(types.StrategicMergePatchType))
	}
	return append(out, string(types.ApplyYAMLPatchType), string(types.ApplyCBORPatchType))
}

func (c *Call) patchType(kind resources.Strategy) (types.PatchType, error) {
	contentType, _, _ := strings.Cut(c.Request.Header.Get("Content-Type"), ";")
	contentType = strings.TrimSpace(contentType)
	known := patchTypes(kind)
	switch {
	case slices.Contains(known, contentType):
		return types.PatchType(contentType), nil
	case c.Resource.Custom:
		// What a server says that serves no CBOR, which clients do not try then.
		return "", request.UnsupportedMediaType(known[:len(known)-1])
	}
	return "", answer.UnsupportedMediaType()
}

// change returns live, or no object, as the patch makes it.
func (p *patcher) change(ctx context.Context, live resources.Object) (resources.Object, error) {
	if live == nil {
		if err := p.c.authorize("create"); err != nil {
			return nil, err
		}
	}
	var obj resources.Object
	var err error
	switch p.of {
	case types.ApplyYAMLPatchType, types.ApplyCBORPatchType:
		obj, err = p.apply(live)
	case types.StrategicMergePatchType:
		obj, err = p.strategic(ctx, live)
	default:
		obj, err = p.json(ctx, live)
	}
	if err != nil {
		return nil, err
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

// strict says what becomes of undeclared and duplicate fields of a patch: refuse
// makes an error of them.
func (p *patcher) strict(texts []string, refuse func(text string) error) error {
	switch {
	case len(texts) == 0 || p.validation == metav1.FieldValidationIgnore:
		return nil
	case p.validation == metav1.FieldValidationStrict:
		return refuse(strictError(texts).Error())
	}
	p.c.warnStrict(texts)
	return nil
}
