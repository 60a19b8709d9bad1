package fieldmanagertest_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/fieldmanager/fieldmanagertest"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/managedfields"
)

const twoFields = `spec: {type: object, properties: {a: {type: integer}, b: {type: integer}}}`

// TestDo shows the result of every kind of write.
func TestDo(t *testing.T) {
	h := fieldmanagertest.New(t, fieldmanagertest.WithSchema(twoFields))
	require.Nil(t, h.Live(), "there is no object before the first write")

	r := h.Do(fieldmanagertest.Apply("alice", `spec: {a: 1}`))
	require.NoError(t, r.Err)
	require.True(t, r.Changed)
	require.Equal(t, "1", r.Object.GetResourceVersion())
	require.NotEmpty(t, r.Object.GetUID())
	require.Equal(t, "2026-01-01T00:00:00Z", r.ManagedFields[0].Time.UTC().Format("2006-01-02T15:04:05Z"))

	r = h.Do(fieldmanagertest.Apply("alice", map[string]any{"spec": map[string]any{"a": int64(1)}}))
	require.NoError(t, r.Err)
	require.False(t, r.Changed, "the same intent writes nothing")
	require.Equal(t, "1", r.Object.GetResourceVersion())

	r = h.Do(fieldmanagertest.Apply("bob", `spec: {a: 2}`))
	require.ErrorContains(t, r.Err, `conflict with "alice": .spec.a`)
	require.Len(t, r.Conflicts, 1)
	require.Equal(t, int64(1), r.Conflicts[0].Live)
	require.False(t, r.Changed)

	r = h.Do(fieldmanagertest.Apply("bob", `spec: {a: two}`))
	require.Error(t, r.Err)
	require.Nil(t, r.Conflicts, "an intent that does not fit is no conflict")

	r = h.Do(fieldmanagertest.Patch("ctl", `spec: {a: null, b: 2}`))
	require.NoError(t, r.Err)
	require.NotContains(t, r.Object.Object["spec"], "a", "null removes")
	h.RequireOwner(".spec.b", "ctl")
	h.RequireOwner(".spec.a")
	require.Equal(t, []managedfields.Key{{
		Manager: "ctl", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "example.dev/v1",
	}}, h.Owners(".spec.b"))

	h.Live().Object["spec"] = "changed"
	require.NotEqual(t, "changed", h.Live().Object["spec"], "Live is a copy")
}

// TestInvalidWrites shows the writes that the harness rejects itself.
func TestInvalidWrites(t *testing.T) {
	for _, c := range []struct{ name, why, want string }{
		{"patch", "a patch needs an object", "not found"},
		{"status", "a subresource needs an object", "not found"},
		{"kind", "a built-in kind must be named", "no type"},
		{"yaml", "the object must be YAML", "yaml"},
		{"go", "the object must be one", "expected YAML"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := map[string]fieldmanagertest.Write{
				"patch":  fieldmanagertest.Patch("ctl", `spec: {a: 1}`),
				"status": fieldmanagertest.Apply("ctl", `status: {}`).Through("status"),
				"kind":   fieldmanagertest.Apply("ctl", `spec: {a: 1}`),
				"yaml":   fieldmanagertest.Apply("ctl", `{`),
				"go":     fieldmanagertest.Apply("ctl", 7),
			}[c.name]
			var options []fieldmanagertest.Option
			if c.name != "kind" {
				options = append(options, fieldmanagertest.WithSchema(twoFields))
			}
			r := fieldmanagertest.New(t, options...).Do(w)
			require.ErrorContains(t, r.Err, c.want, c.why)
			require.Nil(t, r.Object)
		})
	}
}

// TestWritesToAnotherObject shows that no write replaces the object by an object with another name or kind, which a
// server's URL does not allow either.
func TestWritesToAnotherObject(t *testing.T) {
	const settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"
	for _, c := range []struct {
		name string
		w    fieldmanagertest.Write
		want string
	}{
		{"patch of the kind", fieldmanagertest.Patch("ctl", `kind: Secret`), "kind: expected ConfigMap, got Secret"},
		{"update of the kind", fieldmanagertest.Update("ctl", "apiVersion: v1\nkind: Secret\nmetadata: {name: settings}\n"),
			"kind: expected ConfigMap, got Secret"},
		{"update of the group", fieldmanagertest.Update("ctl", "apiVersion: apps/v1\nkind: ConfigMap\n"),
			"kind: expected ConfigMap, got ConfigMap.apps"},
		{"update of an odd version", fieldmanagertest.Update("ctl", "apiVersion: a/b/c\nkind: ConfigMap\n"), "apiVersion: "},
		{"patch of the name", fieldmanagertest.Patch("ctl", `metadata: {name: other}`),
			"metadata.name: expected settings, got other"},
		{"apply of the name", fieldmanagertest.Apply("ctl", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n"),
			"metadata.name: expected settings, got other"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := fieldmanagertest.New(t)
			require.NoError(t, h.Do(fieldmanagertest.Apply("alice", settings+"data: {a: b}\n")).Err)
			before := h.Live()
			r := h.Do(c.w)
			require.ErrorContains(t, r.Err, c.want)
			require.True(t, apierrors.IsBadRequest(r.Err))
			require.Equal(t, before, h.Live())
		})
	}
}

// TestMissingSubresources shows that writes to missing subresources fail.
func TestMissingSubresources(t *testing.T) {
	const settings = "apiVersion: v1\nkind: ConfigMap\n"
	for _, c := range []struct{ name, kind, subresource, body string }{
		{"status of a built-in type", settings, "status", `status: {a: b}`},
		{"scale of a built-in type", settings, "scale", `spec: {replicas: 1}`},
		{"status of a custom resource", "", "status", `status: {a: b}`},
		{"scale of a custom resource", "", "scale", `spec: {replicas: 1}`},
		{"any other", settings, "finalize", `{}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var options []fieldmanagertest.Option
			if c.kind == "" {
				options = append(options, fieldmanagertest.WithSchema(twoFields))
			}
			h := fieldmanagertest.New(t, options...)
			require.NoError(t, h.Do(fieldmanagertest.Update("alice", c.kind)).Err)
			r := h.Do(fieldmanagertest.Patch("ctl", c.body).Through(c.subresource))
			require.True(t, apierrors.IsNotFound(r.Err), "%v", r.Err)
			require.ErrorContains(t, r.Err, "/"+c.subresource)
			require.False(t, r.Changed)
		})
	}
}

// failures is a TB that records messages.
type failures struct{ said []string }

func (f *failures) Helper() {}
func (f *failures) Errorf(format string, args ...any) {
	f.said = append(f.said, fmt.Sprintf(format, args...))
}
func (f *failures) FailNow() {}

// TestRequireOwnerFails shows the message when RequireOwner fails.
func TestRequireOwnerFails(t *testing.T) {
	f := &failures{}
	h := fieldmanagertest.New(f, fieldmanagertest.WithSchema(twoFields))
	h.Do(fieldmanagertest.Apply("alice", `spec: {a: 1}`))
	h.RequireOwner(".spec.a", "bob", "carol")
	require.Equal(t, []string{".spec.a is owned by [alice], want [bob carol]"}, f.said)
}

// TestConverter shows conflicts and removals with a real conversion (spec rules 5.6 and 6.3), and that ownership
// survives a failed conversion (spec rule 10.1).
func TestConverter(t *testing.T) {
	broken := false
	renaming := writetest.Changing(func(from, to string, obj map[string]any) error {
		if broken {
			return errors.New("webhook is down")
		}
		spec, _ := obj["spec"].(map[string]any)
		names := map[string]string{"v1": "a", "v2": "alpha"}
		if v, ok := spec[names[from]]; ok {
			spec = maps.Clone(spec)
			delete(spec, names[from])
			spec[names[to]], obj["spec"] = v, spec
		}
		return nil
	})
	h := fieldmanagertest.New(t,
		fieldmanagertest.WithSchema(
			`spec: {type: object, properties: {a: {type: integer}, alpha: {type: integer}, b: {type: integer}}}`, "v1", "v2"),
		fieldmanagertest.WithConverter(renaming))
	require.NoError(t, h.Do(fieldmanagertest.Apply("alice", `spec: {a: 1, b: 1}`).At("v1")).Err)

	r := h.Do(fieldmanagertest.Apply("bob", `spec: {alpha: 2}`).At("v2"))
	require.Len(t, r.Conflicts, 1)
	require.Equal(t, ".spec.a", r.Conflicts[0].Path.String(), "a conflict is at the owner's version")

	require.NoError(t, h.Do(fieldmanagertest.Apply("alice", `spec: {alpha: 1}`).At("v2")).Err)
	require.Equal(t, map[string]any{"alpha": int64(1)}, h.Live().Object["spec"], "b is removed, a is alpha")

	require.NoError(t, h.Do(fieldmanagertest.Apply("carol", `spec: {b: 3}`).At("v1")).Err)
	broken = true
	r = h.Do(fieldmanagertest.Apply("bob", `spec: {b: 4}`).At("v1").Force())
	require.NoError(t, r.Err)
	require.NotEmpty(t, r.Warnings)
	h.RequireOwner(".spec.alpha", "alice")
	h.RequireOwner(".spec.b", "bob")
}

// TestObjects shows that an object may be a Go struct or YAML.
func TestObjects(t *testing.T) {
	h := fieldmanagertest.New(t)
	obj := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: "settings", Labels: map[string]string{"app": "web"}},
	}
	require.NoError(t, h.Do(fieldmanagertest.Apply("alice", obj)).Err)
	h.RequireOwner(".metadata.labels.app", "alice")
	require.Equal(t, "settings", h.Live().GetName())
}

// TestNumbersOfGo shows that a tree may have numbers of any Go type, as Go literals often have.
func TestNumbersOfGo(t *testing.T) {
	h := fieldmanagertest.New(t, fieldmanagertest.WithSchema(twoFields))
	given := map[string]any{"spec": map[string]any{"a": 1, "b": uint8(2)}}
	require.NoError(t, h.Do(fieldmanagertest.Apply("alice", given)).Err)
	require.Equal(t, map[string]any{"a": int64(1), "b": int64(2)}, h.Live().Object["spec"])
	require.False(t, h.Do(fieldmanagertest.Apply("alice", &unstructured.Unstructured{Object: given})).Changed)
	require.Equal(t, map[string]any{"spec": map[string]any{"a": 1, "b": uint8(2)}}, given)
	r := h.Do(fieldmanagertest.Apply("alice", map[string]any{"spec": map[string]any{"a": math.NaN()}}))
	require.ErrorContains(t, r.Err, "NaN")
}
