package place

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/planning/cluster"
	"github.com/tenure-ssa/tenure/internal/planning/document"
)

func now() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func parse(t *testing.T, text string) (tree map[string]any) {
	require.NoError(t, yaml.Unmarshal([]byte(text), &tree))
	return tree
}

// documents returns the documents of a file.
func documents(t *testing.T, texts ...string) (out []document.Document) {
	for _, text := range texts {
		out = append(out, document.Document{Tree: parse(t, text)})
	}
	return out
}

const (
	configMap  = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns, labels: {a: b}}, data: {k: v}}"
	secret     = "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: ns}, data: {k: aGlkZGVu}}"
	deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns}, spec: {replicas: 2}}"
	node       = "{apiVersion: v1, kind: Node, metadata: {name: x}}"
	widgets    = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.e.x},
  spec: {
  group: e.x, scope: Namespaced, names: {plural: widgets, kind: Widget}, versions: [
    {name: v2, served: true, storage: true, subresources: {status: {}, scale: {specReplicasPath: .spec.size}},
	schema: {openAPIV3Schema: {type: object, properties: {
      spec: {type: object, properties: {size: {type: integer}}}}}}},
    {name: v1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}},
    {name: v0, served: false, storage: false, schema: {openAPIV3Schema: {type: object}}}]}}`
	widget = "{apiVersion: e.x/v2, kind: Widget, metadata: {name: w, namespace: ns}}"
)

// files returns a place with the documents of a file. It knows the kind Widget.
func files(t *testing.T, namespace string, texts ...string) *Files {
	c := NewCatalog()
	require.NoError(t, c.AddSchemas([]document.Input{{Name: "crd", Documents: documents(t, widgets)}}))
	p, err := NewFiles(now, c, []string{"all.yaml"}, documents(t, texts...), namespace)
	require.NoError(t, err)
	return p
}

// live returns the target of a document.
func live(t *testing.T, p Place, text string) *Target {
	target, _, err := p.Live(t.Context(), parse(t, text))
	require.NoError(t, err)
	return target
}

// TestCatalog: the properties of known kinds, and the errors for unknown kinds.
func TestCatalog(t *testing.T) {
	c := files(t, "").catalog
	for _, row := range []struct {
		gvk      schema.GroupVersionKind
		storage  string
		replicas []string
		converts bool
		says     string
	}{
		{schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, "apps/v1", []string{"spec", "replicas"},
			false, ""},
		{schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "v1", nil, false, ""},
		{schema.GroupVersionKind{Group: "e.x", Version: "v2", Kind: "Widget"}, "e.x/v2", []string{"spec", "size"}, true, ""},
		{schema.GroupVersionKind{Group: "e.x", Version: "v1", Kind: "Widget"}, "e.x/v2", nil, true, ""},
		{schema.GroupVersionKind{Group: "e.x", Version: "v0", Kind: "Widget"}, "", nil, false,
			`.apiVersion: Widget.e.x is not served at "v0"`},
		{schema.GroupVersionKind{Group: "e.x", Version: "v3", Kind: "Widget"}, "", nil, false,
			`.apiVersion: Widget.e.x is not known at "v3", only at v2, v1, v0`},
		{schema.GroupVersionKind{Group: "e.x", Version: "v1", Kind: "Gadget"}, "", nil, false,
			`.kind: "Gadget" of "e.x/v1" is not known; apply its CustomResourceDefinition first`},
		{schema.GroupVersionKind{Version: "v1", Kind: "ConfigMapList"}, "", nil, false, "they have no name"},
	} {
		k, err := c.Kind(row.gvk)
		if row.says != "" {
			require.ErrorContains(t, err, row.says)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, row.storage, k.storage, row.gvk)
		require.Equal(t, row.replicas, k.replicas, row.gvk)
		require.Equal(t, row.converts, k.converts, row.gvk)
	}
}

// TestSchemas: inputs of --schema. A later definition replaces an earlier one, with all its versions.
func TestSchemas(t *testing.T) {
	const withoutScope = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {group: e.x," +
		" names: {kind: A, plural: as}, versions: [{name: v1, schema: {openAPIV3Schema: {type: object}}}]}}"
	for text, says := range map[string]string{
		"{swagger: '2.0'}": "this is OpenAPI v2, expected v3",
		"{openapi: 2.0.0}": `.openapi: expected version 3, got "2.0.0"`,
		configMap:          "no OpenAPI v3 document and no CustomResourceDefinition found",
		withoutScope:       "spec.scope: expected Namespaced or Cluster",
	} {
		err := NewCatalog().AddSchemas([]document.Input{{Name: "f", Documents: documents(t, text)}})
		require.ErrorContains(t, err, "schema: ")
		require.ErrorContains(t, err, says)
	}

	c := files(t, "").catalog
	definition := parse(t, widgets)
	versions := definition["spec"].(map[string]any)["versions"].([]any)
	definition["spec"].(map[string]any)["versions"] = versions[:1]
	d, err := Define(definition)
	require.NoError(t, err)
	c.Define(d)
	_, err = c.Kind(schema.GroupVersionKind{Group: "e.x", Version: "v1", Kind: "Widget"})
	require.ErrorContains(t, err, "only at v2")

	input := document.Input{Name: "openapi", Documents: documents(t,
		`{openapi: 3.0.0, info: {title: t, version: v}, paths: {},
  components: {schemas: {G: {type: object, properties: {metadata: {type: object, properties: {name: {type: string}}},
	status: {type: object}},
    x-kubernetes-group-version-kind: [{group: g.x, version: v1, kind: Gadget}]}}}}`)}
	require.NoError(t, c.AddSchemas([]document.Input{input}))
	undefined := c.undefinedKinds()
	require.Len(t, undefined, 1)
	require.Equal(t, "gadgets", undefined[0].Plural)
	again, err := Define(undefined[0].tree)
	require.NoError(t, err)
	require.True(t, again.versions[0].status && again.namespaced)
}

// TestIdentify: invalid names, and namespaces that do not match, cause an error that names the field.
func TestIdentify(t *testing.T) {
	for _, row := range []struct{ text, asked, namespace, says string }{
		{"{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}", "", "default", ""},
		{"{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}", "asked", "asked", ""},
		{configMap, "ns", "ns", ""},
		{configMap, "other", "", `.metadata.namespace: got "ns", expected the namespace of the command line, "other"`},
		{node, "", "", ""},
		{"{apiVersion: v1, kind: Node, metadata: {name: x, namespace: ns}}", "", "",
			`Node is cluster-scoped, got namespace "ns"`},
		{"{apiVersion: v1, kind: ConfigMap, metadata: 1}", "", "", ".metadata: expected an object, got"},
		{"{apiVersion: v1, kind: ConfigMap, metadata: {}}", "", "", ".metadata.name"},
		{"{apiVersion: v1, kind: ConfigMap, metadata: {name: a/b}}", "", "", `.metadata.name: "a/b" may not contain '/'`},
		{"{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: A}}", "", "", `.metadata.namespace: "A"`},
		{"{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: 1}}", "", "", ".metadata.namespace"},
	} {
		tree := parse(t, row.text)
		k := &Kind{GroupVersionKind: schema.FromAPIVersionAndKind("v1", tree["kind"].(string)),
			namespaced: tree["kind"] != "Node"}
		_, namespace, with, err := identify(k, tree, row.asked, func() (string, error) { return "default", nil })
		if row.says != "" {
			require.ErrorContains(t, err, row.says)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, row.namespace, namespace, row.text)
		require.Equal(t, row.namespace, document.TextAt(with, "namespace"))
	}
	_, _, _, err := identify(&Kind{namespaced: true}, parse(t, "{metadata: {name: c}}"), "",
		func() (string, error) { return "", errors.New("no namespace") })
	require.ErrorContains(t, err, "no namespace")
}

// TestLive: an intent is for the object with its name, and with its namespace if both have one. A single object must
// be the intent's object.
func TestLive(t *testing.T) {
	p := files(t, "", configMap, node)
	require.NotNil(t, live(t, p, configMap).Object)
	require.NotNil(t, live(t, p, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}").Object, "any namespace")
	require.Nil(t, live(t, p, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: m}}").Object)
	require.Nil(t, live(t, p, widget).Object)
	_, _, err := files(t, "", configMap).Live(t.Context(), parse(t, node))
	require.ErrorContains(t, err, "the live object is configmap/c in ns, expected node/x")
	_, err = NewFiles(now, NewCatalog(), nil, documents(t, configMap, "{kind: A}"), "")
	require.ErrorContains(t, err, "apiVersion")
	_, err = NewFiles(now, NewCatalog(), nil, nil, "A")
	require.ErrorContains(t, err, ".metadata.namespace")
	require.True(t, p.IsServed(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}))
	require.False(t, p.IsServed(schema.GroupVersionKind{Group: "apps", Version: "v1beta1", Kind: "Deployment"}))
	require.True(t, p.IsServed(schema.GroupVersionKind{Group: "unknown", Version: "v1", Kind: "A"}),
		"nothing is known of it")
}

// TestFind: in files, kinds have no short names.
func TestFind(t *testing.T) {
	p := files(t, "", configMap, deployment, node)
	for _, row := range []struct {
		why   string
		s     Selection
		names string
	}{
		{"everything", Selection{}, "c d x "},
		{"labels", Selection{Selector: "a=b"}, "c "},
		{"a kind, in any of its names", Selection{Args: []string{"deployments.apps,nodes"}}, "d x "},
		{"the kind all", Selection{Args: []string{"all"}}, "c d x "},
		{"names of a kind", Selection{Args: []string{"configmap", "c"}}, "c "},
		{"kinds and names", Selection{Args: []string{"Deployment/d", "node/x"}}, "d x "},
		{"a name in a namespace", Selection{Args: []string{"cm/c"}}, ""},
		{"a name in another namespace", Selection{Args: []string{"configmap/c"}, Namespace: "m"}, ""},
		{"bad labels", Selection{Selector: "="}, ""},
	} {
		found, err := Find(t.Context(), p, row.s)
		require.Equal(t, row.names == "", err != nil, row.why)
		names := ""
		for _, target := range found {
			names += target.Name + " "
		}
		require.Equal(t, row.names, names, row.why)
	}
	candidates, err := p.Candidates(t.Context(), Candidates{
		Kinds:      []schema.GroupVersionKind{{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Node"}},
		Namespaces: []string{"m"}, Selector: labels.Everything(),
	})
	require.NoError(t, err)
	require.Len(t, candidates, 1)
	require.Equal(t, "x", candidates[0].Name, "a cluster-scoped object is in every namespace")
}

// TestVerbs: outcomes have kubectl's verbs.
func TestVerbs(t *testing.T) {
	first, other := parse(t, configMap), parse(t, node)
	for want, row := range map[string]struct {
		w    Writer
		live map[string]any
	}{
		"created": {Writer{}, nil}, "replaced": {Writer{}, other}, "unchanged": {Writer{}, first},
		"serverside-applied":  {Writer{Apply: true}, nil},
		"unchanged (dry run)": {Writer{Apply: true, Options: cluster.WriteOptions{DryRun: true}}, first},
	} {
		require.Equal(t, want, row.w.verb(row.live, first))
	}
}

// TestWrite: writes to files are done by the engine. A conflict has the values of both sides, but no error has values
// of a Secret. The input may define its own kinds.
func TestWrite(t *testing.T) {
	writer := func(p Place, manager, subresource string) *Writer {
		return &Writer{
			Now: now, Place: p, Apply: true, Options: cluster.WriteOptions{Manager: manager, Subresource: subresource},
		}
	}
	applied, err := writer(files(t, "", configMap), "a", "").Write(t.Context(), parse(t, configMap))
	require.NoError(t, err)
	require.Equal(t, "configmap/c", applied.Reference)
	text, err := yaml.Marshal(applied.Object)
	require.NoError(t, err)
	p := files(t, "", string(text), deployment, secret)
	_, err = writer(p, "b", "").Write(t.Context(),
		parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}, data: {k: w}}"))
	var found conflicts.Conflicts
	require.ErrorAs(t, err, &found)
	require.Equal(t, []any{"v", "w"}, []any{found[0].Live, found[0].Applied})

	for _, row := range []struct{ subresource, text, says string }{
		{Scale, deployment, "expected a cluster or a store"},
		{"status", configMap, `has no subresource "status"`},
		{"", "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: ns}, data: {k: [hidden]}}", ".data.k"},
		{"", "{apiVersion: e.x/v1, kind: Gadget, metadata: {name: g}}", "is not known"},
	} {
		_, err := writer(p, "b", row.subresource).Write(t.Context(), parse(t, row.text))
		require.ErrorContains(t, err, row.says)
		require.NotContains(t, err.Error(), "hidden")
	}
	_, err = writer(p, "b", "").Write(t.Context(), parse(t, `{apiVersion: apiextensions.k8s.io/v1,
  kind: CustomResourceDefinition, metadata: {name: gadgets.e.x}, spec: {group: e.x, scope: Cluster,
  names: {plural: gadgets, kind: Gadget}, versions: [{name: v1, served: true, storage: true,
  schema: {openAPIV3Schema: {type: object}}}]}}`))
	require.NoError(t, err)
	_, err = writer(p, "b", "").Write(t.Context(), parse(t, "{apiVersion: e.x/v1, kind: Gadget, metadata: {name: g}}"))
	require.NoError(t, err)
	update := &Writer{Now: now, Place: p, Options: cluster.WriteOptions{Manager: "u"}}
	out, err := update.Write(t.Context(),
		parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}}"))
	require.NoError(t, err)
	require.NotContains(t, out.Object, "data", "an update replaces the object")
}

// TestRequest: a request stores an object at the storage version, and does not change the kind's reset fields.
func TestRequest(t *testing.T) {
	p := files(t, "", deployment, widget)
	write := func(text, subresource string, isApply bool, given string) (map[string]any, error) {
		target := live(t, p, text)
		r := target.request(now, subresource)
		r.Manager, r.Apply, r.Force = "m", isApply, true
		return r.Write(t.Context(), target.Object, parse(t, given))
	}
	for _, row := range []struct {
		why, subresource string
		isApply          bool
		replicas, ready  any
	}{
		{"the object, by an apply", "", true, int64(3), nil},
		{"the object, by an update", "", false, int64(3), nil},
		{"the status, by an apply", "status", true, int64(2), int64(1)},
		{"the status, by an update", "status", false, int64(2), int64(1)},
	} {
		out, err := write(deployment, row.subresource, row.isApply, `{apiVersion: apps/v1, kind: Deployment,
  metadata: {name: d, namespace: ns}, spec: {replicas: 3}, status: {readyReplicas: 1}}`)
		require.NoError(t, err, row.why)
		status, _ := out["status"].(map[string]any)
		require.EqualValues(t, row.replicas, out["spec"].(map[string]any)["replicas"], row.why)
		require.EqualValues(t, row.ready, status["readyReplicas"], row.why)
	}
	older := "{apiVersion: e.x/v1, kind: Widget, metadata: {name: w, namespace: ns}}"
	out, err := write(older, "", true, older)
	require.NoError(t, err)
	require.Equal(t, "e.x/v2", out["apiVersion"])
	_, err = write(deployment, "", false, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: 1}")
	require.ErrorContains(t, err, "spec")
}

// TestScales: the Scale of an object has its names, its replicas, and the managed fields about them.
func TestScales(t *testing.T) {
	p := files(t, "", deployment, configMap, widget)
	scaled, desired, err := live(t, p, deployment).Scale(parse(t, deployment))
	require.NoError(t, err)
	require.Equal(t, "deployment.apps/d", scaled.Reference())
	require.Equal(t, desired["spec"], scaled.Object["spec"])
	_, _, err = live(t, p, deployment).Scale(parse(t, "{metadata: {name: d}}"))
	require.ErrorContains(t, err, ".spec.replicas: missing, expected the replicas")
	_, err = live(t, p, configMap).LiveScale()
	require.ErrorContains(t, err, `ConfigMap has no subresource "scale"`)
	_, err = live(t, p, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: none}}").LiveScale()
	require.ErrorIs(t, err, cluster.ErrNotFound)
	unset, err := live(t, p, widget).LiveScale()
	require.NoError(t, err)
	require.Contains(t, unset.Object, "spec", "0 is a change where there are no replicas")
}

// TestServerError: one error for each cause, with the field that the cause names.
func TestServerError(t *testing.T) {
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p", field.ErrorList{
		field.Required(field.NewPath("spec").Child("containers").Index(0).Child("image"), ""),
		field.Invalid(field.NewPath("spec", "x"), "y", "no"),
	})
	for _, row := range []struct {
		err   error
		lines []string
	}{
		{invalid, []string{"spec.containers[0].image: Required value", `spec.x: Invalid value: "y": no`}},
		{apierrors.NewBadRequest("failed to create typed patch object (ns/c; /v1, Kind=ConfigMap): errors:\n  .a: one\n" +
			"  .b: two"), []string{".a: one", ".b: two"}},
		{apierrors.NewBadRequest("failed to create typed patch object (ns/c; /v1, Kind=ConfigMap): .a: one"),
			[]string{".a: one"}},
		{apierrors.NewBadRequest("ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: a, b"),
			[]string{"a", "b"}},
		{apierrors.NewInvalid(schema.GroupKind{Kind: "W"}, "w", field.ErrorList{
			field.Required(field.NewPath("spec", "x"), ""), field.Invalid(nil, nil, "some rules were not checked"),
		}), []string{"spec.x: Required value"}},
		{errors.New("plain"), []string{"plain"}},
	} {
		var lines []string
		err := ServerError(row.err)
		if all, ok := err.(interface{ Unwrap() []error }); ok {
			for _, each := range all.Unwrap() {
				lines = append(lines, each.Error())
			}
		} else {
			lines = []string{err.Error()}
		}
		require.Equal(t, row.lines, lines)
	}
	require.Equal(t, []string{"spec.containers[0].image", "spec.x"}, FieldsOf(ServerError(invalid)))
	require.Empty(t, FieldsOf(errors.New("plain")))
}

// TestWithoutValues: errors and warnings of a server contain no values of a Secret.
func TestWithoutValues(t *testing.T) {
	tree := parse(t, secret)
	status := apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "s", field.ErrorList{
		field.Invalid(field.NewPath("data").Key("k"), "aGlkZGVu", "no"),
	})
	for _, err := range []error{status, errors.New("got aGlkZGVu"), errors.New("got hidden")} {
		shown := withoutValues(err, tree)
		require.NotContains(t, shown.Error(), "aGlkZGVu")
		require.NotContains(t, shown.Error(), "hidden")
	}
	require.ErrorContains(t, withoutValues(status, parse(t, configMap)), "aGlkZGVu", "no Secret")
	require.NoError(t, withoutValues(nil, tree))
	webhook := apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, "s", errors.New("no"))
	webhook.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type: metav1.CauseTypeFieldManagerConflict, Message: "got aGlkZGVu", Field: ".data.k",
	}}
	shown := withoutValues(webhook, tree)
	require.True(t, isApplyConflict(shown))
	require.NotContains(t, shown.(apierrors.APIStatus).Status().Details.Causes[0].Message, "aGlkZGVu")

	var out bytes.Buffer
	w := Warnings(&out)
	for _, ctx := range []context.Context{about(t.Context(), tree), about(t.Context(), tree), Quietly(t.Context())} {
		w.HandleWarningHeaderWithContext(ctx, 299, "", "data.k is aGlkZGVu")
	}
	require.Contains(t, out.String(), "data.k is ")
	require.NotContains(t, out.String(), "aGlkZGVu")
	require.Equal(t, 1, bytes.Count(out.Bytes(), []byte("\n")), "once, and not for what the user did not ask for")
}

// TestAsShown: a confirmed write succeeds only for the version of the object that was shown.
func TestAsShown(t *testing.T) {
	p := files(t, "", configMap, deployment)
	target := live(t, p, configMap)
	require.Equal(t, parse(t, configMap), target.AsShown(parse(t, configMap)), "no version")
	versioned := parse(t, configMap)
	versioned["metadata"].(map[string]any)["resourceVersion"] = "7"
	target.set(versioned)
	require.Equal(t, "7", document.TextAt(target.AsShown(parse(t, configMap)), "resourceVersion"))
	_, err := ApplyShown(t.Context(), p, target, target.Object, cluster.WriteOptions{Manager: "m"})
	require.NoError(t, err)
	target.set(nil)
	missing := live(t, p, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: other}}")
	errs := Created(t.Context(), files(t, "", configMap, deployment), []*Desired{
		{Target: target, Tree: parse(t, configMap)},
		{Target: missing, Tree: parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: other}}")},
		{Target: live(t, files(t, "", deployment), deployment)},
	}, 1)
	require.ErrorIs(t, errs[0], errCreated)
	require.Equal(t, []error{nil, nil}, errs[1:], "one that still does not exist, and one that did")
	require.True(t, target.MayWrite(t.Context(), p, ""), "files have no permissions")
}

// TestServedOutcome: the outcome of a write ignores fields that every write changes.
func TestServedOutcome(t *testing.T) {
	target := live(t, files(t, "", configMap), configMap)
	for want, change := range map[plans.Outcome]func(metadata, tree map[string]any){
		plans.Unchanged: func(metadata, _ map[string]any) { metadata["resourceVersion"] = "8" },
		plans.OwnershipOnly: func(metadata, _ map[string]any) {
			metadata["managedFields"] = []any{map[string]any{"manager": "m"}}
		},
		plans.Changed: func(_, tree map[string]any) { tree["data"] = map[string]any{} },
	} {
		after := parse(t, configMap)
		change(after["metadata"].(map[string]any), after)
		require.Equal(t, want, target.ServedOutcome(after))
	}
	target.set(nil)
	require.Equal(t, plans.Changed, target.ServedOutcome(parse(t, configMap)))
}

// TestUncompared: the error names entries of other versions, which only a server can compare.
func TestUncompared(t *testing.T) {
	p := files(t, "", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns, managedFields: [
  {manager: other, operation: Update, apiVersion: apps/v1beta2, fieldsType: FieldsV1, fieldsV1: {}},
  {manager: own, operation: Apply, apiVersion: apps/v1beta2, fieldsType: FieldsV1, fieldsV1: {}},
  {manager: same, operation: Apply, apiVersion: apps/v1, fieldsType: FieldsV1, fieldsV1: {}}]}}`)
	desired := &Desired{Given: parse(t, deployment), Manager: "own"}
	require.NoError(t, desired.Read(t.Context(), p))
	require.ErrorContains(t, desired.Uncompared(), `without the server: "other" at apps/v1beta2`)
	require.NoError(t, desired.CheckDecodes())
	wrong := desired.With(parse(t, "{apiVersion: apps/v1, kind: Deployment, spec: {replicas: x}}"))
	require.Error(t, wrong.CheckDecodes())
}

// A cause of a server is shown without the server's structs and differences.
func TestShortened(t *testing.T) {
	dump := `{"Name":"c","Image":"j","Command":null,"Args":null,"WorkingDir":"","Ports":null,"EnvFrom":null,"Env":null}`
	for _, row := range []struct{ name, message, want string }{
		{"JSON", `Invalid value: [` + dump + `]: field is immutable`,
			`Invalid value: [{"Name":"c","Image":"j","Command":null,"Args":nu…: field is immutable`},
		{"Go", `Invalid value: core.PodTemplateSpec{ObjectMeta:v1.ObjectMeta{Name:"` + strings.Repeat("x", 100) +
			`"}}: field is immutable`,
			`Invalid value: core.PodTemplateSpec{ObjectMeta:v1.ObjectMeta{Nam…: field is immutable`},
		{"no reason", `Duplicate value: ` + dump, `Duplicate value: {"Name":"c","Image":"j","Command":null,"Args":nul…`},
		{"small", `Invalid value: {"a":1}: must not be set`, `Invalid value: {"a":1}: must not be set`},
		{"a text", `Invalid value: "` + dump + `": too long`, `Invalid value: "` + dump + `": too long`},
		{"lines", "Forbidden: refused:\n- c: no limits\n- d: none", "Forbidden: refused:\n- c: no limits\n- d: none"},
		{"a difference of structs", "Forbidden: may not change\n\u00a0\u00a0core.PodSpec{\n-\tA: 1,\n+\tA: 2,\n  }\n",
			"Forbidden: may not change"},
		{"a difference", "Forbidden: spec is immutable\n@@ -1 +1 @@\n-a\n+b\n", "Forbidden: spec is immutable"},
	} {
		t.Run(row.name, func(t *testing.T) { require.Equal(t, row.want, shortened(row.message)) })
	}
}
