package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/conflicts/policy"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

var (
	app   = fieldpath.KeyElement(fieldpath.KeyField{Name: "name", Value: "app"})
	image = append(fieldpath.NewPath("spec", "template", "spec", "containers"), app, fieldpath.FieldElement("image"))
	tcp   = fieldpath.KeyElement(
		fieldpath.KeyField{Name: "port", Value: 80}, fieldpath.KeyField{Name: "protocol", Value: "TCP"})
	port     = append(fieldpath.NewPath("spec", "ports"), tcp)
	replicas = fieldpath.NewPath("spec", "replicas")
)

func deployment() *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{"tier": "front"}},
	}
}

func conflict(path fieldpath.Path, manager string) conflicts.Conflict {
	return conflicts.Conflict{Path: path, Owner: managedfields.Key{Manager: manager, Operation: "Update"}}
}

// TestOddNames requires that a rule with the quoted name of a manager and the text of a path is valid and matches both,
// and that it matches no other manager, whatever characters the names have. With [policy.Exactly] it matches no other
// path (spec rule 15.4).
func TestOddNames(t *testing.T) {
	names := []string{"", ".", "a", ".a", "a.b", "a.", "*", "a*", `\`, `\*`, `*\`, "[", "a[b", "]", "[a]", `"`,
		`a"b`, "ä",
		" ", "\n"}
	for _, manager := range names {
		for _, name := range names {
			path := fieldpath.NewPath("data", name)
			if manager == "" {
				path = append(path, fieldpath.KeyElement(fieldpath.KeyField{Name: "name", Value: name}))
			}
			if manager == "*" {
				key := fieldpath.KeyElement(fieldpath.KeyField{Name: "a" + name, Value: "x"})
				path = append(path, key, fieldpath.ValueElement(name))
			}
			requireMatches(t, path.String(), path, true)
			requireMatches(t, policy.Exactly(path), path, true)
			rule := policy.Rule{Fields: []string{path.String()}, Decision: conflicts.Force}
			if manager != "" {
				rule.Managers = []string{policy.Quote(manager)}
			}
			p := policy.Policy{APIVersion: policy.APIVersion, Kind: policy.Kind, Rules: []policy.Rule{rule}}
			require.Empty(t, p.Validate(), "%q", path)
			for _, other := range names {
				isMatched := p.Decide(deployment(), conflicts.Conflicts{conflict(path, other)})[0].Decision == conflicts.Force
				require.Equal(t, manager == "" || manager == other, isMatched, "%q of %q by a rule for %q", path, other, manager)
			}
		}
	}
	for _, name := range names {
		for _, other := range append(names, "data", "a.data") {
			for _, path := range []fieldpath.Path{
				fieldpath.NewPath("data", other), fieldpath.NewPath("data", other, "x"), fieldpath.NewPath("data." + other),
				append(fieldpath.NewPath("data"), fieldpath.ValueElement(other)),
				fieldpath.NewPath(other, "data"), fieldpath.NewPath("data"),
				append(fieldpath.NewPath("data"), fieldpath.KeyElement(fieldpath.KeyField{Name: other, Value: name})),
			} {
				isBelow := len(path) > 1 && path[:2].Equal(fieldpath.NewPath("data", name))
				requireMatches(t, policy.Exactly(fieldpath.NewPath("data", name)), path, isBelow)
			}
		}
	}
}

func requireMatches(t *testing.T, pattern string, path fieldpath.Path, want bool) {
	t.Helper()
	p := policy.Policy{APIVersion: policy.APIVersion, Kind: policy.Kind,
		Rules: []policy.Rule{{Fields: []string{pattern}, Decision: conflicts.Force}}}
	require.Empty(t, p.Validate(), "%q", pattern)
	got := p.Decide(deployment(), conflicts.Conflicts{conflict(path, "x")})[0].Decision == conflicts.Force
	require.Equal(t, want, got, "%q by a rule for %q", path, pattern)
	test := p.Test(policy.Example{Object: *deployment(), Owner: policy.Owner{Manager: "x"}, Field: path.String()})
	require.Equal(t, want, test.Decision == conflicts.Force, "an example of %q by a rule for %q", path, pattern)
}

// TestRules evaluates one rule for one conflict.
func TestRules(t *testing.T) {
	scale, main := "scale", ""
	for _, row := range []struct {
		why     string
		rule    policy.Rule
		matches bool
	}{
		{"an empty rule matches all", policy.Rule{}, true},
		{"a name", policy.Rule{Managers: []string{"kubectl-edit"}}, true},
		{"one of two names", policy.Rule{Managers: []string{"helm", "kubectl-edit"}}, true},
		{"another name", policy.Rule{Managers: []string{"kubectl"}}, false},
		{"a glob", policy.Rule{Managers: []string{"kubectl-*"}}, true},
		{"a glob with two stars", policy.Rule{Managers: []string{"*bec*l-ed*t"}}, true},
		{"a glob that ends elsewhere", policy.Rule{Managers: []string{"kubectl*x"}}, false},
		{"a glob whose parts overlap", policy.Rule{Managers: []string{"kubectl-edit*edit"}}, false},
		{"the operation", policy.Rule{Operation: "Update"}, true},
		{"another operation", policy.Rule{Operation: "Apply"}, false},
		{"the object itself", policy.Rule{Subresource: &main}, true},
		{"another subresource", policy.Rule{Subresource: &scale}, false},
		{"a kind", policy.Rule{Kinds: []string{"Deployment"}}, true},
		{"a kind of a group", policy.Rule{Kinds: []string{"Deployment.apps"}}, true},
		{"a kind of the core group", policy.Rule{Kinds: []string{"Deployment."}}, false},
		{"a group", policy.Rule{Kinds: []string{"*.apps"}}, true},
		{"a kind of another group", policy.Rule{Kinds: []string{"Deployment.example.com"}}, false},
		{"a namespace", policy.Rule{Namespaces: []string{"sh*"}}, true},
		{"another namespace", policy.Rule{Namespaces: []string{"prod"}}, false},
		{"the object's name", policy.Rule{Names: []string{"web"}}, true},
		{"another object's name", policy.Rule{Names: []string{"we"}}, false},
		{"labels", policy.Rule{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "front"}}}, true},
		{"other labels", policy.Rule{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "x"}}}, false},
		{
			"a selector that can't be", policy.Rule{LabelSelector: &metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "Is"}},
			}}, false,
		},
		{"a field", policy.Rule{Fields: []string{image.String()}}, true},
		{"what the field is in", policy.Rule{Fields: []string{".spec.template"}}, true},
		{"a beginning of a name", policy.Rule{Fields: []string{".spec.temp"}}, false},
		{"more than the field", policy.Rule{Fields: []string{image.String() + ".x"}}, false},
		{"all matches and one does not", policy.Rule{Fields: []string{".spec"}, Names: []string{"x"}}, false},
	} {
		row.rule.Decision = conflicts.Force
		p := &policy.Policy{Rules: []policy.Rule{row.rule}}
		got := p.Decide(deployment(), conflicts.Conflicts{conflict(image, "kubectl-edit")})[0]
		require.Equal(t, row.matches, got.Rule == 0, row.why)
		require.Equal(t, row.matches, got.Decision == conflicts.Force, row.why)
	}
}

// TestFields matches paths. Finally, each path is used as the field of an example, with the same result.
func TestFields(t *testing.T) {
	annotation := append(fieldpath.NewPath("metadata", "annotations"), fieldpath.FieldElement("example.com/a.b"))
	finalizer := append(fieldpath.NewPath("metadata", "finalizers"), fieldpath.ValueElement("example.com/x[1].y"))
	item := append(fieldpath.NewPath("spec", "args"), fieldpath.IndexElement(3))
	for _, row := range []struct {
		pattern string
		path    fieldpath.Path
		matches bool
	}{
		{".spec.template.spec.containers[*].image", image, true},
		{`.spec.template.spec.containers[name="app"].image`, image, true},
		{".spec.template.spec.containers[name=app].image", image, true},
		{".spec.template.spec.containers[name=a*]", image, true},
		{".spec.template.spec.containers[name=b*]", image, false},
		{".spec.template.spec.containers.*.image", image, false}, // lists have no names
		{".spec.*.spec.containers[*].image", image, true},
		{".spec.*.containers[*].image", image, false}, // matches only one name
		{"*", image, false},
		{".*", image, true},
		{`.spec.ports[port=80,protocol="TCP"]`, port, true},
		{".spec.ports[port=80,*]", port, true},
		{".spec.ports[*,protocol=UDP]", port, false},
		{".metadata.annotations.example.com/a.b", annotation, true},
		{`.metadata.annotations["example.com/a.b"]`, annotation, true},
		{`["metadata"].annotations["example.com/*"]`, annotation, true},
		{`.metadata.annotations["example.com/\*"]`, annotation, false},
		{`.metadata.annotations["example.com/*.b"].x`, annotation, false},
		{`.metadata.annotations["*"]`, annotation, true},
		{`.metadata["annotations"]`, annotation, true},
		{`.metadata["annotations.example.com/a.b"]`, annotation, false},
		{".metadata[annotations]", annotation, true}, // quotes may be omitted
		{".metadata.annotations[*]", annotation, true},
		{".metadata.annotations[example.com/*]", annotation, true},
		{".metadata.annotations[example.org/*]", annotation, false},
		{".metadata.annotations[example]", annotation, false},
		{".metadata[annotations][example.com/a.b]", annotation, true},
		{`.metadata.annotations[\*]`, annotation, false},
		{`.spec.template.spec.containers[name="a*"]`, image, true},
		{`.spec.template.spec.containers[name="a\*"]`, image, false},
		{".metadata.annotations.example.com/*", annotation, true},
		{".metadata.annotations.*", annotation, true},
		{".metadata.annotations.example", annotation, false},
		{".metadata.annotations.*.org/*", annotation, false},
		{`.metadata.finalizers[="example.com/x[1].y"]`, finalizer, true},
		{".metadata.finalizers[=example.com/*]", finalizer, true},
		{".metadata.finalizers[=example.org/*]", finalizer, false},
		{".spec.args[3]", item, true},
		{".spec.args[*]", item, true},
		{".spec.args[30]", item, false},
		{".spec.replicas", replicas, true},
		{".spec.replicas", replicas[:1], false},
	} {
		p := &policy.Policy{Rules: []policy.Rule{{Fields: []string{row.pattern}, Decision: conflicts.GiveUp}}}
		got := p.Decide(deployment(), conflicts.Conflicts{conflict(row.path, "x")})
		require.Equal(t, row.matches, got[0].Rule == 0, "%s of %s", row.pattern, row.path)
		for _, text := range []string{row.path.String(), row.path.CauseText()} {
			test := p.Test(policy.Example{Object: *deployment(), Owner: policy.Owner{Manager: "x"}, Field: text})
			require.Equal(t, got[0], test, "%s of %s", row.pattern, text)
		}
	}
}

// TestQuoteKind: a kind without a group in the pattern is a kind of every group.
func TestQuoteKind(t *testing.T) {
	core, other := schema.GroupKind{Kind: "Service"}, schema.GroupKind{Group: "serving.knative.dev", Kind: "Service"}
	for _, row := range []struct {
		pattern       string
		isCore, other bool
	}{{"Service", true, true}, {policy.QuoteKind(core), true, false}, {policy.QuoteKind(other), false, true}} {
		p := policy.Policy{Permissions: []policy.Permission{{Kinds: []string{row.pattern}}}}
		for kind, want := range map[schema.GroupKind]bool{core: row.isCore, other: row.other} {
			obj := &metav1.PartialObjectMetadata{}
			obj.SetGroupVersionKind(kind.WithVersion("v1"))
			got := p.Permits(obj, policy.Owner{Manager: "m"}, fieldpath.NewPath("spec"))
			require.Equal(t, want, got, "%s %s", row.pattern, kind)
		}
	}
}

// TestSeveralOwners: if a field has several owners, the field and everything in it get the verdict that changes least.
func TestSeveralOwners(t *testing.T) {
	p := &policy.Policy{Rules: []policy.Rule{
		{Managers: []string{"forced"}, Decision: conflicts.Force, Reason: "people"},
		{Managers: []string{"shared"}, Decision: conflicts.Share},
		{Managers: []string{"left"}, Decision: conflicts.GiveUp},
	}}
	template := fieldpath.NewPath("spec", "template")
	for _, row := range []struct {
		all  conflicts.Conflicts
		want string
	}{
		{conflicts.Conflicts{conflict(replicas, "forced"), conflict(replicas, "left")}, "give-up give-up"},
		{conflicts.Conflicts{conflict(replicas, "left"), conflict(replicas, "forced")}, "give-up give-up"},
		{conflicts.Conflicts{conflict(replicas, "shared"), conflict(replicas, "forced")}, "share share"},
		{conflicts.Conflicts{conflict(replicas, "other"), conflict(replicas, "left")}, "refuse refuse"},
		{conflicts.Conflicts{conflict(template, "left"), conflict(image, "forced")}, "give-up give-up"},
		{conflicts.Conflicts{conflict(template, "forced"), conflict(image, "left")}, "give-up give-up"},
		{conflicts.Conflicts{conflict(template, "forced"), conflict(image, "left"), conflict(port, "forced")},
			"give-up give-up force"},
		{conflicts.Conflicts{conflict(template, "forced"), conflict(image, "left"),
			conflict(append(slices.Clone(template), fieldpath.FieldElement("metadata")), "forced")}, "give-up give-up give-up"},
		{conflicts.Conflicts{conflict(replicas, "left"), conflict(image, "forced")}, "give-up force"},
	} {
		var got []string
		for _, v := range p.Decide(deployment(), row.all) {
			got = append(got, string(v.Decision))
		}
		require.Equal(t, row.want, strings.Join(got, " "))
		got = nil
		for _, d := range p.Resolve(deployment(), row.all) {
			got = append(got, string(d))
		}
		require.Equal(t, row.want, strings.Join(got, " "))
	}
	verdicts := p.Decide(deployment(), conflicts.Conflicts{conflict(replicas, "forced"), conflict(replicas, "other")})
	require.Equal(t, `as for "other": no rule matches; rule 1 alone: force`, verdicts[0].String())
	require.Equal(t, "rule 1: people", verdicts[0].Alone().String())
	require.Equal(t, "no rule matches", verdicts[1].String())
	require.Empty(t, verdicts[1].As)
	var none *policy.Policy
	undecided := none.Decide(deployment(), conflicts.Conflicts{conflict(replicas, "x")})
	require.Equal(t, "no rule matches", undecided[0].String())
}

const file = `# a comment
apiVersion: tenure-ssa.github.io/v1alpha1
kind: ConflictPolicy
rules:
- fields: [.spec.replicas]
  managers: [kube-controller-manager]
  decision: give-up
  reason: autoscalers set them

- decision: force
examples:
- object: {apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}
  owner: {manager: kube-controller-manager, operation: Update, subresource: scale}
  field: .spec.replicas
  decision: give-up
`

func TestParse(t *testing.T) {
	p, err := policy.Parse([]byte(file))
	require.NoError(t, err)
	all := p.Decide(deployment(), conflicts.Conflicts{conflict(replicas, "kube-controller-manager"), conflict(image, "x")})
	require.Equal(t, "rule 1 (line 5): autoscalers set them", all[0].String())
	require.Equal(t, "rule 2 (line 10)", all[1].String())
	require.Equal(t, conflicts.GiveUp, p.Test(p.Examples[0]).Decision)
	require.Equal(t, "rule 1 (line 5): autoscalers set them", p.Test(p.Examples[0]).String())
	p.Examples[0].Field = ".spec.x"
	require.Equal(t, "rule 2 (line 10)", p.Test(p.Examples[0]).String())
	for _, row := range []struct{ old, new, want string }{
		{file, "", "expected a policy, got an empty file"},
		{"# a comment", "a: b\n---", "line 2: expected one document, got more"},
		{"/v1alpha1", "/v1", `line 2: apiVersion: Unsupported value: "tenure-ssa.github.io/v1": supported values: ` +
			`"tenure-ssa.github.io/v1alpha1"`},
		{"kind: Conf", "kind: conf", `line 3: kind: Unsupported value: "conflictPolicy": supported values: "ConflictPolicy"`},
		{"  managers:", "  manager:", `line 6: rules[0].manager: Forbidden: unknown field`},
		{"decision: give-up\n  reason", "decision: giveup\n  reason",
			`line 7: rules[0].decision: Unsupported value: "giveup": supported values: "force", "give-up", "refuse", "share"`},
		{"- decision: force", "- reason: x",
			`line 10: rules[1].decision: Unsupported value: "": supported values: "force", "give-up", "refuse", "share"`},
		{"fields: [.spec.replicas]", "fields: .spec.replicas",
			`line 5: rules[0].fields: Invalid value: expected a list, got string`},
		{"fields: [.spec.replicas]", "fields: [.spec, spec]",
			`line 5: rules[0].fields[1]: Invalid value: "spec": expected a path as conflicts name it, such as .spec.replicas`},
		{"fields: [.spec.replicas]", "fields: [., '[']",
			`line 5: rules[0].fields[0]: Invalid value: ".": expected a path as conflicts name it, such as .spec.replicas
line 5: rules[0].fields[1]: Invalid value: "[": expected a path as conflicts name it, such as .spec.replicas`},
		{"[kube-controller-manager]", "[a, '']", `line 6: rules[0].managers[1]: Required value`},
		{"- decision: force", "- decision: force\n  operation: Patch",
			`line 11: rules[1].operation: Unsupported value: "Patch": supported values: "Apply", "Update"`},
		{"- decision: force", "- decision: force\n  labelSelector: {matchExpressions: [{key: a, operator: Is}]}",
			`line 11: rules[1].labelSelector: Invalid value: "": "Is" is not a valid label selector operator`},
		{"kind: Deployment, ", "", `line 12: examples[0].object.kind: Required value`},
		{"field: .spec", "field: spec",
			`line 14: examples[0].field: Invalid value: "spec.replicas": ` +
				`expected a path as conflicts name it, such as .spec.replicas`},
		{"owner: {manager: kube-controller-manager,", "owner: {", `line 13: examples[0].owner.manager: Required value`},
		{"operation: Update, subresource", "operation: Patch, subresource",
			`line 13: examples[0].owner.operation: Unsupported value: "Patch": supported values: "Apply", "Update"`},
		{"decision: give-up\n  reason", "decision: give-up\n  decision: force\n  reason",
			`line 8: key "decision" already set in map`},
		{file, "rules: x", `line 1: rules: Invalid value: expected a list, got string`},
		{file, "- x", `line 1: expected an object`},
	} {
		_, err := policy.Parse([]byte(strings.Replace(file, row.old, row.new, 1)))
		require.ErrorContains(t, err, row.want)
	}
}

// FuzzParse: no text makes Parse panic, and each policy that Parse accepts can make decisions.
func FuzzParse(f *testing.F) {
	f.Add(file, ".spec.replicas")
	f.Add("{}", "[")
	f.Fuzz(func(t *testing.T, text, field string) {
		p, err := policy.Parse([]byte(text))
		if err != nil {
			return
		}
		v := p.Test(policy.Example{Object: *deployment(), Field: field})
		require.NotEmpty(t, v.Decision)
		p.Decide(deployment(), conflicts.Conflicts{conflict(image, field)})
	})
}

// TestAliases: aliases that would expand to gigabytes are an error before anything is decoded (spec rule 12.9).
func TestAliases(t *testing.T) {
	text := "rules:\n- fields: [&a " + strings.Repeat("x", 100_000) + strings.Repeat(", *a", 20_000) + "]\n"
	_, err := policy.Parse([]byte(text))
	require.ErrorContains(t, err, "line 2: aliases: expected at most 4194304 bytes")
}

// TestManyPatterns: goroutines share compiled patterns, even if there are more patterns than the cache keeps.
func TestManyPatterns(t *testing.T) {
	var all sync.WaitGroup
	var right atomic.Int32
	for n := range 4 {
		all.Go(func() {
			for i := range 3000 {
				name := fmt.Sprintf("m%d", n*3000+i)
				p := &policy.Policy{Rules: []policy.Rule{{Managers: []string{name}, Decision: conflicts.Force}}}
				found := conflicts.Conflicts{conflict(replicas, name), conflict(image, name+"x")}
				if v := p.Decide(nil, found); v[0].Rule == 0 && v[1].Rule == -1 {
					right.Add(1)
				}
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 12_000, right.Load())
}
