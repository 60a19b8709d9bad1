package ownership_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	upstreamfields "k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/tenure-ssa/tenure/fieldmanager/fieldmanagertest"
	"github.com/tenure-ssa/tenure/internal/oracle"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

func deployment(rest string) *unstructured.Unstructured {
	return manifest("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: default}\n" + rest)
}

func set(t testing.TB, fieldsV1 string) *fieldpath.Set {
	t.Helper()
	out, err := fieldpath.Parse([]byte(fieldsV1))
	require.NoError(t, err)
	return out
}

func manager(name string) managedfields.Key { return managedfields.Key{Manager: name} }

// owners returns the managed fields as lines of manager, operation, version, subresource, time and fields.
func owners(t testing.TB, obj runtime.Object) string {
	t.Helper()
	var lines []string
	for _, e := range obj.(metav1.Object).GetManagedFields() {
		when := "never"
		if e.Time != nil {
			when = e.Time.UTC().Format("04:05")
		}
		lines = append(lines,
			strings.Join(
				[]string{e.Manager, string(e.Operation), e.APIVersion, e.Subresource, when, e.FieldsV1.String()}, " "))
	}
	return strings.Join(lines, "\n")
}

func paths(set *fieldpath.Set) string {
	return strings.ReplaceAll(strings.TrimSpace(set.String()), "\n", " ")
}

const web = `
spec:
  replicas: 3
  template:
    spec:
      containers:
      - {name: app, image: app:1, ports: [{containerPort: 80}], args: [a, b]}
      - {name: side, image: side:1}
`

// started returns a Deployment that argocd has applied, kubectl has labelled, and a controller has set the status of.
func started(t testing.TB) *fieldmanagertest.Harness {
	t.Helper()
	return after(t,
		fieldmanagertest.Apply("argocd", deployment(web)),
		fieldmanagertest.Patch("kubectl", `metadata: {labels: {team: a, tier: b}}`),
		fieldmanagertest.Patch("controller", `status: {replicas: 3}`).Through("status"),
	)
}

// after returns an object after some writes, one second apart.
func after(t testing.TB, writes ...fieldmanagertest.Write) *fieldmanagertest.Harness {
	t.Helper()
	h := fieldmanagertest.New(t)
	for _, w := range writes {
		require.NoError(t, h.Do(w).Err)
	}
	return h
}

const (
	argocdOwns  = `argocd Apply apps/v1  00:00 {"f:spec":{"f:replicas":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:args":{},"f:image":{},"f:name":{},"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}},"k:{\"name\":\"side\"}":{".":{},"f:image":{},"f:name":{}}}}}}}`
	kubectlOwns = `kubectl Update apps/v1  00:01 {"f:metadata":{"f:labels":{".":{},"f:team":{},"f:tier":{}}}}`
	controlOwns = `controller Update apps/v1 status 00:02 {"f:status":{".":{},"f:replicas":{}}}`
)

// TestMoves makes each move on the same Deployment, and shows the resulting managed fields and next applies
// (spec rules 14.1, 14.2, 14.3 and 14.4).
func TestMoves(t *testing.T) {
	rest := kubectlOwns + "\n" + controlOwns
	const container = `"f:spec":{"f:template":{"f:spec":{"f:containers":`
	for _, row := range []struct {
		name  string
		moves []ownership.Move
		want  string
		next  string // manager: deletes | keeps | regains
		why   string
	}{
		{"start", nil, argocdOwns + "\n" + rest, "", "no move moves nothing"},
		{"transfer a field",
			[]ownership.Move{
				ownership.Transfer{Fields: set(t, `{"f:spec":{"f:replicas":{}}}`), From: manager("argocd"), To: manager("scaler")}},
			strings.Replace(argocdOwns, `"f:replicas":{},`, "", 1) + "\n" +
				`scaler Apply apps/v1  00:00 {"f:spec":{"f:replicas":{}}}` + "\n" + rest,
			"argocd: | | .spec.replicas\nscaler: .spec.replicas | |",
			"argocd's manifest still has it, and the newcomer's has nothing yet"},
		{"transfer a field of an item", []ownership.Move{ownership.Transfer{
			Fields: set(t, `{`+container+`{"k:{\"name\":\"app\"}":{"f:image":{}}}}}}}`), From: manager("argocd"),
			To: manager("ci")}},
			strings.Replace(argocdOwns, `"f:image":{},"f:name":{},"f:ports"`, `"f:name":{},"f:ports"`, 1) + "\n" +
				`ci Apply apps/v1  00:00 {` + container + `{"k:{\"name\":\"app\"}":{".":{},"f:image":{},"f:name":{}}}}}}}` + "\n" +
				rest,
			`argocd: | | .spec.template.spec.containers[name="app"].image
ci: .spec.template.spec.containers[name="app"].image | .spec.template.spec.containers[name="app"] .spec.template.spec.containers[name="app"].name |`,
			"both own the item then"},
		{"transfer the last field of an item", []ownership.Move{ownership.Transfer{
			Fields: set(t, `{`+container+`{"k:{\"name\":\"side\"}":{"f:image":{}}}}}}}`), From: manager("argocd"),
			To: manager("ci")}},
			strings.Replace(argocdOwns, `,"k:{\"name\":\"side\"}":{".":{},"f:image":{},"f:name":{}}`, "", 1) + "\n" +
				`ci Apply apps/v1  00:00 {` + container + `{"k:{\"name\":\"side\"}":{".":{},"f:image":{},"f:name":{}}}}}}}` +
				"\n" + rest,
			`argocd: | | .spec.template.spec.containers[name="side"] .spec.template.spec.containers[name="side"].image .spec.template.spec.containers[name="side"].name
ci: .spec.template.spec.containers[name="side"] .spec.template.spec.containers[name="side"].image .spec.template.spec.containers[name="side"].name | |`,
			"the item goes along"},
		{"transfer an item with a default in its key", []ownership.Move{ownership.Transfer{
			Fields: set(t,
				`{`+container+`{"k:{\"name\":\"app\"}":{"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{}}}}}}}}`),
			From: manager("argocd"), To: manager("mesh")}},
			strings.Replace(argocdOwns,
				`,"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}`, "", 1) + "\n" +
				`mesh Apply apps/v1  00:00 {` + container +
				`{"k:{\"name\":\"app\"}":{".":{},"f:name":{},"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}}}}}}}` + "\n" + rest,
			`argocd: | | .spec.template.spec.containers[name="app"].ports[containerPort=80,protocol="TCP"] .spec.template.spec.containers[name="app"].ports[containerPort=80,protocol="TCP"].containerPort
mesh: .spec.template.spec.containers[name="app"].ports[containerPort=80,protocol="TCP"] .spec.template.spec.containers[name="app"].ports[containerPort=80,protocol="TCP"].containerPort | .spec.template.spec.containers[name="app"] .spec.template.spec.containers[name="app"].name |`,
			"the default is not in the object, and owned by nobody"},
		{"transfer an atomic list", []ownership.Move{ownership.Transfer{
			Fields: set(t, `{`+container+`{"k:{\"name\":\"app\"}":{"f:args":{}}}}}}}`), From: manager("argocd"),
			To: manager("ci")}},
			strings.Replace(argocdOwns, `"f:args":{},`, "", 1) + "\n" +
				`ci Apply apps/v1  00:00 {` + container + `{"k:{\"name\":\"app\"}":{".":{},"f:args":{},"f:name":{}}}}}}}` + "\n" +
				rest,
			`argocd: | | .spec.template.spec.containers[name="app"].args
ci: .spec.template.spec.containers[name="app"].args | .spec.template.spec.containers[name="app"] .spec.template.spec.containers[name="app"].name |`, "as a whole"},
		{"transfer an update to an applier",
			[]ownership.Move{ownership.Transfer{All: true, From: manager("kubectl"), To: manager("argocd")}},
			strings.Replace(
				strings.Replace(argocdOwns, `{"f:spec"`, `{"f:metadata":{"f:labels":{"f:team":{},"f:tier":{}}},"f:spec"`, 1),
				"00:00", "00:01", 1) + "\n" + controlOwns,
			"argocd: .metadata.labels.team .metadata.labels.tier | |", "which never owns a container with something in it"},
		{"transfer an update to another", []ownership.Move{ownership.Transfer{
			Fields: set(t, `{"f:metadata":{"f:labels":{"f:team":{}}}}`), From: manager("kubectl"),
			To: managedfields.Key{Manager: "ui", Operation: metav1.ManagedFieldsOperationUpdate}}},
			argocdOwns + "\n" + `kubectl Update apps/v1  00:01 {"f:metadata":{"f:labels":{".":{},"f:tier":{}}}}` + "\n" +
				`ui Update apps/v1  00:01 {"f:metadata":{"f:labels":{".":{},"f:team":{}}}}` + "\n" + controlOwns, "",
			"the container is of both, and nobody looks ahead for updaters"},
		{"transfer a status",
			[]ownership.Move{ownership.Transfer{All: true, From: manager("controller"), To: manager("operator")}},
			argocdOwns + "\n" + `operator Apply apps/v1 status 00:02 {"f:status":{"f:replicas":{}}}` + "\n" + kubectlOwns,
			"operator: .status.replicas | |", "the subresource stays"},
		{"transfer a status to an update", []ownership.Move{ownership.Transfer{All: true, From: manager("controller"),
			To: managedfields.Key{Manager: "operator", Operation: metav1.ManagedFieldsOperationUpdate}}},
			argocdOwns + "\n" + kubectlOwns + "\n" + strings.Replace(controlOwns, "controller", "operator", 1), "",
			"the subresource stays"},
		{"release", []ownership.Move{
			ownership.Release{Fields: set(t, `{"f:metadata":{"f:labels":{"f:team":{}}}}`), From: manager("kubectl")}},
			argocdOwns + "\n" + strings.Replace(kubectlOwns, `"f:team":{},`, "", 1) + "\n" + controlOwns, "",
			"nobody owns it then"},
		{"drop", []ownership.Move{ownership.Drop{From: manager("kubectl")}}, argocdOwns + "\n" + controlOwns, "",
			"with all its entries"},
		{"rename", []ownership.Move{ownership.Rename{From: manager("argocd"), To: "flux"}},
			strings.Replace(argocdOwns, "argocd", "flux", 1) + "\n" + rest,
			"flux: | |", "under its new name it goes on as before"},
		{"rename an update", []ownership.Move{ownership.Rename{From: manager("kubectl"), To: "argocd"}},
			argocdOwns + "\n" + strings.Replace(kubectlOwns, "kubectl", "argocd", 1) + "\n" + controlOwns, "",
			"it stays an update"},
		{"adopt", []ownership.Move{
			ownership.Adopt{Fields: set(t, `{"f:metadata":{"f:labels":{}},"f:spec":{"f:replicas":{}}}`), To: manager("flux")}},
			argocdOwns + "\n" +
				`flux Apply apps/v1  09:00 {"f:metadata":{"f:labels":{"f:team":{},"f:tier":{}}},"f:spec":{"f:replicas":{}}}` +
				"\n" + rest,
			"flux: | .metadata.labels.team .metadata.labels.tier .spec.replicas |", "along with who owns it"},
		{"adopt more",
			[]ownership.Move{
				ownership.Adopt{Fields: set(t, `{"f:metadata":{"f:labels":{"f:team":{}}}}`), To: manager("argocd")}},
			strings.Replace(argocdOwns, `{"f:spec"`, `{"f:metadata":{"f:labels":{"f:team":{}}},"f:spec"`, 1) + "\n" + rest,
			"argocd: | .metadata.labels.team |", "the time is that of what it wrote"},
		{"adopt what nobody owns", []ownership.Move{ownership.Drop{From: manager("kubectl")},
			ownership.Adopt{Fields: set(t, `{"f:metadata":{"f:labels":{"f:team":{}}}}`), To: manager("argocd")}},
			strings.Replace(argocdOwns, `{"f:spec"`, `{"f:metadata":{"f:labels":{"f:team":{}}},"f:spec"`, 1) + "\n" +
				controlOwns,
			"argocd: .metadata.labels.team | |", "moves are made one after the other"},
		{"there and back", []ownership.Move{
			ownership.Transfer{All: true, From: manager("argocd"), To: manager("tmp")},
			ownership.Transfer{All: true, From: manager("tmp"), To: manager("argocd")}},
			argocdOwns + "\n" + rest, "", "what comes back is what it was"},
		{"in and out again", []ownership.Move{
			ownership.Transfer{Fields: set(t, `{"f:metadata":{"f:labels":{"f:team":{}}}}`), From: manager("kubectl"),
				To: manager("argocd")},
			ownership.Release{Fields: set(t, `{"f:metadata":{"f:labels":{"f:team":{}}}}`), From: manager("argocd")}},
			argocdOwns + "\n" + strings.Replace(kubectlOwns, `"f:team":{},`, "", 1) + "\n" + controlOwns, "",
			"who has what it had keeps its time"},
		{"what it had already",
			[]ownership.Move{ownership.Adopt{Fields: set(t, `{"f:metadata":{"f:labels":{"f:team":{}}}}`), To: manager("argocd")},
				ownership.Transfer{Fields: set(t, `{"f:metadata":{"f:labels":{"f:team":{}}}}`), From: manager("kubectl"),
					To: manager("argocd")}},
			strings.Replace(argocdOwns, `{"f:spec"`, `{"f:metadata":{"f:labels":{"f:team":{}}},"f:spec"`, 1) + "\n" +
				strings.Replace(kubectlOwns, `"f:team":{},`, "", 1) + "\n" + controlOwns, "argocd: .metadata.labels.team | |",
			"an entry that does not grow keeps its time"},
		{"everything dropped",
			[]ownership.Move{ownership.Drop{From: manager("kubectl")}, ownership.Drop{From: manager("controller")},
				ownership.Drop{From: manager("argocd")}},
			"", "argocd: | | " + paths(set(t, argocdOwns[len("argocd Apply apps/v1  00:00 "):])), "nobody tracks it any more"},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := started(t)
			live := h.Live()
			r, err := ownership.Mover{Types: openapi.Builtin(), Options: clocked}.Do(t.Context(), live, row.moves...)
			require.NoError(t, err)
			require.Equal(t, row.want, owners(t, r.Object), row.why)
			require.Equal(t, h.Live(), live, "live is not changed")
			without := func(obj runtime.Object) map[string]any {
				u := obj.(*unstructured.Unstructured).DeepCopy()
				u.SetManagedFields(nil)
				return u.Object
			}
			require.Equal(t, without(live), without(r.Object), "no value changes")
			var next []string
			for _, n := range r.Next {
				require.NoError(t, n.Err)
				next = append(next,
					strings.Join(strings.Fields(n.Manager.Manager+": "+paths(n.Deletes)+" | "+paths(n.Keeps)+" | "+paths(n.Regains)),
						" "))
			}
			require.Equal(t, row.next, strings.Join(next, "\n"))
			accepted(t, h, r)
		})
	}
}

// accepted handles a patch as a server does, and requires that the server stores the managed fields of the result
// unchanged.
func accepted(t *testing.T, h *fieldmanagertest.Harness, r *ownership.Result) {
	t.Helper()
	patch, err := r.Patch()
	require.NoError(t, err)
	if patch == nil {
		require.Empty(t, r.Changes)
		return
	}
	var ops []struct {
		Op, Path string
		Value    any
	}
	require.NoError(t, json.Unmarshal(patch, &ops))
	require.Len(t, ops, 2)
	require.Equal(t, "replace", ops[1].Op)
	require.Equal(t, "/metadata/resourceVersion", ops[1].Path)
	require.Equal(t, h.Live().GetResourceVersion(), ops[1].Value)
	require.Equal(t, "/metadata/managedFields", ops[0].Path)
	patched := h.Live()
	require.NoError(t, unstructured.SetNestedField(patched.Object, ops[0].Value, "metadata", "managedFields"))
	theirs, err := upstream(t, h.Live(), patched, "patcher")
	require.NoError(t, err)
	require.Equal(t, owners(t, r.Object), owners(t, theirs))
	ours := h.Do(fieldmanagertest.Update("patcher", patched))
	require.NoError(t, ours.Err)
	require.Equal(t, owners(t, r.Object), owners(t, ours.Object))
}

// upstream lets apimachinery's field manager track an update, as kube-apiserver does with the result of a patch.
func upstream(t *testing.T, live, updated *unstructured.Unstructured, manager string) (runtime.Object, error) {
	t.Helper()
	kind := updated.GroupVersionKind()
	models, err := oracle.BuiltinModels(kind.GroupVersion())
	require.NoError(t, err)
	types, err := upstreamfields.NewTypeConverter(models, false)
	require.NoError(t, err)
	m, err := upstreamfields.NewDefaultFieldManager(types, oracle.AsItIs{}, oracle.AsItIs{}, oracle.AsItIs{}, kind,
		kind.GroupVersion(), "", nil)
	require.NoError(t, err)
	return m.Update(live.DeepCopy(), updated.DeepCopy(), manager)
}
