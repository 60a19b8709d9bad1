package smdv4_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v4schema "sigs.k8s.io/structured-merge-diff/v4/schema"
	v4typed "sigs.k8s.io/structured-merge-diff/v4/typed"

	"github.com/tenure-ssa/tenure/compat/smdv4"
	"github.com/tenure-ssa/tenure/typed"
)

// v4's own schema of schemas is compiled as v4 validates with it.
func TestSchemaOfSchemas(t *testing.T) {
	types, err := smdv4.Parse(v4schema.SchemaSchemaYAML)
	require.NoError(t, err)
	parser, err := v4typed.NewParser(v4typed.YAMLObject(v4schema.SchemaSchemaYAML))
	require.NoError(t, err)
	for _, text := range []v4typed.YAMLObject{v4typed.YAMLObject(v4schema.SchemaSchemaYAML), thingSchema, serviceSchema} {
		v, err := parser.Type("schema").FromYAML(text)
		require.NoError(t, err)
		tree, err := smdv4.Tree(v)
		require.NoError(t, err)
		require.NoError(t, types["schema"].Validate(tree, typed.Rules{}))
		theirs, err := v.ToFieldSet()
		require.NoError(t, err)
		ours, err := smdv4.FromSet(theirs)
		require.NoError(t, err)
		require.True(t, ours.Equal(types["schema"].FieldSet(tree)))
	}
}
