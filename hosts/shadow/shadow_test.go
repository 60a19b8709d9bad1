package shadow

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	upstream "k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/compat/apimachinery"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/oracle"
)

var kind = schema.GroupVersionKind{Group: "shop.example", Version: "v1", Kind: "Widget"}

// host is what a server gives to field managers.
type host struct{ oracle.AsItIs }

func (host) ConvertToVersion(obj runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	if from := obj.GetObjectKind().GroupVersionKind(); from.GroupVersion() != kind.GroupVersion() {
		return nil, fmt.Errorf("no kind %q is registered for version %q", from.Kind, from.GroupVersion())
	}
	return obj, nil
}

// widgetSchema is the schema of the kind Widget, which has a field of each topology.
const widgetSchema = `
type: object
x-kubernetes-group-version-kind:
- {group: shop.example, version: v1, kind: Widget}
- {group: shop.example, version: v2, kind: Widget}
properties:
  apiVersion: {type: string}
  kind: {type: string}
  metadata:
    type: object
    properties:
      name: {type: string}
      namespace: {type: string}
      uid: {type: string}
      resourceVersion: {type: string}
      creationTimestamp: {type: string}
      labels: {type: object, additionalProperties: {type: string}}
      managedFields: {type: array, x-kubernetes-list-type: atomic, items: {type: object, additionalProperties: {}}}
  spec:
    type: object
    properties:
      text: {type: string}
      count: {type: integer}
      labels: {type: object, additionalProperties: {type: string}}
      items:
        type: array
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [name]
        items: {type: object, properties: {name: {type: string}, value: {type: integer}}}
      ports:
        type: array
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [protocol]
        items: {type: object, properties: {protocol: {type: string, default: TCP}, name: {type: string}}}
      tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
      args: {type: array, x-kubernetes-list-type: atomic, items: {type: string}}
`

func types(t *testing.T) upstream.TypeConverter {
	root := &spec.Schema{}
	require.NoError(t, yaml.Unmarshal([]byte(widgetSchema), root))
	converter, err := upstream.NewTypeConverter(map[string]*spec.Schema{"widget": root}, false)
	require.NoError(t, err)
	return converter
}

// server has a Recorder, a recorded Writer, and upstream's Writer.
type server struct {
	recorder        *Recorder
	writer, without Writer
	folder          string
	fault           func(*write) // changes the record of a write, never the result; may be nil
}

func newServer(t *testing.T, o Options) *server { return newServerOf(t, o, host{}) }

func newServerOf(t *testing.T, o Options, objects runtime.ObjectConvertor) *server {
	o.Folder = t.TempDir()
	recorder, err := New(o)
	require.NoError(t, err)
	converter := types(t)
	theirs, err := upstream.NewDefaultCRDFieldManager(
		converter,
		objects,
		host{},
		host{},
		kind,
		kind.GroupVersion(),
		"",
		nil,
	)
	require.NoError(t, err)
	writer, err := recorder.Wrap(theirs, func(options ...func(*fieldmanager.Options)) (Writer, error) {
		return apimachinery.NewDefaultCRDFieldManager(converter, objects, host{}, host{}, kind, kind.GroupVersion(), "",
			map[fieldpath.APIVersion]fieldpath.Filter{}, options...)
	}, Kind{Kind: kind, Hub: kind.GroupVersion(), Custom: true, Converter: objects, Types: converter})
	require.NoError(t, err)
	differences.Reset()
	writes.Reset()
	return &server{recorder, writer, theirs, o.Folder, nil}
}

// drain compares all writes in the queue.
func (s *server) drain() {
	for len(s.recorder.queue) > 0 {
		w := <-s.recorder.queue
		if s.fault != nil {
			s.fault(w)
		}
		s.recorder.compare(w)
	}
}

// loseField removes the first leaf from the first entry of upstream's managed fields.
func loseField(w *write) {
	if w.err != nil {
		return
	}
	entries := entriesOf(w.result.(*unstructured.Unstructured).Object)
	if len(entries) == 0 {
		return
	}
	entry, _ := entries[0].(map[string]any)
	fields, _ := entry["fieldsV1"].(map[string]any)
	loseLeaf(fields)
}

func loseLeaf(fields map[string]any) bool {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if name == "." {
			continue
		}
		below, _ := fields[name].(map[string]any)
		if len(below) == 0 {
			delete(fields, name)
			return true
		}
		if loseLeaf(below) {
			return true
		}
	}
	return false
}

// loseConflict replaces a conflict by a success without changes.
func loseConflict(w *write) {
	if apierrors.IsConflict(w.err) {
		w.err, w.result = nil, w.live
	}
}

func (s *server) traces(t *testing.T) []string {
	names, err := filepath.Glob(filepath.Join(s.folder, "*.json"))
	require.NoError(t, err)
	return names
}

func widget(t *testing.T, text string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	require.NoError(
		t,
		yaml.Unmarshal(
			[]byte("apiVersion: shop.example/v1\nkind: Widget\nmetadata: {name: w, namespace: shop}\n"+text),
			&u.Object,
		),
	)
	return u
}

// stored returns an object as it is read from storage.
func stored(obj runtime.Object) *unstructured.Unstructured {
	u := obj.DeepCopyObject().(*unstructured.Unstructured)
	u.SetUID("1234")
	u.SetResourceVersion("7")
	return u
}

func empty() runtime.Object {
	u, _ := host{}.New(kind)
	return u
}

// play sends typical writes to an object: creates, applies, updates, a conflict. It returns the number of writes.
func (s *server) play(t *testing.T) int {
	live, err := s.writer.Apply(
		empty(),
		widget(t, "spec: {text: a, count: 3, labels: {x: one}, items: [{name: i, value: 1}], tags: [t], args: [z]}"),
		"one",
		false,
	)
	require.NoError(t, err)
	live = stored(live)
	_, err = s.writer.Apply(live, widget(t, "spec: {text: b}"), "two", false)
	require.ErrorContains(t, err, "conflict")
	out, err := s.writer.Apply(live, widget(t, "spec: {text: b, items: [{name: j}]}"), "two", true)
	require.NoError(t, err)
	live = stored(out)
	out, err = s.writer.Apply(live, widget(t, "spec: {text: b, items: [{name: j}]}"), "two", true) // a no-op
	require.NoError(t, err)
	live = stored(out)
	updated := stored(live)
	require.NoError(t, unstructured.SetNestedField(updated.Object, int64(4), "spec", "count"))
	out, err = s.writer.Update(live, updated, "three")
	require.NoError(t, err)
	live = stored(out)
	updated = stored(live)
	unstructured.RemoveNestedField(updated.Object, "spec", "items")
	live = stored(s.writer.UpdateNoErrors(live, updated, "four"))
	_, err = s.writer.Apply(live, widget(t, "spec: {count: 5}"), "one", true) // drops fields
	require.NoError(t, err)
	_, err = s.writer.Update(empty(), widget(t, "spec: {text: a}"), "creator")
	require.NoError(t, err)
	other := widget(t, "spec: {text: a}")
	other.SetAPIVersion("shop.example/v0") // a version that does not exist
	_, err = s.writer.Apply(live, other, "one", false)
	require.ErrorContains(t, err, "invalid object type")
	return 9
}

func compares(t *testing.T) float64 {
	n, err := testutil.GetCounterMetricValue(writes.WithLabelValues(string(compared)))
	require.NoError(t, err)
	return n
}

func count(t *testing.T, number string, op operation, of aspect) float64 {
	n, err := testutil.GetCounterMetricValue(differences.WithLabelValues(number, string(op), string(of)))
	require.NoError(t, err)
	return n
}

func TestAgreement(t *testing.T) {
	s := newServer(t, Options{Rate: 1, Queue: 100, Traces: 100})
	n := s.play(t)
	s.drain()
	require.Equal(t, float64(n), compares(t))
	require.Empty(t, s.traces(t))
}

// TestItemOfDefaults: upstream removes a list item that is applied again, if all key fields of the item have default
// values, so that nobody owns a field of the item (doc/differences.md, 15).
func TestItemOfDefaults(t *testing.T) {
	for _, row := range []struct {
		name, first, again string
		before             []string // the managers of the first applies; the last of them applies again
		entries            float64
	}{
		{"alone", "{text: a, ports: [{}]}", "{text: a, ports: [{}]}", []string{"one"}, 0},
		{"while a field is dropped", "{text: a, count: 3, ports: [{}]}", "{text: a, ports: [{}]}", []string{"one"}, 0},
		{"beside another item", "{ports: [{}, {protocol: UDP}]}", "{ports: [{}, {protocol: UDP}]}", []string{"one"}, 0},
		{"of two managers", "{text: a, ports: [{}]}", "{ports: [{}]}", []string{"one", "two"}, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newServer(t, Options{Rate: 1, Queue: 100, Traces: 100})
			live, manager := empty(), ""
			for _, manager = range row.before {
				out, err := s.writer.Apply(live, widget(t, "spec: "+row.first), manager, false)
				require.NoError(t, err)
				u := stored(out)
				ports, _, err := unstructured.NestedSlice(u.Object, "spec", "ports")
				require.NoError(t, err)
				ports[0].(map[string]any)["protocol"] = "TCP" // the default, as a server stores it
				require.NoError(t, unstructured.SetNestedSlice(u.Object, ports, "spec", "ports"))
				live = u
			}
			_, err := s.writer.Apply(live, widget(t, "spec: "+row.again), manager, false)
			require.NoError(t, err)
			s.drain()
			require.Zero(t, count(t, unexplained, apply, ofObject))
			require.Equal(t, 1.0, count(t, "15", apply, ofObject))
			require.Equal(t, row.entries, count(t, "15", apply, ofManagedFields))
		})
	}
}

// TestNotAnItemOfDefaults: differences that only look like the known difference are unexplained.
func TestNotAnItemOfDefaults(t *testing.T) {
	object := func(text string) map[string]any { return widget(t, "spec: {ports: "+text+"}").Object }
	for _, row := range []struct{ name, live, intent, upstream, tenure string }{
		{"the intent has a field of it", "[{protocol: TCP, name: x}]", "[{protocol: TCP}]", "null",
			"[{protocol: TCP, name: x}]"},
		{"it is new", "[]", "[{}]", "[]", "[{protocol: TCP}]"},
		{"two are missing", "[{protocol: TCP}, {protocol: UDP}]", "[{}]", "null", "[{protocol: TCP}, {protocol: UDP}]"},
		{"another one differs", "[{protocol: TCP}, {protocol: UDP}]", "[{}]", "[{protocol: UDP, name: x}]",
			"[{protocol: TCP}, {protocol: UDP}]"},
		{"upstream has no list", "[{protocol: TCP}]", "[{}]", "text", "[{protocol: TCP}]"},
	} {
		t.Run(row.name, func(t *testing.T) {
			a := &answers{
				live: object(row.live), obj: object(row.intent), upstream: object(row.upstream), tenure: object(row.tenure),
			}
			w := &write{operation: apply, manager: "one"}
			require.Equal(t, unexplained, a.numberOfObject(w, differingPaths(a.upstream, a.tenure)))
		})
	}
}

// replay runs `cmd/replay` on paths. It returns the output, and whether all results agreed.
func replay(t *testing.T, paths ...string) (string, bool) {
	cmd := exec.Command("go", append([]string{"run", "github.com/tenure-ssa/tenure/cmd/replay"}, paths...)...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	require.Contains(t, string(out), "agreed", "it must have run")
	return string(out), err == nil
}

// TestFaultIsFound adds a fault to the record of upstream's results. The fault must be counted, and each of its
// traces must fail in a replay.
func TestFaultIsFound(t *testing.T) {
	s := newServer(t, Options{Rate: 1, Queue: 100, Traces: 100})
	s.fault = loseField
	s.play(t)
	s.drain()
	require.Equal(t, 4.0, count(t, unexplained, apply, ofManagedFields))
	require.Equal(t, 2.0, count(t, unexplained, update, ofManagedFields))
	require.Equal(t, 1.0, count(t, unexplained, updateNoErrors, ofManagedFields))
	require.Len(t, s.traces(t), 7)
	out, agreed := replay(t, s.folder)
	require.False(t, agreed)
	require.Contains(t, out, " 7 differed", out)

	s = newServer(t, Options{Rate: 1, Queue: 100, Traces: 100})
	s.fault = loseConflict
	s.play(t)
	s.drain()
	require.Equal(t, 1.0, count(t, unexplained, apply, ofError))
	out, agreed = replay(t, s.folder)
	require.False(t, agreed, out)
}

// TestTraces: replays of traces of writes without a fault agree.
func TestTraces(t *testing.T) {
	s := newServer(t, Options{Rate: 1, Queue: 100, Traces: 100})
	n := s.play(t)
	steps := n
	for range n {
		w := <-s.recorder.queue
		a, err := s.recorder.answer(w)
		require.NoError(t, err)
		if a.live != nil {
			steps++ // the read that shows the live object
		}
		path, err := s.recorder.writeTrace(w, a, nil)
		require.NoError(t, err)
		require.FileExists(t, path)
	}
	out, agreed := replay(t, s.folder)
	require.True(t, agreed, out)
	require.Contains(t, out, fmt.Sprintf("%d steps: %d agreed,", steps, steps), out)
}

// TestAnswersAreUpstreams: a recorded Writer returns the same results as upstream's.
func TestAnswersAreUpstreams(t *testing.T) {
	s := newServer(t, Options{Rate: 1, Queue: 100, Traces: 0})
	live := stored(widget(t, "spec: {text: a}"))
	updated := stored(widget(t, "spec: {text: b}"))
	out, err := s.writer.Update(live, updated, "m")
	require.NoError(t, err)
	require.Same(t, updated, out, "upstream updates in place")
	want, err := s.without.Update(live, stored(widget(t, "spec: {text: b}")), "m")
	require.NoError(t, err)
	require.Equal(t, len(want.(*unstructured.Unstructured).GetManagedFields()), len(updated.GetManagedFields()))
	_, err = s.writer.Apply(live, &unstructured.Unstructured{Object: map[string]any{"a": make(chan int)}}, "m", false)
	_, wantErr := s.without.Apply(
		live,
		&unstructured.Unstructured{Object: map[string]any{"a": make(chan int)}},
		"m",
		false,
	)
	require.Equal(t, wantErr.Error(), err.Error(), "what can't be copied is answered all the same")
}

// TestQueueDrops: a full queue does not block requests.
func TestQueueDrops(t *testing.T) {
	s := newServer(t, Options{Rate: 1, Queue: 2, Traces: 0}) // no goroutine empties the queue
	n := s.play(t)
	got, err := testutil.GetCounterMetricValue(writes.WithLabelValues(string(dropped)))
	require.NoError(t, err)
	require.Equal(t, float64(n-2), got)
}

func TestRate(t *testing.T) {
	s := newServer(t, Options{Rate: 0.25, Queue: 100, Traces: 0})
	sample := 0.0
	s.recorder.sample = func() float64 { sample += 0.1; return sample }
	s.play(t)
	require.Len(t, s.recorder.queue, 2, "0.1 and 0.2 of 0.1, 0.2, 0.3 …")
}

func TestTracesAreBounded(t *testing.T) {
	s := newServer(t, Options{Rate: 1, Queue: 100, Traces: 2})
	s.fault = loseField
	s.play(t)
	s.drain()
	require.Len(t, s.traces(t), 2)
}

// TestNumbers: known differences get their number.
func TestNumbers(t *testing.T) {
	undeclared := func(live *unstructured.Unstructured) {
		require.NoError(t, unstructured.SetNestedField(live.Object, "x", "spec", "undeclared"))
	}
	twice := func(live *unstructured.Unstructured) {
		require.NoError(t, unstructured.SetNestedSlice(live.Object, []any{"t", "t"}, "spec", "tags"))
	}
	broken := func(live *unstructured.Unstructured) {
		require.NoError(t, unstructured.SetNestedSlice(live.Object, []any{
			map[string]any{
				"manager":    "x",
				"operation":  "Update",
				"apiVersion": "shop.example/v1",
				"fieldsType": "FieldsV1",
				"fieldsV1":   map[string]any{"bad": map[string]any{}},
			},
		}, "metadata", "managedFields"))
	}
	wrong := func(live *unstructured.Unstructured) {
		require.NoError(t, unstructured.SetNestedField(live.Object, "three", "spec", "count"))
	}
	for number, test := range map[string]struct {
		first, second string // intents of one manager
		alter         func(live *unstructured.Unstructured)
	}{
		"1":  {"spec: {text: a, labels: {x: one}}", "spec: {text: a, labels: {}}", nil},
		"4":  {"spec: {text: a}", "spec: {text: b}", undeclared},
		"5":  {"spec: {text: a}", "spec: {text: b}", broken},
		"19": {"spec: {text: a}", "spec: {text: b}", wrong},
	} {
		t.Run(number, func(t *testing.T) {
			s := newServer(t, Options{Rate: 1, Queue: 100, Traces: 10})
			out, err := s.writer.Apply(empty(), widget(t, test.first), "m", false)
			require.NoError(t, err)
			live := stored(out)
			if test.alter != nil {
				test.alter(live)
			}
			_, _ = s.writer.Apply(live, widget(t, test.second), "m", false)
			s.drain()
			require.Equal(t, 2.0, compares(t))
			require.Len(t, s.traces(t), 1)
			text, err := os.ReadFile(s.traces(t)[0])
			require.NoError(t, err)
			require.Contains(t, string(text), `"about": "`+number+" of ", "%s", text)
			require.Equal(t, 1.0, count(t, number, apply, ofObject)+count(t, number, apply, ofError))
		})
	}
	t.Run("3", func(t *testing.T) {
		s := newServer(t, Options{Rate: 1, Queue: 100, Traces: 10})
		live := stored(widget(t, "spec: {text: a}"))
		twice(live)
		_, err := s.writer.Apply(live, widget(t, "spec: {text: b}"), "m", false)
		s.drain()
		if err == nil {
			require.Empty(t, s.traces(t), "upstream takes it as well")
		}
	})
}

// lossy converts to another version and omits empty fields, as some Go structs do.
type lossy struct{ host }

func (lossy) ConvertToVersion(obj runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
	from := obj.GetObjectKind().GroupVersionKind()
	gvk, _ := to.KindForGroupVersionKinds([]schema.GroupVersionKind{from})
	if gvk == from {
		return obj, nil
	}
	u := obj.DeepCopyObject().(*unstructured.Unstructured)
	u.SetGroupVersionKind(gvk)
	fields, _ := u.Object["spec"].(map[string]any)
	for name, v := range fields {
		if v == nil || isEmptyContainer(v) {
			delete(fields, name)
		}
	}
	return u, nil
}

// TestLostByConversion: a difference gets the number 25 only if upstream loses fields of an intent by a conversion to
// the version of an entry.
func TestLostByConversion(t *testing.T) {
	entry := func(manager, version, fields string) string {
		return fmt.Sprintf("{manager: %s, operation: Apply, apiVersion: shop.example/%s, fieldsType: FieldsV1, "+
			"time: 2026-01-01T00:00:00Z, fieldsV1: {f:spec: {%s: {}}}}", manager, version, fields)
	}
	for _, row := range []struct {
		name, bob, applied, number string
	}{
		{"an empty list", "v2", "{args: []}", "25"},
		{"a null", "v2", "{args: null}", "25"},
		{"at one version", "v1", "{args: []}", ""},
		{"a value that is kept", "v2", "{args: ['1']}", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newServerOf(t, Options{Rate: 1, Queue: 100, Traces: 10}, lossy{})
			live := widget(t, "spec: {args: ['0'], tags: [x]}")
			var entries []any
			for _, text := range []string{entry("carol", "v1", "f:args"), entry("bob", row.bob, `f:tags: {}, "f:x"`)} {
				var e map[string]any
				require.NoError(t, yaml.Unmarshal([]byte(text), &e))
				entries = append(entries, e)
			}
			live.Object["metadata"].(map[string]any)["managedFields"] = entries
			_, _ = s.writer.Apply(stored(live), widget(t, "spec: "+row.applied), "bob", false)
			s.drain()
			for _, number := range []string{"25", unexplained} {
				want := 0.0
				if number == row.number {
					want = 1
				}
				require.Equal(t, want, count(t, number, apply, ofError), number)
			}
		})
	}
}

// TestTwoErrors: if upstream fails with another error and Tenure finds a conflict, the difference gets the number of
// upstream's error.
func TestTwoErrors(t *testing.T) {
	scale := errors.New("request to convert CR to an invalid group/version: autoscaling/v1")
	conflict := apierrors.NewConflict(schema.GroupResource{}, "a", errors.New("b"))
	for _, row := range []struct {
		upstream, tenure error
		number           string
	}{
		{scale, conflict, "28"},
		{errors.New("another"), conflict, unexplained},
	} {
		out := (&answers{upstreamErr: row.upstream, tenureErr: row.tenure}).differences(nil)
		require.Len(t, out, 1)
		require.Equal(t, row.number, out[0].number, "%v", row.upstream)
	}
}

// TestClock: Tenure computes with the time of upstream's write.
func TestClock(t *testing.T) {
	second := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	when := second.Add(999 * time.Millisecond)
	for name, test := range map[string]struct {
		entries []time.Duration // times of entries, relative to second
		took    time.Duration
		want    time.Time
	}{
		"the write's entry":                  {[]time.Duration{0}, time.Millisecond, second},
		"a write that changed no entry":      {[]time.Duration{-time.Hour}, time.Millisecond, when},
		"live was written a moment before":   {[]time.Duration{0, time.Second}, time.Second, second.Add(time.Second)},
		"in whatever order":                  {[]time.Duration{time.Second, 0}, time.Second, second.Add(time.Second)},
		"a server whose clock is ahead":      {[]time.Duration{time.Hour, 0}, time.Millisecond, second},
		"a server whose clock is far behind": {[]time.Duration{0, -time.Hour}, time.Millisecond, second},
	} {
		t.Run(name, func(t *testing.T) {
			result := widget(t, "spec: {text: a}")
			var entries []metav1.ManagedFieldsEntry
			for i, after := range test.entries {
				entries = append(
					entries,
					metav1.ManagedFieldsEntry{Manager: fmt.Sprint(i), Time: &metav1.Time{Time: second.Add(after)}},
				)
			}
			result.SetManagedFields(entries)
			w := &write{result: result, at: when, ended: when.Add(test.took)}
			require.True(t, test.want.Equal(w.clock()), "%s", w.clock())
		})
	}
}

func TestOptions(t *testing.T) {
	env := map[string]string{}
	lookup := func(name string) string { return env[name] }
	o, err := OptionsFrom(lookup)
	require.NoError(t, err)
	require.Equal(t, 0.01, o.Rate)
	require.Empty(t, o.Folder)
	require.False(t, o.Secrets)
	env = map[string]string{
		RateVariable:    "1",
		QueueVariable:   "5",
		FolderVariable:  "/x",
		TracesVariable:  "0",
		SecretsVariable: "true",
	}
	o, err = OptionsFrom(lookup)
	require.NoError(t, err)
	require.Equal(t, Options{Rate: 1, Queue: 5, Folder: "/x", Secrets: true}, o)
	env = map[string]string{RateVariable: "NaN", QueueVariable: "-1"}
	_, err = OptionsFrom(lookup)
	require.ErrorContains(t, err, RateVariable)
	require.ErrorContains(t, err, QueueVariable)
}

// TestSecretsAreLeftOut: traces are written to a folder that no other user can read. They contain no Secrets unless the
// options allow it.
func TestSecretsAreLeftOut(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for _, asked := range []bool{false, true} {
		r, err := New(Options{Traces: 1, Secrets: asked})
		require.NoError(t, err)
		info, err := os.Stat(r.options.Folder)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
		secret := Kind{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}}
		obj := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "s"}}}
		w := &write{of: &recorded{recorder: r, kind: secret}, operation: apply, obj: obj, live: obj, result: obj}
		a := &answers{live: obj.Object, obj: obj.Object, upstream: obj.Object}
		r.log(w, a, []difference{{ofError, unexplained, "x"}})
		entries, err := os.ReadDir(r.options.Folder)
		require.NoError(t, err)
		require.Equal(t, asked, len(entries) == 1)
	}
}
