package verbs

import (
	"context"
	"errors"
	"fmt"
	"math"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/fieldmanager"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// apply merges the applied configuration into live. It returns live itself if nothing changes.
func (p *patcher) apply(live resources.Object) (resources.Object, error) {
	if p.isKnown(live) {
		return live, nil
	}
	if err := p.decodeIntent(); err != nil {
		return nil, err
	}
	intent := p.intent
	var before runtime.Object
	if live != nil {
		before = live
	}
	options := fieldmanager.ApplyOptions{Manager: p.manager, Force: p.force}
	result, err := p.fields.Apply(context.TODO(), before, intent, options)
	if err != nil {
		return nil, p.applyError(intent, err)
	}
	if p.duplicateFields != nil && p.validation != metav1.FieldValidationIgnore {
		if p.validation == metav1.FieldValidationStrict {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("error strict decoding patch: %v", p.duplicateFields))
		}
		p.c.warnStrict([]string{p.duplicateFields.Error()})
	}
	if result.NoOp && p.mayKeep {
		p.remember(live)
		return live, nil
	}
	obj, err := copyAndDecode(p.strategy, result.Object)
	if err != nil {
		return nil, p.applyError(intent, err)
	}
	if p.c.Hooks.Default != nil {
		p.c.Hooks.Default(obj)
	}
	return obj, nil
}

// decodeIntent decodes the body of an apply, once.
func (p *patcher) decodeIntent() error {
	if p.intent != nil {
		return nil
	}
	p.intent = &unstructured.Unstructured{Object: map[string]any{}}
	if p.patchType == types.ApplyCBORPatchType {
		if err := direct.Unmarshal(p.body, &p.intent.Object); err != nil {
			return apierrors.NewBadRequest(fmt.Sprintf("error decoding CBOR: %v", err))
		}
		return nil
	}
	// Most bodies are JSON, which needs no YAML parser.
	if strict, err := kjson.UnmarshalStrict(p.body, &p.intent.Object); err == nil && len(strict) == 0 &&
		p.intent.Object != nil {
		wholeNumbers(p.intent.Object)
		return nil
	}
	p.intent.Object = map[string]any{}
	// Convert to JSON first: its decoder keeps integers as int64.
	data, err := yaml.YAMLToJSON(p.body)
	if err == nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(data, &p.intent.Object)
	}
	if err != nil {
		if said := yaml.Unmarshal(p.body, &map[string]any{}); said != nil {
			err = said // the error text of kube-apiserver
		}
		return apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))
	}
	if p.intent.Object == nil {
		p.intent.Object = map[string]any{}
	}
	p.duplicateFields = yaml.UnmarshalStrict(p.body, &map[string]any{})
	return nil
}

// wholeNumbers converts floats that are whole numbers, such as 2.0, to integers: YAML does not
// distinguish them.
func wholeNumbers(v any) {
	switch t := v.(type) {
	case map[string]any:
		for name, item := range t {
			if n, ok := item.(float64); ok {
				t[name] = whole(n)
			} else {
				wholeNumbers(item)
			}
		}
	case []any:
		for i, item := range t {
			if n, ok := item.(float64); ok {
				t[i] = whole(n)
			} else {
				wholeNumbers(item)
			}
		}
	}
}

func whole(n float64) any {
	if n == math.Trunc(n) && math.Abs(n) < 1<<53 {
		return int64(n)
	}
	return n
}

// applyError returns the API error for a failed apply. Conflicts stay as they are. An invalid
// applied configuration is a 400, where kube-apiserver responds with 500.
func (p *patcher) applyError(intent *unstructured.Unstructured, err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return err
	}
	var fault *fieldmanager.ObjectError
	if errors.As(err, &fault) && fault.Role == fieldmanager.LiveObject {
		return err
	}
	name := fmt.Sprintf("(%s/%s; %s)", intent.GetNamespace(), intent.GetName(), intent.GroupVersionKind())
	if fault == nil {
		return apierrors.NewBadRequest(fmt.Sprintf("failed to convert new object %s to proper version: %v", name, err))
	}
	return apierrors.NewBadRequest(fmt.Sprintf("failed to create typed patch object %s: %v", name, fault.Err))
}
