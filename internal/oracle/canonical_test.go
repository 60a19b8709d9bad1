package oracle

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// RunCanonical compares Tenure in Canonical semantics (spec rule 11.1) with upstream. Both engines get the same values,
// but Tenure gets them in random spellings: other spellings of quantities and times, and empty lists in place of
// missing fields. Tenure's conflicts and owners must equal upstream's with canonical spellings only, and so must the
// object, apart from the spellings.
func RunCanonical(data []byte) error {
	g := NewGen(data)
	c, err := newCanonicalWorld()
	if err != nil {
		return err
	}
	for step := 0; step < maxSteps && !g.Done(); step++ {
		canonical, spoken := g.intent()
		manager, force := g.Manager(), g.Intn(3) == 0
		if err := c.apply(manager, force, canonical, spoken); err != nil {
			return fmt.Errorf("step %d, %s applies %s: %w", step, manager, JSON(spoken), err)
		}
	}
	return nil
}

// words are the spellings of values with the same meaning; the first is canonical.
var words = map[string][]any{
	"one":   {"1", "1000m", int64(1), "1e0"},
	"half":  {"500m", "0.5", 0.5},
	"gibi":  {"1Gi", "1024Mi", "1073741824"},
	"noon":  {"2026-01-01T12:00:00Z", "2026-01-01T13:00:00+01:00", "2026-01-01T12:00:00.0Z"},
	"later": {"2026-01-01T12:00:01Z", "2026-01-01T07:00:01-05:00"},
}

var (
	amounts  = []string{"one", "half", "gibi"}
	instants = []string{"noon", "later"}
)

// intent makes an intent in canonical spellings and in random ones.
func (g *Gen) intent() (canonical, spoken map[string]any) {
	// The intent always has a field, because a struct without fields would be owned itself.
	canonical, spoken = map[string]any{"text": "a"}, map[string]any{"text": "a"}
	say := func(field string, meanings []string) {
		if g.Intn(2) == 0 {
			return
		}
		said := words[meanings[g.Intn(len(meanings))]]
		canonical[field], spoken[field] = said[0], said[g.Intn(len(said))]
	}
	say("cpu", amounts)
	say("memory", amounts)
	say("since", instants)
	if g.Intn(2) == 0 {
		spoken["items"] = []any{}
	} else {
		a, b := map[string]any{"name": "a"}, map[string]any{"name": "a"}
		said := words[amounts[g.Intn(len(amounts))]]
		a["cpu"], b["cpu"] = said[0], said[g.Intn(len(said))]
		canonical["items"], spoken["items"] = []any{a}, []any{b}
	}
	return canonical, spoken
}

type canonicalWorld struct {
	upstream *managedfields.FieldManager
	tenure   *fieldmanager.FieldManager
	// up and own are the object of each engine.
	up, own *unstructured.Unstructured
}

func newCanonicalWorld() (*canonicalWorld, error) {
	const quantityName = "io.k8s.apimachinery.pkg.api.resource.Quantity"
	quantity := spec.Schema{SchemaProps: spec.SchemaProps{Ref: spec.MustCreateRef("#/definitions/" + quantityName)}}
	instant := schemaOf("string")
	instant.Format = "date-time"
	item := schemaOf("object")
	item.Properties = map[string]spec.Schema{"name": schemaOf("string"), "cpu": quantity}
	root := schemaOf("object")
	root.Properties = map[string]spec.Schema{
		"cpu": quantity, "memory": quantity, "since": instant, "text": schemaOf("string"),
		"items": extended(listOf(item, "map"), "x-kubernetes-list-map-keys", []any{"name"}),
	}
	w := &World{}
	if err := w.SetSpec(root); err != nil {
		return nil, err
	}
	models := w.models()
	named := schemaOf("string")
	models[quantityName] = &named
	converter, err := managedfields.NewTypeConverter(models, false)
	if err != nil {
		return nil, err
	}
	types, err := openapi.Compile(models, false)
	if err != nil {
		return nil, err
	}
	kind := Kind("v1")
	c := &canonicalWorld{}
	c.upstream, err = managedfields.NewDefaultCRDFieldManager(
		converter,
		AsItIs{},
		AsItIs{},
		AsItIs{},
		kind,
		kind.GroupVersion(),
		"",
		nil,
	)
	if err != nil {
		return nil, err
	}
	c.tenure, err = fieldmanager.New(kind, types, fieldmanager.Options{Semantics: typed.Canonical(nil),
		Clock: func() time.Time { return time.Unix(0, 0) }})
	return c, err
}

func thing(fields map[string]any) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "thing"}, "spec": runtime.DeepCopyJSON(fields),
	}}
	obj.SetGroupVersionKind(Kind("v1"))
	return obj
}

func (c *canonicalWorld) apply(manager string, force bool, canonical, spoken map[string]any) error {
	up := c.up
	var own runtime.Object
	if c.own != nil {
		own = c.own
	}
	if up == nil {
		up = &unstructured.Unstructured{}
		up.SetGroupVersionKind(Kind("v1"))
	}
	gotUp, upErr := c.upstream.Apply(up.DeepCopy(), thing(canonical), manager, force)
	gotOwn, ownErr := writetest.Apply(c.tenure, own, thing(spoken), manager, force)
	if err := CompareErrors(upErr, ownErr); err != nil || upErr != nil {
		return err
	}
	c.up, c.own = gotUp.(*unstructured.Unstructured), gotOwn.(*unstructured.Unstructured)
	c.up.SetUID("uid")
	c.own = c.own.DeepCopy()
	c.own.SetUID("uid")
	if a, b := timeless(managedFields(c.up.Object)), timeless(managedFields(c.own.Object)); !typed.Equal(any(a), any(b)) {
		return fmt.Errorf("upstream's managed fields: %s\ntenure's managed fields:   %s", JSON(a), JSON(b))
	}
	if a, b := spelled(c.up.Object["spec"]), spelled(c.own.Object["spec"]); !typed.Equal(a, b) {
		return fmt.Errorf("upstream's object: %s\ntenure's object:   %s", JSON(a), JSON(b))
	}
	return nil
}

// spelled returns v in canonical spellings, without empty values and nulls.
func spelled(v any) any {
	switch t := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, item := range t {
			if item = spelled(item); item != nil {
				out[k] = item
			}
		}
		return out
	case []any:
		if len(t) == 0 {
			return nil
		}
		out := make([]any, len(t))
		for i := range t {
			out[i] = spelled(t[i])
		}
		return out
	}
	for _, said := range words {
		for _, word := range said {
			if word == v {
				return said[0]
			}
		}
	}
	return v
}
