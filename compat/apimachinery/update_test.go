package apimachinery_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/fieldsv1"
	"github.com/tenure-ssa/tenure/internal/oracle"
)

// TestUpdateInPlace: hosts put the new object into the attributes of admission, or return it to their caller, and rely
// on Update changing this object in place.
func TestUpdateInPlace(t *testing.T) {
	edits := []struct {
		name, why string
		edit      func(h host, updated runtime.Object) runtime.Object
	}{
		{"labelled", "an entry is added", func(h host, current runtime.Object) runtime.Object {
			current.(metav1.Object).SetLabels(map[string]string{"l": "v"})
			return current
		}},
		{"nothing changed", "the entries stay", func(h host, now runtime.Object) runtime.Object { return now }},
		{"a field of another changed", "an entry loses it and goes", func(h host, now runtime.Object) runtime.Object {
			u := intent("v1", tree{"note": "y"})
			u.SetUID("uid")
			return h.at(u, h.hub("v1"))
		}},
		{
			"without managed fields",
			"those of live count, and are put into it",
			func(h host, now runtime.Object) runtime.Object {
				now.(metav1.Object).SetManagedFields(nil)
				now.(metav1.Object).SetLabels(map[string]string{"l": "v"})
				return now
			},
		},
		{"managed fields reset", "nobody owns anything any more", func(h host, now runtime.Object) runtime.Object {
			now.(metav1.Object).SetManagedFields([]metav1.ManagedFieldsEntry{{}})
			return now
		}},
	}
	for _, row := range edits {
		for _, h := range []host{structs(), customs(), servedCustoms(), schemaless()} {
			t.Run(row.name+"/"+h.name, func(t *testing.T) {
				live := applied(t, h, step{"v1", "a", tree{"note": "x"}})
				own := row.edit(h, h.at(live, h.hub("v1")))
				before := own.DeepCopyObject()
				var up runtime.Object
				upOut, now, err := oracle.AtOnce(func() (runtime.Object, error) {
					up = before.DeepCopyObject()
					return h.upstream("v1", "").Update(live.DeepCopyObject(), up, "editor")
				})
				require.NoError(t, err)
				require.Same(t, up, upOut, "upstream changes it")
				liveText := oracle.JSON(live)
				out, err := h.tenure("v1", "", now).Update(live, own, "editor")
				require.NoError(t, err)
				require.Same(t, own, out, row.why)
				require.JSONEq(t, oracle.JSON(up), oracle.JSON(own), row.why)
				require.Equal(t, liveText, oracle.JSON(live), "live was changed")

				before.(metav1.Object).SetManagedFields(own.(metav1.Object).GetManagedFields())
				require.Equal(t, oracle.JSON(before), oracle.JSON(own), "nothing else was changed")

				// Changes by mutating admission after Update are stored.
				own.(metav1.Object).SetAnnotations(map[string]string{"injected": "true"})
				require.Equal(t, "true", out.(metav1.Object).GetAnnotations()["injected"])
			})
		}
	}
}

// TestAnyManager: manager names are not validated, as in upstream.
func TestAnyManager(t *testing.T) {
	long, h := strings.Repeat("m", 129), customs()
	live := applied(t, h, step{"v1", long, tree{"note": "x"}}) // with both engines
	entries := live.(metav1.Object).GetManagedFields()
	require.Equal(t, long, entries[len(entries)-1].Manager)
}

// TestFailedUpdateKeepsItsInput: upstream's Update removes the managed fields from the new object before it fails
// (doc/differences.md, 16).
func TestFailedUpdateKeepsItsInput(t *testing.T) {
	h := customs()
	live := applied(t, h, step{"v1", "a", tree{"note": "x"}})
	updated := live.DeepCopyObject().(*unstructured.Unstructured)
	updated.Object["spec"] = tree{"remark": int64(1)}
	before := oracle.JSON(updated)
	_, err := h.tenure("v1", "", start).Update(live, updated, "editor")
	require.Error(t, err)
	require.Equal(t, before, oracle.JSON(updated))
	_, err = h.upstream("v1", "").Update(live, updated, "editor")
	require.Error(t, err)
	require.Empty(t, updated.GetManagedFields(), "upstream")
}

// TestUpdateNoErrorsReports: the error is reported, and the object gets live's managed fields, as in upstream.
func TestUpdateNoErrorsReports(t *testing.T) {
	h := customs()
	live := applied(t, h, step{"v1", "a", tree{"note": "x"}})
	var reported []error
	m := h.tenureOf(widgetKind("v1"), "", func(o *fieldmanager.Options) {
		o.Errors = func(obj runtime.Object, err error) {
			require.Equal(t, "w", obj.(metav1.Object).GetName())
			reported = append(reported, err)
		}
	})
	broken := live.DeepCopyObject().(*unstructured.Unstructured)
	broken.Object["spec"] = tree{"remark": int64(1)}
	broken.SetManagedFields(nil)
	up := broken.DeepCopy()
	require.Same(t, broken, m.UpdateNoErrors(live, broken, "editor"))
	require.Len(t, reported, 1)
	require.ErrorContains(t, reported[0], "cannot convert int64 to string")
	h.upstream("v1", "").UpdateNoErrors(live.DeepCopyObject(), up, "editor")
	if len(up.GetManagedFields()) == 0 {
		// Before k8s.io/apimachinery v0.37, upstream removed all entries; now it keeps live's.
		up.SetManagedFields(live.(metav1.Object).GetManagedFields())
	}
	require.JSONEq(t, oracle.JSON(up), oracle.JSON(broken))
	m.UpdateNoErrors(live, live.DeepCopyObject(), "editor")
	require.Len(t, reported, 1, "a write without an error")
}

// TestStatusErrors: hosts check for the Go type StatusError where upstream returns one.
func TestStatusErrors(t *testing.T) {
	managed := intent("v1", tree{"note": "x"})
	managed.SetManagedFields([]metav1.ManagedFieldsEntry{{}})
	for _, h := range []host{structs(), customs(), servedCustoms(), schemaless()} {
		live := applied(t, h, step{"v1", "a", tree{"note": "x", "size": int64(1)}}, step{"v1", "b", tree{"note": "x"}})
		for _, row := range []struct {
			name, why string
			applied   *unstructured.Unstructured
		}{
			{"conflict", "with two managers", intent("v1", tree{"note": "y"})},
			{"conflicts", "over two fields", intent("v1", tree{"note": "y", "size": int64(2)})},
			{"version", "the intent is of another version than the request", intent("v2", tree{"remark": "x"})},
			{"managed fields", "nobody may apply them", managed},
			{"not a status", "an intent that does not fit its type", intent("v1", tree{"note": tree{}, "size": "x"})},
		} {
			if h.schemaless && row.name == "not a status" {
				continue
			}
			t.Run(row.name+"/"+h.name, func(t *testing.T) {
				_, upErr := h.upstream("v1", "").Apply(live.DeepCopyObject(), row.applied.DeepCopy(), "c", false)
				_, err := h.tenure("v1", "", start).Apply(live, row.applied, "c", false)
				require.Error(t, upErr)
				require.Error(t, err)
				up, isStatus := upErr.(*apierrors.StatusError)
				own, ok := err.(*apierrors.StatusError)
				require.Equal(t, isStatus, ok, "upstream: %T, tenure: %T", upErr, err)
				if isStatus {
					require.NoError(t, oracle.CompareErrors(upErr, err))
					require.Equal(t, up.ErrStatus.Reason, own.ErrStatus.Reason)
					require.Equal(t, up.ErrStatus.Code, own.ErrStatus.Code)
				}
			})
		}
	}
}

// TestUnknownKind: constructors do not fail for kinds without a type, because servers have such kinds and never write
// to them. Requests fail.
func TestUnknownKind(t *testing.T) {
	h := servedCustoms()
	h.converter = converts{}
	kind := gv("v1").WithKind("Gadget")
	u := &unstructured.Unstructured{Object: tree{"metadata": tree{"name": "g"}, "spec": "x"}}
	u.SetGroupVersionKind(kind)
	live := u.DeepCopy()
	own := h.tenureOf(kind, "")
	for name, m := range map[string]manager{"upstream": h.upstreamOf(kind, ""), "tenure": own} {
		_, err := m.Apply(live, u.DeepCopy(), "a", false)
		require.Error(t, err, name)
		_, err = m.Update(live, u.DeepCopy(), "a")
		require.Error(t, err, name)
	}
	_, err := own.Apply(live, u, "a", false)
	require.EqualError(t, err, "no type for example.dev/v1, Kind=Gadget")
}

// converts is a converter that returns objects unchanged.
type converts struct{ runtime.ObjectConvertor }

func (converts) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

// raw is a Go struct with a field that may contain bytes that are not JSON.
type raw struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Data              runtime.RawExtension `json:"data,omitempty"`
}

func (r *raw) DeepCopyObject() runtime.Object {
	out := *r
	out.ObjectMeta = *r.ObjectMeta.DeepCopy()
	out.Data = *r.Data.DeepCopy()
	return &out
}

// TestBrokenRawExtension: an object that can't be written as JSON is an error; upstream panics, which ends the request
// in an API server (doc/differences.md, 27).
func TestBrokenRawExtension(t *testing.T) {
	kind := gv("v1").WithKind("Raw")
	h := host{converter: converts{}, defaulter: &custom{}, creater: creates{}, hub: gv, schemaless: true}
	object := func(data string) *raw {
		r := &raw{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Data: runtime.RawExtension{Raw: []byte(data)}}
		r.SetGroupVersionKind(kind)
		return r
	}
	for _, data := range []string{`"`, `{`, `[`, `1z`, `z`} {
		t.Run(data, func(t *testing.T) {
			up := h.upstreamOf(kind, "")
			require.Panics(t, func() { _, _ = up.Update(object("{}"), object(data), "a") }, "upstream")
			var reported error
			own := h.tenureOf(kind, "", func(o *fieldmanager.Options) {
				o.Errors = func(_ runtime.Object, err error) { reported = err }
			})
			updated := object(data)
			_, err := own.Update(object("{}"), updated, "a")
			require.Error(t, err)
			require.ErrorContains(t, err, "data")
			require.Same(t, updated, own.UpdateNoErrors(object("{}"), updated, "a"))
			require.Error(t, reported)
			_, err = own.Apply(updated, object("{}"), "a", false)
			require.ErrorContains(t, err, "live object: .data: ")
		})
	}
}

type creates struct{}

func (creates) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	r := &raw{}
	r.SetGroupVersionKind(kind)
	return r, nil
}

// TestUpdateReadsInPlace: unchanged parts of a Go struct cost no memory in an update, however large they are.
func TestUpdateReadsInPlace(t *testing.T) {
	h := host{converter: converts{}, defaulter: &custom{}, creater: &custom{}, hub: gv}
	allocations := func(ports int) float64 {
		live := &WidgetV1{ObjectMeta: metav1.ObjectMeta{Name: "w", UID: "uid"}}
		live.SetGroupVersionKind(widgetKind("v1"))
		for i := range ports {
			live.Spec.Ports = append(live.Spec.Ports, PortV1{Name: fmt.Sprint("p", i)})
		}
		live.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: "a", Operation: "Apply", APIVersion: "example.dev/v1", FieldsType: "FieldsV1",
			FieldsV1: fieldsv1.New(`{"f:spec":{"f:note":{}}}`),
		}}
		m := h.tenureOf(widgetKind("v1"), "")
		updated := live.DeepCopyObject().(*WidgetV1)
		updated.Labels = map[string]string{"l": "v"}
		return testing.AllocsPerRun(20, func() {
			updated.ManagedFields = live.ManagedFields
			if _, err := m.Update(live, updated, "b"); err != nil || len(updated.ManagedFields) != 2 {
				t.Fatal(err, updated.ManagedFields)
			}
		})
	}
	few, many := allocations(10), allocations(1000)
	require.InDelta(t, few, many, 20, "allocations for 10 and for 1,000 ports")
}
