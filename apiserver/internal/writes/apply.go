package writes

import (
	"context"
	"errors"
	"fmt"
	"math"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/fieldmanager"
)

// An intent is the applied configuration of an apply.
type intent struct {
	*unstructured.Unstructured
	duplicates error // error about duplicate fields in the body
}

// apply merges the applied configuration into live.
func (p *patcher) apply(ctx context.Context, live runtime.Object) (runtime.Object, error) {
	if p.intent == nil {
		var err error
		if p.intent, err = p.decodeIntent(); err != nil {
			return nil, err
		}
	}
	if !exists(live) {
		var err error
		if live, err = p.Scope.Creater.New(p.Scope.Kind); err != nil {
			return nil, err
		}
	}
	obj, err := p.Fields.Apply(live, p.intent.Unstructured, p.options.FieldManager, p.options.Force != nil &&
		*p.options.Force)
	if err != nil {
		return nil, p.applyError(err)
	}
	if d, ok := p.Scope.Defaulter.(checker); ok {
		if err := d.Check(obj); err != nil {
			return nil, err
		}
	}
	switch {
	case p.intent.duplicates == nil || p.validation == metav1.FieldValidationIgnore:
	case p.validation == metav1.FieldValidationStrict:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error strict decoding patch: %v", p.intent.duplicates))
	default:
		warnStrict(ctx, []error{p.intent.duplicates})
	}
	return obj, nil
}

// A checker is a defaulter with a limit: if the defaults of an object are too large, it sets none of them. Check
// returns an error for such an object.
type checker interface {
	Check(obj runtime.Object) error
}

// decodeIntent decodes the body of an apply.
func (p *patcher) decodeIntent() (*intent, error) {
	tree := map[string]any{}
	out := &intent{Unstructured: &unstructured.Unstructured{}}
	if strict, err := kjson.UnmarshalStrict(p.body, &tree); err == nil && len(strict) == 0 && tree != nil {
		wholeNumbers(tree) // most bodies are JSON, which needs no YAML parser
	} else {
		if _, err := p.Limits.CheckYAML(p.body); err != nil { // the body may be JSON with duplicate keys
			return nil, err
		}
		tree = map[string]any{}
		data, err := yaml.YAMLToJSON(p.body) // YAMLToJSON keeps integers as int64
		if err == nil {
			err = kjson.UnmarshalCaseSensitivePreserveInts(data, &tree)
		}
		if err != nil {
			if yamlErr := yaml.Unmarshal(p.body, &map[string]any{}); yamlErr != nil {
				err = yamlErr // the error text of kube-apiserver
			}
			return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
		}
		out.duplicates = yaml.UnmarshalStrict(p.body, &map[string]any{})
	}
	if out.Object = tree; tree == nil {
		out.Object = map[string]any{}
	}
	return out, nil
}

// wholeNumbers converts floats that are whole numbers to integers, such as 2.0 to 2, because YAML does not distinguish
// 2.0 from 2.
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

// applyError returns the API error for a failed apply. It does not change conflicts. For an invalid applied
// configuration it returns a 400, where kube-apiserver responds with 500.
func (p *patcher) applyError(err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return err
	}
	var fault *fieldmanager.ObjectError
	if errors.As(err, &fault) && fault.Role == fieldmanager.LiveObject {
		return err
	}
	name := fmt.Sprintf("(%s/%s; %s)", p.intent.GetNamespace(), p.intent.GetName(), p.intent.GroupVersionKind())
	if fault == nil {
		return apierrors.NewBadRequest(fmt.Sprintf("failed to convert new object %s to proper version: %v", name, err))
	}
	return apierrors.NewBadRequest(fmt.Sprintf("failed to create typed patch object %s: %v", name, fault.Err))
}
