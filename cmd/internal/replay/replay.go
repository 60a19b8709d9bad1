package replay

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/cmd/internal/kinds"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// Outcome is the outcome of a replayed step.
type Outcome int

// The outcomes of a step.
const (
	Agreed Outcome = iota
	Differed
	Skipped
)

// Result is the result of one step.
type Result struct {
	// Trace is the name of the trace, and Step the position of the step, from 0.
	Trace string
	Step  int
	// Kind is the kind of write: apply, update, create …
	Kind    string
	Outcome Outcome
	// Detail is the reason of a skip, or the difference.
	Detail string
	// Planned is what the plan of an apply says that the server does, such as changed; empty if the step is no apply.
	Planned string
	// Plan is whether the plan of an apply agrees with what the server did.
	Plan PlanResult
	// Difference is the number of the row of doc/differences.md for PlanExplained, else 0.
	Difference int
}

// PlanResult is what became of the plan of an apply.
type PlanResult int

// The results of plans.
const (
	NotPlanned PlanResult = iota // the step is no apply
	PlanAgrees
	PlanDiffers
	// PlanExplained: the recorded server has a fault that no plan repeats, and a row of doc/differences.md predicts its
	// response: see Result.Difference.
	PlanExplained
	// PlanNeedsValidation: the recorded server's Go code rejected values, which RunEngine does not validate.
	PlanNeedsValidation
)

// RunEngine replays one trace by the engine alone. types holds the kinds that the trace's own
// CustomResourceDefinition does not define.
func RunEngine(t *Trace, types *openapi.Registry) []Result {
	r := &replayer{builtin: types, types: types, objects: map[target]object{}}
	out := make([]Result, 0, len(t.Steps))
	add := func(i int, kind string, o Outcome, detail string) {
		out = append(out, Result{t.Name, i, kind, o, detail, r.planned, r.plan, r.difference})
	}
	if t.CRD != nil {
		if err := r.define(t.CRD); err != nil {
			add(0, "schema", Differed, err.Error())
			return out
		}
	}
	for i := range t.Steps {
		step := &t.Steps[i]
		kind := kindOf(step)
		r.planned, r.plan, r.difference = "", NotPlanned, 0
		err := r.replayStep(step)
		var skip skipped
		switch {
		case err == nil:
			add(i, kind, Agreed, "")
		case errors.As(err, &skip):
			add(i, kind, Skipped, string(skip))
		default:
			add(i, kind, Differed, err.Error())
		}
	}
	return out
}

// skipped is the reason why the engine alone can't decide a step.
type skipped string

func (s skipped) Error() string { return string(s) }

// The reasons of skips; the description of the traces names each.
const (
	skipValidation   skipped = "decided by validation of values, above the engine"
	skipPrecondition skipped = "decided by a precondition, above the engine"
	skipHTTP         skipped = "decided by HTTP, above the engine"
	skipAdmission    skipped = "create of a built-in type changed by admission after its fields were tracked"
	skipGoTypes      skipped = "decided by the conversion of values to Go types, above the engine"
	skipScaleFault   skipped = "apply to /scale of a custom resource, a fault of the server"
	skipSchemaChange skipped = "no request: the schema changes"
	skipDelete       skipped = "a delete, which tracks no fields"
	skipFirstRead    skipped = "the first look at an object, as it was found"
)

// kindOf returns the kind of write for the table of results.
func kindOf(s *Step) string {
	r, _ := parsePath(s.Request.Path)
	kind := strings.ToLower(s.Request.Method)
	switch s.Request.Method {
	case "CRD":
		return "schema"
	case "GET":
		return "read"
	case "POST":
		kind = "create"
	case "PUT":
		kind = "update"
	case "PATCH":
		kind = strings.TrimSuffix(strings.TrimPrefix(s.Request.ContentType, "application/"), "+json")
		if s.Request.ContentType == applyPatch {
			kind = "apply"
		}
	}
	if r.subresource != "" {
		kind += " " + r.subresource
	}
	return kind
}

const applyPatch = "application/apply-patch+yaml"

type replayer struct {
	builtin *openapi.Registry
	types   *openapi.Registry // builtin and the custom resource
	crd     *crd              // nil for built-in types
	object                    // of the step
	objects map[target]object
	now     time.Time // of the latest step

	// Of the latest step.
	planned    string
	plan       PlanResult
	difference int
}

// object is the state of one object.
type object struct {
	live map[string]any // nil if it does not exist
	// scaled is the engine's object after a write to /scale, to be compared with the
	// next read.
	scaled map[string]any
}

// objectOf returns the object of a step, without version and subresource.
func objectOf(s *Step) target {
	t, _ := parsePath(s.Request.Path)
	t.version, t.subresource = "", ""
	if metadata, _ := s.Response.Body["metadata"].(map[string]any); t.name == "" {
		t.name, _ = metadata["name"].(string)
	}
	return t
}

func (r *replayer) define(tree map[string]any) error {
	custom, err := openapi.CompileCRD(tree)
	if err != nil {
		return err
	}
	r.types = openapi.Union(r.builtin, custom)
	r.crd = &crd{tree}
	return nil
}

// replayStep replays one step; nil if the engine agrees with the server.
func (r *replayer) replayStep(s *Step) error {
	key := objectOf(s)
	var known bool
	r.object, known = r.objects[key]
	defer func() { r.objects[key] = r.object }()
	switch s.Request.Method {
	case "CRD":
		tree, _ := s.Request.Body.(map[string]any)
		if err := r.define(tree); err != nil {
			return err
		}
		return skipSchemaChange
	case "GET":
		err := r.checkRead(s)
		if !known && r.live != nil {
			return skipFirstRead // a trace may begin in the middle of an object's life
		}
		return err
	case "DELETE":
		r.recordDelete(s)
		return skipDelete
	}
	w, err := r.newWrite(s)
	if err != nil {
		return err
	}
	var planErr error
	if w.isApply() {
		plan := w.planApply()
		r.planned = plan.got
		planErr = w.comparePlan(plan)
	}
	if err = w.checkWrite(); planErr != nil {
		err = planErr
	}
	if s.Response.Code < 300 && !w.dryRun && w.subresource != "scale" {
		r.live = s.Response.Body
	}
	return err
}

// recordDelete records the object after a delete: it may still exist, with a deletionTimestamp.
func (r *replayer) recordDelete(s *Step) {
	metadata, _ := s.Response.Body["metadata"].(map[string]any)
	switch {
	case s.Response.Code >= 300:
	case metadata["deletionTimestamp"] != nil:
		r.object = object{live: s.Response.Body}
	default:
		r.object = object{}
	}
}

// checkRead compares a whole object with the engine's result of the write before.
func (r *replayer) checkRead(s *Step) error {
	if t, err := parsePath(s.Request.Path); err != nil || t.name == "" || s.Response.Code != 200 {
		return skipHTTP // a list, or nothing
	}
	want := s.Response.Body
	defer func() { r.live, r.scaled = want, nil }()
	got := r.live
	if r.scaled != nil {
		got = r.scaled
	}
	if err := compareManagedFields(got, want); err != nil {
		return err
	}
	// A read at another version than the last write is a conversion.
	if got = maps.Clone(got); got == nil {
		got = map[string]any{}
	}
	got["apiVersion"] = want["apiVersion"]
	return compareObjects(got, want)
}

// write is a write request.
type write struct {
	r *replayer
	s *Step
	target
	query   url.Values
	body    map[string]any // nil for a patch that is a list
	manager string
	dryRun  bool
}

func (r *replayer) newWrite(s *Step) (*write, error) {
	res, err := parsePath(s.Request.Path)
	if err != nil {
		return nil, err
	}
	query, err := url.ParseQuery(s.Request.Query)
	if err != nil {
		return nil, err
	}
	w := &write{r: r, s: s, target: res, query: query}
	w.body, _ = s.Request.Body.(map[string]any)
	w.dryRun = query.Get("dryRun") == "All"
	if w.manager = query.Get("fieldManager"); w.manager == "" {
		agent := s.Request.UserAgent
		if agent == "" {
			agent = "recorder/v1"
		}
		w.manager = managedfields.ManagerFromUserAgent(agent)
	}
	return w, nil
}

// checkWrite runs the write through the engine and compares the responses.
func (w *write) checkWrite() error {
	isApply := w.isApply()
	if w.s.Response.Code >= 300 && !isApply {
		return w.rejectionReason()
	}
	if w.subresource == "scale" {
		return w.checkScale(isApply)
	}
	if isApply {
		return w.checkApply()
	}
	return w.checkUpdate()
}

func (w *write) isApply() bool {
	return w.s.Request.Method == "PATCH" && w.s.Request.ContentType == applyPatch
}

// rejectionReason names the layer that rejected a write other than an apply.
func (w *write) rejectionReason() error {
	switch code := w.s.Response.Code; code {
	case 409:
		return skipPrecondition
	case 400, 415:
		return skipHTTP
	case 422:
		return skipValidation
	default:
		return skipped(fmt.Sprintf("response %d: %v", code, w.s.Response.Body["message"]))
	}
}

// kind returns the kind of the written object.
func (w *write) kind() (schema.GroupVersionKind, error) {
	for _, tree := range []map[string]any{w.body, w.s.Response.Body, w.r.live} {
		if kind, _ := tree["kind"].(string); kind != "" && kind != "Status" && kind != "Scale" {
			return schema.GroupVersionKind{Group: w.group, Version: w.version, Kind: kind}, nil
		}
	}
	return schema.GroupVersionKind{}, fmt.Errorf("the kind of %s is not known", w.plural)
}

// objectManager returns the field manager of the written object.
func (w *write) objectManager() (*fieldmanager.FieldManager, error) {
	kind, err := w.kind()
	if err != nil {
		return nil, err
	}
	return w.fieldManager(kind, true)
}

// fieldManager returns the field manager of a kind, with the options of kube-apiserver. completes says that it fills in
// what the server does when it decodes an object.
func (w *write) fieldManager(kind schema.GroupVersionKind, completes bool) (*fieldmanager.FieldManager, error) {
	now, err := w.r.clock(w.s)
	if err != nil {
		return nil, err
	}
	options := fieldmanager.Options{
		Clock:       func() time.Time { return now },
		Subresource: w.subresource,
		Converter:   fieldmanager.NoneConverter{},
		ResetFields: w.resetFields(),
	}
	if empty := kinds.Empty(kind); empty != nil {
		options.Empty = empty
	}
	if completes && w.subresource != "scale" {
		options.Defaulter = func(merged runtime.Object) {
			if u, ok := merged.(*unstructured.Unstructured); ok {
				u.Object = w.complete(kind, u.Object)
			}
		}
	}
	return fieldmanager.New(kind, w.r.types, options)
}

// resetFields returns the fields that the write resets, at every version.
func (w *write) resetFields() map[string]fieldpath.Filter {
	if w.subresource == "scale" {
		return nil
	}
	reset := fieldpath.NewSet(fieldpath.Fields("status"))
	if w.subresource == "status" {
		reset = fieldpath.NewSet(fieldpath.Fields("spec"))
		if !w.isBuiltin() {
			reset = fieldpath.NewSet(fieldpath.Fields("spec"), fieldpath.Fields("metadata"))
		}
	}
	out := map[string]fieldpath.Filter{}
	if kind, err := w.kind(); err == nil {
		for _, version := range w.r.types.Versions(kind.GroupKind()) {
			gv := schema.GroupVersion{Group: w.group, Version: version}
			out[gv.String()] = fieldpath.Excluding{Set: reset}
		}
	}
	if w.crd() != nil {
		clear(out)
		for _, version := range w.crd().versions() {
			if w.subresource == "status" || version.hasStatus() {
				out[w.group+"/"+version.name()] = fieldpath.Excluding{Set: reset}
			}
		}
	}
	return out
}

// crd returns the definition of the written object; nil if the trace has none.
func (w *write) crd() *crd {
	if w.r.crd == nil || !w.r.crd.defines(w.group, w.plural) {
		return nil
	}
	return w.r.crd
}

// isBuiltin reports whether the server has a Go type for the written object.
func (w *write) isBuiltin() bool {
	kind, err := w.kind()
	return w.crd() == nil && err == nil && openapi.Builtin().Versions(kind.GroupKind()) != nil
}

// clock returns the server's time of a step. The recorder takes it from the newest change in the
// response, which may be older than the step before; a server's clock does not go back.
func (r *replayer) clock(s *Step) (time.Time, error) {
	now, err := time.Parse(time.RFC3339, s.Now)
	if err != nil {
		return now, fmt.Errorf("the server's clock: %w", err)
	}
	if now.Before(r.now) {
		now = r.now
	}
	r.now = now
	return now, nil
}

func wrap(tree map[string]any) runtime.Object {
	if tree == nil {
		return nil
	}
	return &unstructured.Unstructured{Object: tree}
}

func unwrap(obj runtime.Object) map[string]any {
	return obj.(*unstructured.Unstructured).Object
}

// liveObject returns live; nil if it does not exist.
func (w *write) liveObject() runtime.Object { return wrap(w.r.live) }
