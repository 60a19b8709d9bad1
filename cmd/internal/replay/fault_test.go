package replay_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/conversion"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	smd "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/tenure-ssa/tenure/cmd/internal/replay"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

type tree = map[string]any

// TestFaultsOfTheRecordedServer: where a plan's outcome is not the recorded server's, upstream's field manager fails in
// the same way with kube-apiserver's own converter of custom resources. Without the fault, upstream's outcome is the
// plan's.
func TestFaultsOfTheRecordedServer(t *testing.T) {
	loaded, err := replay.Load(filepath.Join(traces, "random"))
	require.NoError(t, err)
	explained := map[int]int{}
	for _, trace := range loaded {
		for _, result := range replay.RunEngine(trace, openapi.Builtin()) {
			if result.Plan != replay.PlanExplained {
				continue
			}
			t.Run(fmt.Sprintf("%s %d", filepath.Base(trace.Name), result.Step), func(t *testing.T) {
				explained[result.Difference]++
				apply := newRecordedApply(t, trace, result.Step)
				switch result.Difference {
				case 1:
					apply.checkNulls(result.Planned)
				case 28:
					apply.checkScale(result.Planned)
				}
				altersFault(t, trace, result)
			})
		}
	}
	require.Equal(t, map[int]int{1: 3, 28: 7}, explained)
}

// altersFault shows that the whole response to a fault is compared.
func altersFault(t *testing.T, trace *replay.Trace, result replay.Result) {
	step := &trace.Steps[result.Step]
	response := step.Response
	defer func() { step.Response = response }()
	for _, alter := range []func(){
		func() { alterText(step.Response.Body, "message", firstByte) },
		func() { step.Response.Body["code"] = int64(400) },
		func() { step.Response.Code = 200 },
		func() { step.Response = trace.Steps[result.Step-1].Response },
	} {
		step.Response.Body = runtime.DeepCopyJSON(response.Body)
		alter()
		got := replay.RunEngine(trace, openapi.Builtin())[result.Step]
		require.Equal(t, replay.PlanDiffers, got.Plan)
		require.Equal(t, replay.Differed, got.Outcome)
		require.Contains(t, got.Detail, fmt.Sprintf("difference %d: response", result.Difference))
		step.Response = response
	}
}

// recordedApply is an apply of a trace, with what upstream's field manager needs.
type recordedApply struct {
	*testing.T
	step      *replay.Step
	crd       apiextensionsv1.CustomResourceDefinition
	live      *unstructured.Unstructured
	gvk       schema.GroupVersionKind // of the custom resource, at the version of the request
	manager   string
	force     bool
	types     managedfields.TypeConverter
	converter runtime.ObjectConvertor
}

func newRecordedApply(t *testing.T, trace *replay.Trace, i int) *recordedApply {
	a := &recordedApply{T: t, step: &trace.Steps[i]}
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(trace.CRD, &a.crd))
	a.crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	parts := strings.Split(a.step.Request.Path, "/") // /apis/GROUP/VERSION/namespaces/NAMESPACE/PLURAL/NAME
	path := strings.Join(parts[5:8], "/")
	for _, before := range trace.Steps[:i] {
		if strings.HasSuffix(before.Request.Path, path) && before.Response.Code < 300 &&
			before.Response.Body["kind"] == a.crd.Spec.Names.Kind && !strings.Contains(before.Request.Query, "dryRun") {
			a.live = &unstructured.Unstructured{Object: before.Response.Body}
		}
	}
	require.NotNil(t, a.live)
	a.live = a.live.DeepCopy()
	a.gvk = schema.GroupVersionKind{Group: parts[2], Version: parts[3], Kind: a.crd.Spec.Names.Kind}
	query := "&" + a.step.Request.Query + "&"
	_, name, _ := strings.Cut(query, "&fieldManager=")
	a.manager, _, _ = strings.Cut(name, "&")
	a.force = strings.Contains(query, "&force=true&")

	models, err := builder.BuildOpenAPIV3(&a.crd, a.gvk.Version, builder.Options{})
	require.NoError(t, err)
	for _, version := range a.crd.Spec.Versions {
		more, err := builder.BuildOpenAPIV3(&a.crd, version.Name, builder.Options{})
		require.NoError(t, err)
		maps.Copy(models.Components.Schemas, more.Components.Schemas)
	}
	a.types, err = managedfields.NewTypeConverter(models.Components.Schemas, false)
	require.NoError(t, err)
	factory, err := conversion.NewCRConverterFactory(nil, nil)
	require.NoError(t, err)
	a.converter, _, err = factory.NewConverter(&a.crd)
	require.NoError(t, err)
	return a
}

// upstream applies the recorded body with upstream's field manager.
func (a *recordedApply) upstream(
	live runtime.Object, kind schema.GroupVersionKind, subresource string, by runtime.ObjectConvertor,
) (runtime.Object, error) {
	reset := map[smd.APIVersion]smd.Filter{}
	if subresource == "" {
		for _, version := range a.crd.Spec.Versions {
			if version.Subresources != nil && version.Subresources.Status != nil {
				reset[smd.APIVersion(a.gvk.Group+"/"+version.Name)] =
					smd.NewExcludeSetFilter(smd.NewSet(smd.MakePathOrDie("status")))
			}
		}
	}
	m, err := managedfields.NewDefaultCRDFieldManager(a.types, by, nothing{}, nothing{}, kind, kind.GroupVersion(),
		subresource, reset)
	require.NoError(a, err)
	body := &unstructured.Unstructured{Object: a.step.Request.Body.(tree)}
	return m.Apply(live.DeepCopyObject(), body.DeepCopy(), a.manager, a.force)
}

// nothing is the defaulter and the creater of custom resources. Defaults are of no concern here.
type nothing struct{}

func (nothing) Default(runtime.Object) {}

func (nothing) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(kind)
	return out, nil
}

// checkNulls: the fields that the recorded server rejected are null in upstream's object, and no others. If they are
// empty in their place, the object has changed, as the plan says.
func (a *recordedApply) checkNulls(planned string) {
	a.live.SetAPIVersion(a.gvk.GroupVersion().String())
	out, err := a.upstream(a.live, a.gvk, "", a.converter)
	require.NoError(a, err)
	got := out.(*unstructured.Unstructured).Object

	var rejected []string
	causes, _, _ := unstructured.NestedSlice(a.step.Response.Body, "details", "causes")
	for _, cause := range causes {
		field := cause.(tree)["field"].(string)
		rejected = append(rejected, field)
		require.NotContains(a, field, "[", "a path of names")
		path := strings.Split(field, ".")
		var empty any = tree{}
		if strings.Contains(cause.(tree)["message"].(string), "of type array") {
			empty = []any{}
		}
		value, found, err := unstructured.NestedFieldNoCopy(got, path...)
		require.NoError(a, err)
		require.True(a, found && value == nil, "%s is %v", field, value)
		require.NoError(a, unstructured.SetNestedField(got, empty, path...))
	}
	var left []string
	for _, path := range nulls("", got["spec"]) {
		names := strings.Split("spec"+path, ".")
		if v, _, _ := unstructured.NestedFieldNoCopy(a.step.Request.Body.(tree), names...); v != nil {
			left = append(left, path)
		}
	}
	require.Empty(a, left, "upstream has more nulls than the server rejected: %v", rejected)
	outcome := plans.Changed.String()
	if typed.Equal(a.live.Object["spec"], got["spec"]) && maps.Equal(a.live.GetLabels(), out.(metav1.Object).GetLabels()) {
		outcome = plans.OwnershipOnly.String()
	}
	require.Equal(a, outcome, planned)
}

// nulls returns the paths of nulls in maps.
func nulls(path string, v any) (out []string) {
	if v == nil {
		return []string{path}
	}
	of, _ := v.(tree)
	for _, name := range slices.Sorted(maps.Keys(of)) {
		out = append(out, nulls(path+"."+name, of[name])...)
	}
	return out
}

// scaleKnower is kube-apiserver's converter of custom resources, but one that knows a Scale which is no Go struct.
type scaleKnower struct{ runtime.ObjectConvertor }

func (c scaleKnower) ConvertToVersion(in runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
	u, ok := in.(*unstructured.Unstructured)
	if !ok || u.GetKind() != "Scale" {
		return c.ObjectConvertor.ConvertToVersion(in, to)
	}
	out := &autoscalingv1.Scale{}
	return out, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out)
}

// checkScale: upstream's field manager fails with the message of the recorded response. With a converter that knows
// the Scale of upstream's own making, the outcome is that of the plan.
func (a *recordedApply) checkScale(planned string) {
	kind := schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}
	paths := managedfields.ResourcePathMappings{}
	for _, version := range a.crd.Spec.Versions {
		paths[a.gvk.Group+"/"+version.Name] = smd.MakePathOrDie("spec", "replicas")
	}
	handler := managedfields.NewScaleHandler(a.live.GetManagedFields(), a.gvk.GroupVersion(), paths)
	entries, err := handler.ToSubresource()
	require.NoError(a, err)
	live := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{
		Name: a.live.GetName(), Namespace: a.live.GetNamespace(), UID: a.live.GetUID(), ManagedFields: entries,
	}}
	live.SetGroupVersionKind(kind)
	replicas, _, err := unstructured.NestedInt64(a.live.Object, "spec", "replicas")
	require.NoError(a, err)
	live.Spec.Replicas = int32(replicas)

	_, err = a.upstream(live, kind, "scale", a.converter)
	require.EqualError(a, err, a.step.Response.Body["message"].(string))

	out, err := a.upstream(live, kind, "scale", scaleKnower{a.converter})
	require.NoError(a, err)
	outcome := plans.OwnershipOnly.String()
	if out.(*autoscalingv1.Scale).Spec.Replicas != live.Spec.Replicas {
		outcome = plans.Changed.String()
	}
	require.Equal(a, outcome, planned)
}
