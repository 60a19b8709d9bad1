package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"github.com/invopop/jsonschema"
	validation "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/conflicts/policy"
)

// schemaFile is published: editors check a policy by it.
const schemaFile = "conflicts/policy/schema.json"

// TestPolicySchema makes the JSON Schema of policies of the Go types and their comments:
//
//	go test ./test/e2e -run TestPolicySchema -update
func TestPolicySchema(t *testing.T) {
	example := readFile(t, "testdata/helm/tenure.yaml")
	t.Chdir("../..") // comments are found by the paths of packages
	r := jsonschema.Reflector{ExpandedStruct: true, Mapper: func(of reflect.Type) *jsonschema.Schema {
		if of == reflect.TypeFor[metav1.PartialObjectMetadata]() { // only some of it counts
			return &jsonschema.Schema{Type: "object", Required: []string{"kind"}}
		}
		return nil
	}}
	require.NoError(t, r.AddGoComments("github.com/tenure-ssa/tenure", "conflicts/policy", jsonschema.WithFullComment()))
	schema := r.Reflect(&policy.Policy{})
	schema.ID = "https://raw.githubusercontent.com/tenure-ssa/tenure/main/conflicts/policy/schema.json"
	made, err := json.MarshalIndent(schema, "", "  ")
	require.NoError(t, err)
	made = append(made, '\n')
	if *update {
		require.NoError(t, os.WriteFile(schemaFile, made, 0o644))
	}
	published, err := os.ReadFile(schemaFile)
	require.NoError(t, err)
	require.Equal(t, string(made), string(published), "go test ./test/e2e -run TestPolicySchema -update")
	for _, row := range []struct{ why, text, wrong string }{
		{why: "a policy", text: string(example)},
		{"an unknown field", "rules: [{field: .spec, decision: force}]", "additional properties 'field' not allowed"},
		{"no decision", "rules: [{fields: [.spec]}]", "missing property 'decision'"},
		{"an unknown decision", "rules: [{decision: x}]", "value must be one of"},
	} {
		if row.wrong != "" {
			row.text = "apiVersion: " + policy.APIVersion + "\nkind: " + policy.Kind + "\n" + row.text
		}
		err := validate(t, published, row.text)
		_, parseErr := policy.Parse([]byte(row.text))
		require.Equal(t, parseErr == nil, err == nil, row.why)
		if row.wrong != "" {
			require.ErrorContains(t, err, row.wrong, row.why)
		}
	}
}

func readFile(t *testing.T, name string) []byte {
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	return data
}

func validate(t *testing.T, schema []byte, text string) error {
	tree, err := validation.UnmarshalJSON(bytes.NewReader(schema))
	require.NoError(t, err)
	compiler := validation.NewCompiler()
	require.NoError(t, compiler.AddResource("schema.json", tree))
	compiled, err := compiler.Compile("schema.json")
	require.NoError(t, err)
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	value, err := validation.UnmarshalJSON(bytes.NewReader(data))
	require.NoError(t, err)
	return compiled.Validate(value)
}
