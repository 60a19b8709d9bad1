package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/invopop/jsonschema"
	validation "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/conflicts/policy"
	"github.com/tenure-ssa/tenure/controllerruntime"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// decided maps the fields that managers own in TestPolicyAtRandom to the texts that set them.
var decided = map[string]string{
	".spec.replicas":         `{"spec":{"replicas":%d}}`,
	".metadata.labels.a":     `{"metadata":{"labels":{"a":"v%d"}}}`,
	".metadata.labels.x.y/z": `{"metadata":{"labels":{"x.y/z":"v%d"}}}`,
	`.spec.template.spec.containers[name="one"].image`: `{"spec":{"template":{"spec":{"containers":[{"name":"one","image":"i:%d"}]}}}}`,
	`.spec.template.spec.containers[name="two"].image`: `{"spec":{"template":{"spec":{"containers":[{"name":"two","image":"i:%d"}]}}}}`,
}

const decidedObject = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {a: v0, x.y/z: v0}}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: one, image: "i:0"}, {name: two, image: "i:0"}]}
`

// TestPolicyAtRandom lets other managers take over random fields of an object, and then applies the intent of the first
// manager again with a random policy, in three ways: with the command, with the client for controllers, and with Helm's
// post-renderer. All three must have the same result. A field that is given up keeps its value and its owners, and a
// shared field keeps its value. A decided field is not in conflict. If one field is refused, nothing changes.
// E2E_DURATION sets the duration, and E2E_SEED selects other histories.
func TestPolicyAtRandom(t *testing.T) {
	t.Parallel()
	config := start(t, apiserver.Options{}).Config()
	h := newHelm(t, config)
	program := filepath.Join(h.folder, "plugins", "kubectl-tenure")
	c, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	require.NoError(t, err)
	objects := startCache(t, config, cache.Options{})
	r := rand.New(rand.NewPCG(seedOf(t), 3))
	counts := map[conflicts.Decision]int{}
	round := 0
	for end := time.Now().Add(duration(t)); round < 8 || len(counts) < 4 && round < 100 || time.Now().Before(end); round++ {
		rules, file := randomPolicy(t, r, h.folder)
		var meddling []func(namespace string)
		for range 1 + r.IntN(5) {
			paths := slices.Sorted(maps.Keys(decided))
			text := fmt.Sprintf(decided[paths[r.IntN(len(paths))]], r.IntN(3))
			manager := []string{"hpa", "kubectl-edit", "other"}[r.IntN(3)]
			isUpdate := r.IntN(2) == 0
			meddling = append(meddling, func(namespace string) {
				obj := intentOf(t, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}", namespace)
				patch := client.RawPatch("application/strategic-merge-patch+json", []byte(text))
				if !isUpdate {
					require.NoError(t, yaml.Unmarshal([]byte(text), &obj.Object))
					obj.SetAPIVersion("apps/v1")
					obj.SetKind("Deployment")
					obj.SetName("web")
					obj.SetNamespace(namespace)
					// This apply may be rejected: if the manager has applied a container before, the container would lose its image.
					_ = c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner(manager), client.ForceOwnership)
					return
				}
				require.NoError(t, c.Patch(t.Context(), obj, patch, client.FieldOwner(manager)))
			})
		}
		var results []*unstructured.Unstructured
		for _, way := range []string{"command", "client", "renderer"} {
			namespace := fmt.Sprintf("%s-%d", way, round)
			require.NoError(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
			intent := intentOf(t, decidedObject, namespace)
			first := client.ApplyConfigurationFromUnstructured(intent.DeepCopy())
			require.NoError(t, c.Apply(t.Context(), first, client.FieldOwner("helm")))
			for _, meddle := range meddling {
				meddle(namespace)
			}
			before := stored(t, c, namespace)
			isRefused := false
			switch data, err := yaml.Marshal(intent.Object); way {
			case "command":
				require.NoError(t, err)
				status, out := h.tenure(program, data, "plan", "-f", "-", "--field-manager", "helm", "-n", namespace, "--policy",
					file, "--apply", "--yes")
				isRefused = status == 2
				require.Contains(t, []int{0, 2}, status, out)
			case "client":
				a, err := controllerruntime.NewClient(c, controllerruntime.Options{
					Config: config, Cache: objects, Resolve: rules.Resolve,
				})
				require.NoError(t, err)
				err = a.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(intent), client.FieldOwner("helm"))
				isRefused = apierrors.IsConflict(err)
				require.True(t, err == nil || isRefused, "%v", err)
			case "renderer":
				status, out := h.tenure(program, data, "helm", "post-render", "-n", namespace, "--policy", file)
				if isRefused = status == 3; isRefused {
					require.Contains(t, out, "is refused")
					break
				}
				require.Zero(t, status, out)
				rendered := intentOf(t, out, namespace)
				require.NoError(t, c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(rendered),
					client.FieldOwner("helm"), client.ForceOwnership))
			}
			after := stored(t, c, namespace)
			if isRefused {
				require.Equal(t, before, after, "%s, round %d: a refused conflict", way, round)
			}
			requireDecided(t, rules, before, after, counts)
			after.SetNamespace("")
			after.SetUID("")
			after.SetResourceVersion("")
			after.SetCreationTimestamp(metav1.Time{})
			after.SetGeneration(0)
			results = append(results, timeless(withVersion(after, "1")))
		}
		require.Equal(t, results[0], results[1], "command and client, round %d", round)
		require.Equal(t, results[0], results[2], "command and post-renderer, round %d", round)
	}
	t.Logf("%d rounds: %v", round, counts)
	require.Len(t, counts, 4)
}

// tenure runs the command. It returns the status and stdout or, if the command fails, stdout and stderr.
func (h helmRelease) tenure(program string, stdin []byte, args ...string) (status int, out string) {
	cmd := exec.Command(program, args...)
	var stdout, stderr bytes.Buffer
	cmd.Env, cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = h.env, h.folder, bytes.NewReader(stdin), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return cmd.ProcessState.ExitCode(), stdout.String() + stderr.String()
	}
	return 0, stdout.String()
}

// randomPolicy returns a policy that decides most of the fields, and the path of its file.
func randomPolicy(t *testing.T, r *rand.Rand, folder string) (*policy.Policy, string) {
	p := &policy.Policy{APIVersion: policy.APIVersion, Kind: policy.Kind, Rules: []policy.Rule{}}
	all := []conflicts.Decision{conflicts.Force, conflicts.GiveUp, conflicts.Share, conflicts.Refuse}
	for range 1 + r.IntN(3) {
		rule := policy.Rule{Decision: all[r.IntN(len(all))]}
		if r.IntN(2) == 0 {
			rule.Managers = []string{[]string{"hpa", "kubectl-*", "other"}[r.IntN(3)]}
		}
		if r.IntN(2) == 0 {
			rule.Fields = []string{[]string{".spec.replicas", ".spec.template.spec.containers[*].image", ".metadata.labels",
				".metadata.labels.x.*", ".spec.template.spec.containers[name=two]"}[r.IntN(5)]}
		}
		p.Rules = append(p.Rules, rule)
	}
	if r.IntN(4) > 0 {
		p.Rules = append(p.Rules, policy.Rule{Decision: all[r.IntN(3)]})
	}
	data, err := yaml.Marshal(p)
	require.NoError(t, err)
	file := filepath.Join(folder, "random.yaml")
	require.NoError(t, os.WriteFile(file, data, 0o600))
	read, err := policy.Parse(data)
	require.NoError(t, err)
	return read, file
}

func intentOf(t *testing.T, text, namespace string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(strings.TrimPrefix(text, "---\n")), &obj.Object))
	obj.SetNamespace(namespace)
	return obj
}

func stored(t *testing.T, c client.Client, namespace string) *unstructured.Unstructured {
	obj := intentOf(t, "apiVersion: apps/v1\nkind: Deployment", namespace)
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "web"}, obj))
	return obj
}

// requireDecided checks the fields for which the policy has the same decision for all owners except the first manager.
func requireDecided(
	t *testing.T, rules *policy.Policy, before, after *unstructured.Unstructured, counts map[conflicts.Decision]int,
) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(before.GroupVersionKind())
	container := func(name string) fieldpath.Path {
		return append(fieldpath.NewPath("spec", "template", "spec", "containers"),
			fieldpath.KeyElement(fieldpath.KeyField{Name: "name", Value: name}), fieldpath.FieldElement("image"))
	}
	for _, path := range []fieldpath.Path{fieldpath.NewPath("spec", "replicas"), fieldpath.NewPath("metadata", "labels", "a"),
		fieldpath.NewPath("metadata", "labels", "x.y/z"), container("one"), container("two")} {
		verdicts := map[conflicts.Decision]bool{}
		for _, owner := range ownersOf(t, before, path) {
			manager, rest, _ := strings.Cut(owner, " ")
			if manager == "helm" {
				continue
			}
			example := policy.Example{Object: *object, Field: path.String(), Owner: policy.Owner{
				Manager: manager, Operation: metav1.ManagedFieldsOperationType(strings.TrimSpace(rest)),
			}}
			verdicts[rules.Test(example).Decision] = true
		}
		if len(verdicts) != 1 {
			continue
		}
		for decision := range verdicts {
			counts[decision]++
			if decision != conflicts.Force {
				require.Equal(t, valueAt(t, before, path), valueAt(t, after, path), "%s of %s, of %q, by %+v", decision, path,
					ownersOf(t, before, path), rules.Rules)
			}
			// A field with the value of the intent is not in conflict: the apply shares it.
			isSame := strings.HasSuffix(fmt.Sprint(valueAt(t, before, path)), "0")
			if owners := ownersOf(t, before, path); decision == conflicts.GiveUp && !isSame {
				require.Equal(t, owners, ownersOf(t, after, path), "%s of %s", decision, path)
			}
		}
	}
}

// valueAt returns the value at a path of fields and of list items with the key name.
func valueAt(t *testing.T, obj *unstructured.Unstructured, path fieldpath.Path) (value any) {
	value = obj.Object
	for _, e := range path {
		if name, ok := e.Field(); ok {
			value = value.(map[string]any)[name]
			continue
		}
		key, _ := e.Key()
		items := value.([]any)
		i := slices.IndexFunc(items, func(item any) bool { return item.(map[string]any)["name"] == key[0].Value })
		require.GreaterOrEqual(t, i, 0)
		value = items[i]
	}
	return value
}

// schemaFile is the published schema, with which editors check policies.
const schemaFile = "conflicts/policy/schema.json"

// TestPolicySchema generates the JSON Schema of policies from the Go types and their comments:
//
//	go test ./test/e2e -run TestPolicySchema -update
func TestPolicySchema(t *testing.T) {
	example := readFile(t, "testdata/helm/tenure.yaml")
	t.Chdir("../..") // comments are found by package paths
	r := jsonschema.Reflector{ExpandedStruct: true, Mapper: func(goType reflect.Type) *jsonschema.Schema {
		if goType == reflect.TypeFor[metav1.PartialObjectMetadata]() { // only a part of this type is used
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
