package conformance

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/tenure-ssa/tenure/apiserver/recorded"
)

// key is the key of an entry of managed fields (spec rule 2.1). Version is "" for an Apply entry.
type key struct{ Manager, Operation, Version, Subresource string }

// owner is an entry of managed fields.
type owner struct {
	metav1.ManagedFieldsEntry
	fields *fieldpath.Set
}

// state is the state of a trace's replay.
type state struct {
	r *recorded.Replayer
	// isBuiltin is true for built-in kinds. For these, only the metadata is compared, and the fields in state.ever,
	// which are the fields that some entry in the trace has owned.
	isBuiltin bool
	ever      *fieldpath.Set
	managers  map[string]bool // the managers in the trace

	stored map[string]any // the current recorded object
	// updated is the latest time that the server has set in an entry. second is the recorded time of the last step at
	// which the clock advanced, and before is the value that updated had before this step.
	updated, before time.Time
	second          string
	// asked is the last write. redefined is true if the schema has changed.
	asked     *recorded.Step
	redefined bool
	// corrected is true if an apply stored an empty map or list where null was recorded, or the other way round
	// (recorded.NullFault).
	corrected bool
}

// newState returns the state before the first step of a trace.
func newState(r *recorded.Replayer, trace *recorded.Trace) *state {
	s := &state{r: r, isBuiltin: trace.CRD == nil, ever: fieldpath.NewSet(), managers: map[string]bool{}}
	for i := range trace.Steps {
		for k, o := range owners(trace.Steps[i].Response.Body) {
			s.managers[k.Manager] = true
			s.ever = s.ever.Union(o.fields)
		}
	}
	return s
}

// write is a step of a trace with its response. If the step is a read, the fields describe the write before the read.
type write struct {
	*state
	step         *recorded.Step
	live         map[string]any // the recorded object before the write
	failed       bool           // the step is a read after a failed write
	apply        bool
	carries      bool // the request has managed fields that differ from the object's
	isClientSide bool // kubectl applies without force to a client-side applied object
	isUntracked  bool // the object had no managed fields
	dryRun       bool
	manager      string
	subresource  string
	body         map[string]any
	got, want    map[string]any
	gotCode      int
}

// lastApplied is the path of the last-applied annotation of client-side apply.
var lastApplied = fieldpath.MakePathOrDie("metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")

// newWrite reads a step and its response.
func (s *state) newWrite(step *recorded.Step, answer *recorded.Answer) *write {
	isRead := step.Request.Method == http.MethodGet
	if !isRead || s.asked == nil {
		s.asked = step
	}
	asked := s.asked.Request
	query, _ := url.ParseQuery(asked.Query)
	w := &write{
		state: s, step: step, live: s.stored, apply: asked.ContentType == string(types.ApplyPatchType),
		failed:  isRead && s.asked.Response.Code >= http.StatusMultipleChoices,
		manager: query.Get("fieldManager"), dryRun: query.Has("dryRun"), want: step.Response.Body, gotCode: answer.Code,
	}
	if w.manager == "" {
		w.manager, _, _ = strings.Cut(cmp.Or(asked.UserAgent, "recorder/v1"), "/")
	}
	target, _ := asked.Target() // no subresource on errors
	w.subresource = target.Subresource
	w.body, _ = asked.Body.(map[string]any)
	before := owners(s.stored)
	w.carries = strings.Contains(short(asked.Body), "managedFields") &&
		!maps.EqualFunc(owners(w.body), before, func(x, y owner) bool { return x.fields.Equals(y.fields) })
	w.isUntracked = s.stored != nil && len(before) == 0
	_, isAnnotated := lookup(s.stored, lastApplied)
	w.isClientSide = isAnnotated && w.manager == "kubectl" && query.Get("force") != "true"
	_ = utiljson.Unmarshal(answer.Body, &w.got) // if it is not JSON, got stays nil and differs
	return w
}

// isOf reports whether an entry is the entry of the write's manager.
func (w *write) isOf(k key) bool {
	return k.Manager == w.manager && (k.Operation == "Apply") == w.apply && k.Subresource == w.subresource
}

// compare compares the response of a step. Where kube-apiserver has a bug, the note says which of the possible
// responses the server gave.
func (s *state) compare(step *recorded.Step, answer *recorded.Answer) (out []difference, note string, err error) {
	w := s.newWrite(step, answer)
	add := func(d difference, format string, args ...any) {
		d.write, d.text = w, fmt.Sprintf(format, args...)
		out = append(out, d)
	}
	want := step.Response.Code
	switch fault := step.Fault(); {
	case fault != recorded.NoException && w.gotCode == want:
		return nil, "as kube-apiserver: " + string(fault), nil
	case fault == recorded.SchemaFault && (w.gotCode == 400 || w.gotCode == 422),
		(fault == recorded.ScaleFault || fault == recorded.NullFault) && (w.gotCode < 300 || len(conflictsIn(w.got)) > 0):
		return nil, "corrected: " + string(fault), nil
	case w.gotCode != want:
		add(difference{what: code}, "status %d, want %d: %v", w.gotCode, want, w.got["message"])
		return out, "", nil
	}
	isRead := step.Request.Method == http.MethodGet
	if want >= http.StatusMultipleChoices {
		got, recorded := conflictsIn(w.got), conflictsIn(w.want)
		for _, c := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(got, recorded)))) {
			if isGot := slices.Contains(got, c); isGot != slices.Contains(recorded, c) {
				add(difference{what: cause}, "%s conflict: %s", saysOf(isGot), c)
			}
		}
		return out, "", nil
	}
	for k := range owners(w.got) {
		if slices.Contains(controllers, k.Manager) && !s.managers[k.Manager] {
			return nil, "", errForeign
		}
	}
	if text := s.r.CompareVersions(w.got, w.want); text != "" && !isRead && !w.dryRun {
		add(difference{what: written}, "%s", text)
	}
	s.r.Learn(w.got, w.want)
	if got := answer.Header.Values("Warning"); len(got) != len(step.Response.Warnings) {
		add(difference{what: warning}, "warnings %q, want %q", got, step.Response.Warnings)
	}
	isScale := w.want["kind"] == "Scale"
	if !isScale {
		w.compareOwners(add)
	}
	w.compareValues(add)
	if s.corrected {
		note = "corrected: " + string(recorded.NullFault)
	}
	if !isScale && !w.dryRun {
		s.stored = w.want
	}
	return out, note, nil
}

// controllers are managers that write to built-in kinds. Traces are skipped on servers where they run.
var controllers = []string{"kube-controller-manager", "kube-scheduler", "kubelet"}

const errForeign = recorded.Unfit("a controller writes the object, too: run this where no controllers run")

// saysOf returns the word that a description uses for something that only one of the responses has.
func saysOf(isGot bool) string {
	if isGot {
		return "unexpected"
	}
	return "missing"
}

// adder is a function that adds a difference with its description.
type adder = func(d difference, format string, args ...any)

// compareOwners compares managed fields: the keys of entries, their fields, whether they have a time, and their order.
// Entries must be in the order of the times that this server has set.
func (w *write) compareOwners(add adder) {
	got, want, live := owners(w.got), owners(w.want), owners(w.live)
	for _, k := range slices.SortedFunc(maps.Keys(bothOf(got, want)), byText) {
		g, isGot := got[k]
		e, isWanted := want[k]
		d := difference{entry: k, own: w.isOf(k), extra: isGot}
		if !isGot || !isWanted {
			here, opposite, back := g, want, got
			if isWanted {
				here, opposite, back = e, got, want
			}
			d.what, d.isEmpty = entry, here.fields.Empty()
			for other, o := range opposite {
				if _, both := back[other]; !both && o.fields.Equals(here.fields) {
					d.rekeyed, d.renamed = other.Manager == k.Manager, other.Manager != k.Manager
				}
			}
			add(d, "%s entry of %s", saysOf(isGot), k)
			continue
		}
		if g.APIVersion != e.APIVersion {
			d.what = version
			add(d, "%s: version %s, want %s", k, g.APIVersion, e.APIVersion)
		}
		w.compareTimes(d, g.Time, e.Time, add)
		d.what, d.stays = member, live[k].fields != nil && live[k].fields.Equals(e.fields)
		for i, set := range []*fieldpath.Set{g.fields.Difference(e.fields), e.fields.Difference(g.fields)} {
			for path := range set.All() {
				d.extra, d.at, d.isContainer = i == 0, path.Copy(), !below(e.fields, path).Empty()
				add(d, "%s: %s %s", k, saysOf(d.extra), path)
			}
		}
	}
	list := (&unstructured.Unstructured{Object: w.got}).GetManagedFields()
	if !slices.IsSortedFunc(list, inOrder) {
		add(difference{what: order}, "entries are not in order")
	}
}

// compareTimes compares whether an entry has a time, and whether the time is new: later than all times that the server
// set before the recorded clock last advanced.
func (w *write) compareTimes(d difference, got, want *metav1.Time, add adder) {
	d.what = timeOf
	switch {
	case (got == nil) != (want == nil):
		add(d, "%s: %s time", d.entry, saysOf(got != nil))
	case got != nil:
		isNew := want.UTC().Format(time.RFC3339) >= w.second
		if !w.before.IsZero() && isNew != got.After(w.before) {
			add(d, "%s: has the time of this write: %t, want %t", d.entry, !isNew, isNew)
		}
		w.updated = slices.MaxFunc([]time.Time{w.updated, got.Time}, time.Time.Compare)
	}
}

// leaves returns the leaves of an object to compare, without managed fields. For a built-in kind, these are the leaves
// of the metadata, and the leaves that are in s.ever.
func (s *state) leaves(object map[string]any) map[string]leaf {
	out := map[string]leaf{}
	metadata, _ := object["metadata"].(map[string]any)
	metadata, object = maps.Clone(metadata), maps.Clone(object)
	delete(metadata, "managedFields")
	delete(object, "metadata")
	name := fieldpath.FieldNameElement("metadata")
	flatten(fieldpath.Path{name}, metadata, s.ever.WithPrefix(name), true, out)
	flatten(nil, object, s.ever, !s.isBuiltin || object["kind"] == "Scale", out)
	return out
}

// compareValues compares leaves of the objects.
func (w *write) compareValues(add adder) {
	got, want := w.leaves(w.got), w.leaves(w.want)
	for _, text := range slices.Sorted(maps.Keys(bothOf(got, want))) {
		g, isGot := got[text]
		e, isWanted := want[text]
		d := difference{what: value, extra: isGot && !isWanted, missing: !isGot, at: g.at}
		if !isGot {
			d.at = e.at
		}
		isGenerated := func() bool { // Difference recognizes generated values by their names
			name := d.at[len(d.at)-1].String()[1:]
			return len(w.r.Difference(map[string]any{name: g.value}, map[string]any{name: e.value})) == 0
		}
		switch {
		case g.items != nil || e.items != nil:
			if isGot && isWanted && !slices.Equal(common(g.items, e.items), common(e.items, g.items)) {
				d.what = sequence
				add(d, "%s: items are in another order", d.at)
			}
		case d.extra || d.missing:
			add(d, "%s %s", saysOf(isGot), d.at)
		case isGenerated():
		case (w.apply || w.corrected) && isEmpty(g.value) && isEmpty(e.value):
			w.corrected = true
		default:
			add(d, "%s is %s, want %s", d.at, short(g.value), short(e.value))
		}
	}
}

// common returns the names that are in both lists.
func common(names, other []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !slices.Contains(other, name) })
}

// isEmpty reports whether a leaf is null, an empty map or an empty list.
func isEmpty(v any) bool { return slices.Contains([]string{"null", "{}", "[]"}, short(v)) }

// short returns a value as JSON.
func short(v any) string {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// owners returns the entries of an object by their keys. Entries that can't be decoded own nothing.
func owners(object map[string]any) map[key]owner {
	out := map[key]owner{}
	for _, e := range (&unstructured.Unstructured{Object: object}).GetManagedFields() {
		o := owner{e, fieldpath.NewSet()}
		if e.FieldsV1 != nil {
			_ = o.fields.FromJSON(e.FieldsV1.GetRawReader())
		}
		k := key{e.Manager, string(e.Operation), e.APIVersion, e.Subresource}
		if e.Operation == metav1.ManagedFieldsOperationApply {
			k.Version = ""
		}
		out[k] = o
	}
	return out
}

// String describes an entry.
func (k key) String() string {
	return strings.TrimRight(fmt.Sprintf("%q by %s %s %s", k.Manager, k.Operation, k.Version, k.Subresource), " ")
}

func byText(a, b key) int { return cmp.Compare(a.String(), b.String()) }

// inOrder compares entries by their order in an object (spec rule 2.4).
func inOrder(a, b metav1.ManagedFieldsEntry) int {
	seconds := func(e metav1.ManagedFieldsEntry) int64 {
		if e.Time == nil {
			return 0
		}
		return e.Time.Unix()
	}
	return cmp.Or(cmp.Compare(a.Operation, b.Operation), cmp.Compare(seconds(a), seconds(b)),
		cmp.Compare(a.Manager, b.Manager), cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Subresource, b.Subresource))
}

// conflictsIn returns the conflicts of a response.
func conflictsIn(response map[string]any) (out []string) {
	var status metav1.Status
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(response, &status)
	if err != nil || status.Details == nil {
		return nil
	}
	for _, c := range status.Details.Causes {
		if c.Type == metav1.CauseTypeFieldManagerConflict {
			out = append(out, c.Message+": "+c.Field)
		}
	}
	return out
}

// bothOf returns the keys that are in at least one of the maps.
func bothOf[K comparable, V any](a, b map[K]V) map[K]V {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}
