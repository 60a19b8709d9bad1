package conformance

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tenure-ssa/tenure/apiserver/recorded"
)

// key is the key of an entry of managed fields.
type key struct {
	Manager, Operation, Version, Subresource string
}

// state is what a trace has come to.
type state struct {
	r *recorded.Replayer
	// isBuiltin: fields that are not in ever are not compared. ever has what any entry of the trace owned.
	isBuiltin bool
	ever      map[string]any
	managers  map[string]bool // of the trace

	// live is the recorded object, with the resourceVersions of the last response here and there.
	live                    map[string]any
	gotVersion, wantVersion string
	// updated is the last time in an entry. When the recorded clock went on to second, it was before.
	updated, before, second string
	// asked is the last write. redefined: the schema changed.
	asked     *recorded.Step
	redefined bool
	// corrected: an empty map or list differed from null in an apply, which is difference 1.
	corrected bool
}

// write is a step of a trace with its response. A step that reads is about the write before it.
type write struct {
	*state
	step                *recorded.Step
	live                map[string]any // the recorded object before
	failed              bool           // the step reads, and the write before failed
	apply               bool
	carries             bool // the request has other managed fields than the object
	isClientSide        bool // an apply by kubectl, without force, to an object that client-side apply wrote
	manager             string
	subresource         string
	body, got, want     map[string]any
	gotCode             int
	warnings            []string
	ownedBefore         map[string]any // by the manager
	updates             int            // entries of updates in the response
	isUntracked, dryRun bool
}

// errForeign is what a trace is skipped for.
const errForeign = errSkipped("a controller writes the objects, too: run this where no controllers run")

// lastApplied leads to the annotation of client-side apply.
var lastApplied = path{"f:metadata", "f:annotations", "f:kubectl.kubernetes.io/last-applied-configuration"}

// newState returns the state before a trace.
func newState(r *recorded.Replayer, trace *recorded.Trace) *state {
	s := &state{r: r, isBuiltin: trace.CRD == nil, ever: map[string]any{}, managers: map[string]bool{}}
	for i := range trace.Steps {
		for k, e := range byKey(trace.Steps[i].Response.Body) {
			s.managers[k.Manager] = true
			fields, _ := e["fieldsV1"].(map[string]any)
			union(s.ever, fields)
		}
	}
	return s
}

// newWrite reads a step and its response.
func (s *state) newWrite(step *recorded.Step, answer *recorded.Answer) *write {
	isRead := step.Request.Method == http.MethodGet
	if !isRead || s.asked == nil {
		s.asked = step
	}
	asked := s.asked.Request
	query, _ := url.ParseQuery(asked.Query)
	w := &write{
		state: s, step: step, live: s.live, apply: asked.ContentType == string(types.ApplyPatchType),
		failed:  isRead && s.asked.Response.Code >= http.StatusMultipleChoices,
		manager: query.Get("fieldManager"), dryRun: query.Has("dryRun"),
		want: step.Response.Body, gotCode: answer.Code, warnings: answer.Header.Values("Warning"),
	}
	if w.manager == "" {
		w.manager, _, _ = strings.Cut(cmp.Or(asked.UserAgent, "recorder/v1"), "/")
	}
	if _, below, ok := strings.Cut(asked.Path, "/namespaces/default/"); ok {
		if parts := strings.Split(below, "/"); len(parts) > 2 {
			w.subresource = parts[2]
		}
	}
	w.body, _ = asked.Body.(map[string]any)
	w.carries = strings.Contains(short(asked.Body), "managedFields") && !sameEntries(w.body, s.live)
	_, isAnnotated := lookup(s.live, lastApplied)
	w.isClientSide = isAnnotated && w.manager == "kubectl" && query.Get("force") != "true"
	w.isUntracked = s.live != nil && len(entriesIn(s.live)) == 0
	_ = utiljson.Unmarshal(answer.Body, &w.got) // nothing is compared with what is not JSON
	for k, e := range byKey(s.live) {
		if w.owns(k) {
			w.ownedBefore, _ = e["fieldsV1"].(map[string]any)
		}
	}
	if w.ownedBefore == nil {
		w.ownedBefore = map[string]any{".": map[string]any{}}
	}
	return w
}

// owns reports whether an entry is that of the write's manager.
func (w *write) owns(k key) bool {
	return k.Manager == w.manager && (k.Operation == "Apply") == w.apply && k.Subresource == w.subresource
}

// isConflict reports whether a response is a Status with conflicts of an apply.
func (w *write) isConflict(status map[string]any) bool { return len(conflictsIn(status)) > 0 }

// compare compares the response of a step, and returns which answer a fault of kube-apiserver got.
func (s *state) compare(step *recorded.Step, answer *recorded.Answer) (out []difference, note string, err error) {
	w := s.newWrite(step, answer)
	add := func(d difference) {
		d.write = w
		out = append(out, d)
	}
	want := step.Response.Code
	if fault := step.Fault(); fault != recorded.NoException {
		switch {
		case w.gotCode == want:
			return nil, noteOf("as kube-apiserver", fault), nil
		case fault == recorded.SchemaFault && (w.gotCode == http.StatusBadRequest || w.gotCode == http.StatusUnprocessableEntity),
			fault != recorded.SchemaFault && (w.gotCode < http.StatusMultipleChoices || w.isConflict(w.got)):
			return nil, noteOf("corrected", fault), nil
		}
	}
	if w.gotCode != want {
		message, _ := w.got["message"].(string)
		add(difference{what: code, text: fmt.Sprintf("status %d, want %d: %s", w.gotCode, want, message)})
		return out, "", nil
	}
	if want >= http.StatusMultipleChoices {
		got, recorded := conflictsIn(w.got), conflictsIn(w.want)
		for _, c := range slices.Concat(got, recorded) {
			if slices.Contains(got, c) != slices.Contains(recorded, c) {
				extra := slices.Contains(got, c)
				add(difference{what: cause, extra: extra, missing: !extra, text: saysOf(extra) + " conflict: " + c})
			}
		}
		return out, "", nil
	}
	for _, e := range byKey(w.got) {
		switch manager, _ := e["manager"].(string); manager {
		case "kube-controller-manager", "kube-scheduler", "kubelet":
			if !s.managers[manager] {
				return nil, "", errForeign
			}
		}
	}
	s.r.Learn(w.got, w.want)
	if len(w.warnings) != len(step.Response.Warnings) {
		add(difference{what: warning, text: fmt.Sprintf("warnings %q, want %q", w.warnings, step.Response.Warnings)})
	}
	w.compareVersions(add)
	if w.want["kind"] != "Scale" {
		w.compareEntries(add)
	}
	before := s.corrected
	w.values(nil, s.ever, s.compared(w.got), s.compared(w.want), add)
	if s.corrected && !before {
		note = noteOf("corrected", recorded.NullFault)
	}
	if w.want["kind"] != "Scale" && !w.dryRun {
		s.live = w.want
	}
	return out, note, nil
}

// noteOf returns a note on which of two answers a server gave.
func noteOf(which string, fault recorded.Exception) string {
	return which + ": " + strings.TrimPrefix(string(fault), "correction: ")
}

// saysOf says on which side something is.
func saysOf(extra bool) string {
	if extra {
		return "unexpected"
	}
	return "missing"
}

// compareVersions compares whether the object was written.
func (w *write) compareVersions(add func(difference)) {
	versionOf := func(object map[string]any) string {
		v, _ := lookup(object, path{"f:metadata", "f:resourceVersion"})
		text, _ := v.(string)
		return text
	}
	got, want := versionOf(w.got), versionOf(w.want)
	if w.dryRun || got == "" || want == "" {
		return
	}
	isNoOp, wantNoOp := got == w.gotVersion, want == w.wantVersion
	if w.wantVersion != "" && isNoOp != wantNoOp && w.step.Request.Method != http.MethodGet {
		text := "the object is not written"
		if wantNoOp {
			text = "the object is written, although nothing changed"
		}
		add(difference{what: written, extra: wantNoOp, missing: isNoOp, text: text})
	}
	w.gotVersion, w.wantVersion = got, want
}

// compareEntries compares managed fields: the keys of entries, what they own, whether they have a time, and their order,
// which has to be the one of the times that this server gave them.
func (w *write) compareEntries(add func(difference)) {
	got, want, live := byKey(w.got), byKey(w.want), byKey(w.live)
	for k := range got {
		if k.Operation == "Update" {
			w.updates++
		}
	}
	owned := func(e map[string]any) map[string]any {
		fields, _ := e["fieldsV1"].(map[string]any)
		return fields
	}
	for _, k := range slices.SortedFunc(maps.Keys(bothOf(got, want)), compareKeys) {
		g, isGot := got[k]
		e, isWanted := want[k]
		d := difference{entry: k, own: w.owns(k)}
		if !isGot || !isWanted {
			d.what, d.extra, d.missing = entry, isGot, isWanted
			here, there, back := owned(g), want, got
			if isWanted {
				here, there, back = owned(e), got, want
			}
			d.isEmpty = len(here) == 0
			for other, o := range there {
				if _, both := back[other]; !both && equal(owned(o), here) {
					d.rekeyed, d.renamed = other.Manager == k.Manager, other.Manager != k.Manager
				}
			}
			d.text = fmt.Sprintf("%s entry of %s", saysOf(isGot), k)
			add(d)
			continue
		}
		if g["apiVersion"] != e["apiVersion"] {
			d.what, d.text = version, fmt.Sprintf("%s: version %v, want %v", k, g["apiVersion"], e["apiVersion"])
			add(d)
		}
		w.compareTimes(d, g, e, add)
		gotMembers, wantMembers := members(owned(g), nil, map[string]path{}), members(owned(e), nil, map[string]path{})
		for _, text := range slices.Sorted(maps.Keys(bothOf(gotMembers, wantMembers))) {
			gp, isGot := gotMembers[text]
			wp, isWanted := wantMembers[text]
			if isGot && isWanted {
				continue
			}
			d := d
			d.what, d.extra, d.missing, d.at = member, isGot, isWanted, gp
			if isWanted {
				d.at = wp
			}
			for other := range wantMembers {
				d.isContainer = d.isContainer || strings.HasPrefix(other, text) && other != text
			}
			d.stays = equal(owned(e), owned(live[k]))
			d.text = fmt.Sprintf("%s: %s %s", k, saysOf(isGot), text)
			add(d)
		}
	}
	if list := entriesIn(w.got); !slices.IsSortedFunc(list, inEntryOrder) {
		add(difference{what: order, text: "entries are not in order"})
	}
}

// compareTimes compares whether an entry has a time, and whether it is that of a write before the clock went on.
func (w *write) compareTimes(d difference, got, want map[string]any, add func(difference)) {
	g, isGot := got["time"].(string)
	e, isWanted := want["time"].(string)
	d.what, d.extra, d.missing = timeOf, isGot, isWanted
	switch isNew := e >= w.second; {
	case isGot != isWanted:
		d.text = fmt.Sprintf("%s: %s time", d.entry, saysOf(isGot))
		add(d)
	case isGot && w.before != "" && isNew != (g > w.before):
		d.text = fmt.Sprintf("%s: the time is not that of this write, but should be", d.entry)
		if !isNew {
			d.text = fmt.Sprintf("%s: the time is that of this write, but should not be", d.entry)
		}
		add(d)
	}
	w.updated = max(w.updated, g)
}

// compared returns what of an object is compared value by value.
func (s *state) compared(object map[string]any) map[string]any {
	out := maps.Clone(object)
	if s.isBuiltin && object["kind"] != "Scale" {
		out, _ = project(object, s.ever).(map[string]any)
		for _, name := range []string{"apiVersion", "kind", "metadata"} {
			out[name] = object[name]
		}
	}
	if metadata, ok := out["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		delete(metadata, "managedFields")
		out["metadata"] = metadata
	}
	return out
}

// values compares two values.
func (w *write) values(at path, fields map[string]any, got, want any, add func(difference)) {
	name := "value"
	if len(at) > 0 {
		_, name, _ = strings.Cut(at[len(at)-1], ":")
	}
	if len(w.r.Difference(map[string]any{name: got}, map[string]any{name: want})) == 0 {
		return
	}
	if isEmpty(got) && isEmpty(want) && (w.apply || w.corrected) {
		w.corrected = true
		return
	}
	g, isMap := got.(map[string]any)
	e, wantMap := want.(map[string]any)
	gotList, isList := got.([]any)
	wantList, wantsList := want.([]any)
	switch {
	case isMap && wantMap:
		gf, wf := map[string]any{}, map[string]any{}
		for name, v := range g {
			gf["f:"+name] = v
		}
		for name, v := range e {
			wf["f:"+name] = v
		}
		w.named(at, fields, gf, wf, add)
	case isList && wantsList && byName(gotList, fields) != nil && byName(wantList, fields) != nil:
		w.named(at, fields, byName(gotList, fields), byName(wantList, fields), add)
		if !slices.Equal(inOrder(gotList, wantList, fields), inOrder(wantList, gotList, fields)) {
			add(difference{what: sequence, at: at, text: at.String() + ": items are in another order"})
		}
	default:
		add(difference{
			what: value, at: at, text: fmt.Sprintf("%s is %s, want %s", at, short(got), short(want)),
		})
	}
}

// named compares the fields of maps, or the items of lists.
func (w *write) named(at path, fields, got, want map[string]any, add func(difference)) {
	for _, name := range slices.Sorted(maps.Keys(bothOf(got, want))) {
		g, isGot := got[name]
		e, isWanted := want[name]
		if isGot && isWanted {
			sub, _ := fields[name].(map[string]any)
			w.values(at.with(name), sub, g, e, add)
			continue
		}
		add(difference{
			what: value, extra: isGot, missing: isWanted, at: at.with(name),
			text: fmt.Sprintf("%s %s", saysOf(isGot), at.with(name)),
		})
	}
}

// byName returns the items of a list by their names, nil if any has none or the name of another one.
func byName(list []any, fields map[string]any) map[string]any {
	out := map[string]any{}
	for _, item := range list {
		name := nameOf(item, fields)
		if out[name] != nil || name == "" {
			return nil
		}
		out[name] = item
	}
	return out
}

// inOrder returns the names of items that another list has, too.
func inOrder(list, other []any, fields map[string]any) (out []string) {
	there := byName(other, fields)
	for _, item := range list {
		if name := nameOf(item, fields); there[name] != nil {
			out = append(out, name)
		}
	}
	return out
}

// isEmpty reports whether a value is null, or a list or map without items.
func isEmpty(v any) bool {
	text := short(v)
	return text == "null" || text == "{}" || text == "[]"
}

// entriesIn returns the managed fields of an object.
func entriesIn(object map[string]any) []any {
	v, _ := lookup(object, path{"f:metadata", "f:managedFields"})
	list, _ := v.([]any)
	return list
}

// byKey returns the entries of an object by their keys: an applier has one for all versions.
func byKey(object map[string]any) map[key]map[string]any {
	out := map[key]map[string]any{}
	for _, item := range entriesIn(object) {
		if e, ok := item.(map[string]any); ok {
			k := keyOf(e)
			if k.Operation == "Apply" {
				k.Version = ""
			}
			out[k] = e
		}
	}
	return out
}

// sameEntries reports whether objects have the same entries, times aside.
func sameEntries(a, b map[string]any) bool {
	x, y := byKey(a), byKey(b)
	for k, e := range x {
		if other, ok := y[k]; !ok || !equal(e["fieldsV1"], other["fieldsV1"]) {
			return false
		}
	}
	return len(x) == len(y)
}

func keyOf(entry map[string]any) key {
	text := func(name string) string { s, _ := entry[name].(string); return s }
	return key{text("manager"), text("operation"), text("apiVersion"), text("subresource")}
}

// String describes an entry as conflicts do.
func (k key) String() string {
	out := fmt.Sprintf("%q by %s", k.Manager, k.Operation)
	if k.Subresource != "" {
		out += " of " + k.Subresource
	}
	if k.Version != "" {
		out += " at " + k.Version
	}
	return out
}

func compareKeys(a, b key) int {
	return cmp.Or(cmp.Compare(a.Manager, b.Manager), cmp.Compare(a.Operation, b.Operation),
		cmp.Compare(a.Version, b.Version), cmp.Compare(a.Subresource, b.Subresource))
}

// inEntryOrder compares two entries by the order that they have in an object, spec rule 2.4.
func inEntryOrder(a, b any) int {
	x, _ := a.(map[string]any)
	y, _ := b.(map[string]any)
	text := func(e map[string]any, name string) string { s, _ := e[name].(string); return s }
	out := 0
	for _, name := range []string{"operation", "time", "manager", "apiVersion", "subresource"} {
		out = cmp.Or(out, cmp.Compare(text(x, name), text(y, name)))
	}
	return out
}

// conflictsIn returns the conflicts of a response, sorted.
func conflictsIn(status map[string]any) (out []string) {
	causes, _ := lookup(status, path{"f:details", "f:causes"})
	list, _ := causes.([]any)
	for _, item := range list {
		if c, _ := item.(map[string]any); c["reason"] == "FieldManagerConflict" {
			out = append(out, fmt.Sprintf("%v: %v", c["message"], c["field"]))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// bothOf has the keys of two maps.
func bothOf[K comparable, V any](a, b map[K]V) map[K]V {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}
