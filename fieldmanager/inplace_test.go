package fieldmanager_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/fieldsv1"
	"github.com/tenure-ssa/tenure/internal/writetest"
)

// aside is a widget with a pointer to its metadata, so that a shallow copy shares the metadata.
type aside struct {
	metav1.TypeMeta    `json:",inline"`
	*metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec               widgetSpec `json:"spec"`
}

func (a *aside) DeepCopyObject() runtime.Object {
	out := *a
	out.ObjectMeta = a.ObjectMeta.DeepCopy()
	return &out
}

// TestGoStructsThatFallBack has Go structs that can't be read in place: they are
// read as trees, and what is wrong is said as for trees.
func TestGoStructsThatFallBack(t *testing.T) {
	m := widgetManager(t, "v1", func(o *fieldmanager.Options) { o.Converter = fieldmanager.NoneConverter{} })
	live, err := writetest.Apply(m, nil, newWidget(widgetSpec{Text: "a"}), "alice", false)
	require.NoError(t, err)
	live.(*widget).UID = "uid"
	updated := live.DeepCopyObject().(*widget)
	updated.Spec.Text = "b"

	out, err := writetest.Update(m, asTree(t, live), updated, "ctl")
	require.NoError(t, err, "live and now of other types")
	require.IsType(t, updated, out)
	want := "ctl Update example.dev/v1 {\"f:spec\":{\"f:text\":{}}}\n"
	require.Equal(t, want, owners(t, out))

	// An empty list of managed fields drops all entries (spec rule 2.6), whatever is read in place. A tree of a Go
	// struct would omit the empty list.
	cleared := updated.DeepCopyObject().(*widget)
	cleared.ManagedFields = []metav1.ManagedFieldsEntry{}
	for _, before := range []runtime.Object{live, asTree(t, live)} {
		out, err = writetest.Update(m, before, cleared, "ctl")
		require.NoError(t, err)
		require.Empty(t, owners(t, out))
	}

	meta := updated.ObjectMeta
	behind := func(text string) *aside { return &aside{updated.TypeMeta, meta.DeepCopy(), widgetSpec{Text: text}} }
	given := behind("b")
	out, err = writetest.Update(m, behind("a"), given, "ctl")
	require.NoError(t, err, "metadata that a copy would share")
	require.Equal(t, meta, *given.ObjectMeta, "it is not changed")
	require.Equal(t, want, owners(t, out))
	out, err = writetest.Apply(m, behind("a"), newWidget(widgetSpec{Text: "a"}), "alice", false)
	require.NoError(t, err)
	require.Equal(t, owners(t, live), owners(t, out))
	given = behind("a")
	out, err = writetest.Apply(m, given, newWidget(widgetSpec{Text: "a", Count: new(int64(1))}), "bob", false)
	require.NoError(t, err)
	require.Contains(t, owners(t, out), "bob Apply")
	require.Equal(t, meta, *given.ObjectMeta, "an apply that changes something does not change what it was given")

	later := updated.DeepCopyObject().(*widget)
	later.APIVersion = "example.dev/v2"
	out, err = writetest.Update(m, live, later, "ctl")
	require.NoError(t, err, "another version is converted")
	require.Equal(t, want, owners(t, out))
	out, err = writetest.Apply(m, later, newWidget(widgetSpec{Text: "b"}), "bob", false)
	require.NoError(t, err)
	require.Contains(t, owners(t, out), "bob Apply example.dev/v1")

	bad := updated.DeepCopyObject().(*widget)
	bad.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "x", Operation: "Wrong"}}
	out, err = writetest.Update(m, bad, updated, "ctl")
	require.NoError(t, err, "live's entries can't be read; now's can")
	require.Equal(t, owners(t, live), owners(t, out))
	none := updated.DeepCopyObject().(*widget)
	none.ManagedFields = nil
	out, err = writetest.Update(m, bad, none, "ctl")
	require.NoError(t, err)
	require.Equal(t, bad.ManagedFields[0].Manager, out.(*widget).ManagedFields[0].Manager, "kept as they are")
	require.Contains(
		t,
		m.UpdateNoErrors(t.Context(), bad, none,
			fieldmanager.UpdateOptions{Manager: "ctl"}).(*widget).ManagedFields[0].Manager,
		"x",
	)

	// What is no JSON can't be tracked.
	endless := newWidget(widgetSpec{Ratio: new(inf())})
	_, err = writetest.Update(m, live, endless, "ctl")
	requireRole(t, fieldmanager.NewObject, err)
	_, err = writetest.Apply(m, nil, endless, "alice", false)
	requireRole(t, fieldmanager.AppliedObject, err)
	_, err = writetest.Apply(m, endless, newWidget(widgetSpec{}), "alice", false)
	requireRole(t, fieldmanager.LiveObject, err)
	require.Same(t, endless, m.UpdateNoErrors(t.Context(), nil, endless, fieldmanager.UpdateOptions{Manager: "ctl"}))
	endless.UID = "uid"
	_, err = writetest.Update(m, endless, updated, "ctl")
	require.NoError(t, err, "what was there before is not the writer's fault")

	_, err = writetest.Apply(m, nil, (*widget)(nil), "alice", false)
	require.ErrorContains(t, err, "expected an object, got a nil *writetest.Widget")
}

func inf() float64 { x := 0.0; return 1 / x }

// TestEmptyObject: the creator of an object does not own the fields that the object has before it is created.
func TestEmptyObject(t *testing.T) {
	empty := newWidget(widgetSpec{Text: "zero"})
	m := widgetManager(t, "v1", func(o *fieldmanager.Options) { o.Empty = empty })
	for _, row := range []struct {
		name, why string
		now       runtime.Object
		want      string
	}{
		{"go struct", "", newWidget(widgetSpec{Text: "zero", Count: new(int64(1))}), `{"f:spec":{"f:count":{}}}`},
		{"tree", "", asTree(t, newWidget(widgetSpec{Text: "zero", Count: new(int64(1))})), `{"f:spec":{"f:count":{}}}`},
		{"changed", "what the zero value had and is another now is owned", newWidget(widgetSpec{Text: "one"}),
			`{"f:spec":{"f:text":{}}}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			out, err := writetest.Update(m, nil, row.now, "ctl")
			require.NoError(t, err)
			require.Equal(t, "ctl Update example.dev/v1 "+row.want+"\n", owners(t, out), row.why)
		})
	}
	out, err := writetest.Apply(m, nil, newWidget(widgetSpec{Count: new(int64(2))}), "alice", false)
	require.NoError(t, err)
	require.Equal(t, "zero", out.(*widget).Spec.Text, "an intent is merged into it")
	require.Equal(t, "zero", empty.Spec.Text)

	later := newWidget(widgetSpec{})
	later.APIVersion = "example.dev/v2"
	broken := widgetManager(t, "v1", func(o *fieldmanager.Options) { o.Empty = later }) // and there is no converter
	_, err = writetest.Apply(broken, nil, newWidget(widgetSpec{}), "alice", false)
	require.Error(t, err)
	live := newWidget(widgetSpec{Text: "a"})
	_, err = writetest.Apply(broken, live, newWidget(widgetSpec{}), "alice", false)
	require.ErrorContains(t, err, "empty object: ")
	_, err = writetest.Update(broken, nil, newWidget(widgetSpec{}), "ctl")
	require.ErrorContains(t, err, "live object: ")
}

// unreadable is a Go struct with a field that can't be written as JSON.
type unreadable struct {
	widget `json:",inline"`
	Signal chan int `json:"signal"`
}

func (u *unreadable) DeepCopyObject() runtime.Object {
	return &unreadable{widget: *u.widget.DeepCopyObject().(*widget)}
}

// TestUnreadableStructs: an object whose Go type can't be written as JSON is at fault in each role.
func TestUnreadableStructs(t *testing.T) {
	m := widgetManager(t, "v1")
	bad, good := &unreadable{widget: *newWidget(widgetSpec{})}, newWidget(widgetSpec{Text: "a"})
	for role, write := range map[fieldmanager.Role]func() error{
		fieldmanager.AppliedObject: func() error { _, err := writetest.Apply(m, nil, bad, "a", false); return err },
		fieldmanager.LiveObject:    func() error { _, err := writetest.Apply(m, bad, good, "a", false); return err },
		fieldmanager.NewObject:     func() error { _, err := writetest.Update(m, good, bad, "a"); return err },
	} {
		err := write()
		requireRole(t, role, err)
		require.ErrorContains(t, err, "chan int")
	}
	_, err := writetest.Update(m, bad, good, "a")
	requireRole(t, fieldmanager.LiveObject, err)
	require.Equal(
		t,
		bad,
		m.UpdateNoErrors(t.Context(), good, bad, fieldmanager.UpdateOptions{Manager: "a"}),
		"it is stored as it is",
	)
	require.Equal(t, good, m.UpdateNoErrors(t.Context(), bad, good, fieldmanager.UpdateOptions{Manager: "a"}))
	_, err = fieldmanager.NoneConverter{}.Convert(t.Context(), bad, widgetKind.GroupVersion())
	require.ErrorContains(t, err, "chan int")
}

// TestEntriesOfGoStructs shows which entries keep their bytes and which are encoded again: live's keep their bytes,
// even in non-canonical form; a client's do not.
func TestEntriesOfGoStructs(t *testing.T) {
	const odd, plain = ` { "f:spec" : {"f:text":{} } }`, `{"f:spec":{"f:text":{}}}`
	entry := func(fields string) []metav1.ManagedFieldsEntry {
		out := metav1.ManagedFieldsEntry{
			Manager:    "alice",
			Operation:  metav1.ManagedFieldsOperationApply,
			APIVersion: "example.dev/v1",
			FieldsType: "FieldsV1",
		}
		if fields != "" {
			out.FieldsV1 = fieldsv1.New(fields)
		}
		return []metav1.ManagedFieldsEntry{out}
	}
	twice := append(entry(`{"f:spec":{"f:count":{}}}`), entry(plain)...)
	const mallory = `{"f:spec":{"f:args":{}}}`
	for _, row := range []struct {
		name, why   string
		live, now   []metav1.ManagedFieldsEntry
		subresource string
		want        string
	}{
		{"live's, sent back", "", entry(odd), entry(odd), "", odd},
		{"live's, not sent", "", entry(odd), nil, "", odd},
		{"written otherwise", "", entry(plain), entry(odd), "", plain},
		{"more than live's", "", nil, entry(odd), "", plain},
		{"of nothing", "an entry without fields is dropped", entry(plain), entry(""), "", ""},
		{"where there was nothing", "", entry(""), entry(odd), "", plain},
		{"one that stands twice", "the later one counts", twice, nil, "", plain},
		{"two empty entries", "they are malformed", entry(plain), make([]metav1.ManagedFieldsEntry, 2), "", plain},
		{"an empty time", "it makes an entry", entry(plain), []metav1.ManagedFieldsEntry{{Time: &metav1.Time{}}}, "", plain},
		{"reset", "", entry(plain), []metav1.ManagedFieldsEntry{{}}, "", ""},
		{"through a subresource", "only live's count", entry(plain), entry(mallory), "status", plain},
		{"reset, through a subresource", "", entry(plain), []metav1.ManagedFieldsEntry{{}}, "status", plain},
	} {
		t.Run(row.name, func(t *testing.T) {
			live, updated := newWidget(widgetSpec{Text: "a"}), newWidget(widgetSpec{Text: "a"})
			live.UID, updated.UID = "uid", "uid"
			live.ManagedFields, updated.ManagedFields = row.live, row.now
			out, err := writetest.Update(
				widgetManager(t, "v1", func(o *fieldmanager.Options) { o.Subresource = row.subresource }),
				live,
				updated,
				"ctl",
			)
			require.NoError(t, err)
			want := ""
			if row.want != "" {
				want = "alice Apply example.dev/v1 " + row.want + "\n"
			}
			require.Equal(t, want, owners(t, out), row.why)
		})
	}
}

// TestGoStructsOfOtherVersions: a converter gets and returns complete objects, even if they could be compared in place.
func TestGoStructsOfOtherVersions(t *testing.T) {
	whole := func(o *fieldmanager.Options) {
		o.Converter = convert(func(obj runtime.Object, to schema.GroupVersion) (runtime.Object, error) {
			out, err := plainly(obj, to)
			if err != nil {
				return nil, err
			}
			spec := contents(out)["spec"].(map[string]any)
			if spec["count"] == nil {
				return nil, errWebhook
			}
			if obj.GetObjectKind().GroupVersionKind().Version == "v2" && to.Version == "v1" {
				contents(out)["spec"] = map[string]any{"count": spec["count"], "text": "a"}
			}
			return out, nil
		})
	}
	m := widgetManager(t, "v1", whole)
	live, updated := newWidget(
		widgetSpec{Text: "a", Count: new(int64(1))},
	), newWidget(
		widgetSpec{Text: "b", Count: new(int64(1))},
	)
	live.UID, updated.UID = "uid", "uid"
	live.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "alice", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "example.dev/v2",
			FieldsType: "FieldsV1", FieldsV1: fieldsv1.New(`{"f:spec":{"f:text":{}}}`)},
	}
	out, err := writetest.Update(m, live, updated, "ctl")
	require.NoError(t, err)
	require.Equal(
		t,
		"ctl Update example.dev/v1 {\"f:spec\":{\"f:text\":{}}}\n",
		owners(t, out),
		"alice's is compared at v2, where the whole object is needed",
	)

	updated.APIVersion = "example.dev/v2"
	live.ManagedFields[0].APIVersion = "example.dev/v1"
	out, err = writetest.Update(m, live, updated, "ctl")
	require.NoError(t, err)
	require.Equal(t, owners(t, live), owners(t, out), "what v2 calls b is a at v1, so that nothing changes")
}

// TestStructsThatAreNoObjects: a struct without object metadata, or that can't be written as JSON, is rejected.
func TestStructsThatAreNoObjects(t *testing.T) {
	fm := anyManager(t, "v1")
	status := &metav1.Status{Message: "m"}
	status.SetGroupVersionKind(anyKind)
	_, err := writetest.Apply(fm, status, anyAt(t, "v1", "reason: r"), "alice", false)
	require.ErrorContains(t, err, "does not implement the Object interfaces")

	m := widgetManager(t, "v1")
	live, updated := &counted{
		Widget: *newWidget(widgetSpec{Text: "a"}),
	}, &counted{
		Widget: *newWidget(widgetSpec{Text: "b"}),
		Large:  math.MaxUint64,
	}
	_, err = writetest.Update(m, live, updated, "ctl")
	requireRole(t, fieldmanager.NewObject, err)
}
