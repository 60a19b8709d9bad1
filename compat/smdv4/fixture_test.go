package smdv4_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	v4fieldpath "sigs.k8s.io/structured-merge-diff/v4/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v4/merge"
	v4typed "sigs.k8s.io/structured-merge-diff/v4/typed"

	"github.com/tenure-ssa/tenure/compat/smdv4"
)

const thingSchema = `types:
- name: thing
  map:
    fields:
    - {name: s, type: {scalar: string}}
    - {name: num, type: {scalar: numeric}}
    - {name: labels, type: {map: {elementType: {scalar: string}}}}
    - {name: lists, type: {namedType: lists}}
    - {name: items, type: {list: {elementType: {namedType: item}, elementRelationship: associative, keys: [name, kind]}}}
    - {name: ports, type: {list: {elementType: {namedType: port}, elementRelationship: associative, keys: [port]}}}
- name: port
  map:
    fields:
    - {name: port, type: {scalar: string}, default: http}
    - {name: text, type: {scalar: string}}
- name: lists
  map:
    fields:
    - {name: set, type: {list: {elementType: {scalar: string}, elementRelationship: associative}}}
    - {name: other, type: {list: {elementType: {scalar: string}, elementRelationship: associative}}}
- name: item
  map:
    fields:
    - {name: name, type: {scalar: string}}
    - {name: kind, type: {scalar: string}}
- name: anything
  scalar: untyped
  list: {elementType: {namedType: anything}, elementRelationship: atomic}
  map: {elementType: {namedType: anything}}
`

var thingParser = func() *v4typed.Parser {
	p, err := v4typed.NewParser(thingSchema)
	if err != nil {
		panic(err)
	}
	return p
}()

func thing(t *testing.T, name string) v4typed.ParseableType {
	t.Helper()
	require.True(t, thingParser.Type(name).IsValid())
	return thingParser.Type(name)
}

// same converts to every version except one that no longer exists and one whose conversion fails.
type same struct{}

func (same) Convert(v *v4typed.TypedValue, version v4fieldpath.APIVersion) (*v4typed.TypedValue, error) {
	switch version {
	case "gone":
		return nil, errGone
	case "down":
		return nil, errors.New("the webhook is down")
	}
	return v, nil
}

func (same) IsMissingVersionError(err error) bool { return errors.Is(err, errGone) }

type write struct{ manager, value string }

func apply(manager, value string) write { return write{manager, value} }

// both makes the writes one after another with both engines, and returns each engine's result of the last write. Each
// engine continues from its own results.
func both(t *testing.T, name string, managers v4fieldpath.ManagedFields, writes ...write) (theirs, ours answer) {
	t.Helper()
	builder := merge.UpdaterBuilder{Converter: same{}, ReturnInputOnNoop: true}
	for i, u := range []updater{builder.BuildUpdater(), &smdv4.Updater{Converter: same{}, ReturnInputOnNoop: true}} {
		live, err := thing(t, name).FromUnstructured(nil)
		require.NoError(t, err)
		copied := managers.Copy()
		var last answer
		for _, w := range writes {
			config, err := thing(t, name).FromYAML(v4typed.YAMLObject(w.value))
			require.NoError(t, err)
			object, managers, err := u.Apply(live, config, "v1", copied.Copy(), w.manager, false)
			var tree any
			if err == nil {
				live, copied = object, managers
				tree, err = smdv4.Tree(object)
				require.NoError(t, err)
			}
			last = answerOf(nil, object, managers, err)
			if last.err == nil && last.conflicts == nil {
				last.object = tree
			}
		}
		if i == 0 {
			theirs = last
		} else {
			ours = last
		}
	}
	return theirs, ours
}
