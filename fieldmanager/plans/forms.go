package plans

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/trees"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

const (
	// maxForms is the maximum number of other forms that OtherForms tries: for each, it sets the defaults of an object.
	maxForms = 32
	// maxFields is the maximum number of fields that OtherForms looks up: each lookup may walk a long list.
	maxFields = 256
)

// OtherForms returns the fields in conflict whose live value may differ in form from the value that its owner applied,
// because the server normalized a quantity, or set defaults in an atomic value. A server compares an intent with live
// before it normalizes the intent. So if another manager shares the field by applying live's form, the owner's next
// apply, in its own form, is in conflict with this manager. The arguments are the same as for [Resolve]. To limit the
// time, OtherForms looks only at the first conflicts, and tries only some forms.
func OtherForms(
	ctx context.Context, m *fieldmanager.FieldManager, live runtime.Object, found conflicts.Conflicts, options Options,
) (out []fieldpath.Path) {
	if m == nil {
		return nil
	}
	version := m.Kind().GroupVersion().String()
	given, t, err := m.At(ctx, live, version)
	if err != nil {
		return nil
	}
	p := &Plan{Object: live}
	stored := func(tree map[string]any) map[string]any {
		if options.Defaults {
			tree, _ = t.Default(tree).(map[string]any)
		}
		if p.change(&tree, options.Defaulter) != nil {
			return nil
		}
		return tree
	}
	is := stored(given)
	tries := maxForms
	found = found[:min(len(found), maxFields)]
	for i, c := range found {
		isApplier := c.Owner.Operation == metav1.ManagedFieldsOperationApply && c.APIVersion == version
		if !isApplier || len(c.Path) < 2 {
			continue
		}
		first := 0
		if value, _ := t.Get(given, c.Path); !rewrite(trees.Copy(value), func(any) {}, &first) {
			continue // no part has another form, so the object is not copied
		}
		share := max(tries/(len(found)-i), min(tries, 1)) // a large map leaves tries for the other fields
		for n := 0; n < share; n++ {
			tree, left := trees.Copy(given).(map[string]any), n
			value, _ := t.Get(tree, c.Path)
			around, _ := t.Get(tree, c.Path[:len(c.Path)-1])
			fields, isField := around.(map[string]any)
			name, _ := c.Path[len(c.Path)-1].Field()
			if _, isText := value.(string); isText && !isField { // an item of a set: in another form, it is another item
				break
			}
			if !rewrite(value, func(v any) { fields[name] = v }, &left) {
				break
			}
			tries--
			if options.Semantics.Equal(t, is, stored(tree)) {
				out = append(out, c.Path)
				break
			}
		}
	}
	return out
}

// rewrite changes one part of a value, part n in a fixed order: it writes a quantity in another form, or removes a
// field. If there are fewer parts, it subtracts their number from n, and returns false.
func rewrite(value any, set func(any), n *int) bool {
	isIt := func() bool {
		*n--
		return *n < 0
	}
	switch value := value.(type) {
	case string:
		if other := otherQuantity(value); other != "" && isIt() {
			set(other)
			return true
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if isIt() {
				delete(value, name)
				return true
			}
		}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if rewrite(value[name], func(v any) { value[name] = v }, n) {
				return true
			}
		}
	case []any:
		for i := range value {
			if rewrite(value[i], func(v any) { value[i] = v }, n) {
				return true
			}
		}
	}
	return false
}

// otherQuantity returns a quantity in another form; "" if the text is no quantity.
func otherQuantity(text string) string {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return ""
	}
	other := strconv.FormatInt(q.MilliValue(), 10) + "m"
	if other == text || q.Cmp(*resource.NewMilliQuantity(q.MilliValue(), q.Format)) != 0 {
		return ""
	}
	return other
}
