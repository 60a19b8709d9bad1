package shadow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tenure-ssa/tenure/managedfields"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
)

// aspect is the part of a write's result that differs.
type aspect string

const (
	ofObject        aspect = "object"
	ofManagedFields aspect = "managedFields"
	ofError         aspect = "error"
)

// difference is one difference between the engines' results for a write.
type difference struct {
	of aspect
	// number is a number in doc/differences.md, or unexplained.
	number string
	detail string
}

// answers are the results of both engines for a write, at the version of the request.
type answers struct {
	live, obj         map[string]any // live is nil if the object did not exist
	upstream, tenure  map[string]any // resulting objects; nil after an error
	upstreamErr       error
	tenureErr         error
	warned            bool // Tenure kept an entry that it could not compare
	upstreamUntracked error
}

// compare computes a write with Tenure, compares the results, and reports differences.
func (r *Recorder) compare(w *write) {
	queued.Set(float64(len(r.queue)))
	var a *answers
	var err error
	if !guarded(func() { a, err = r.answer(w) }) {
		err = errors.New("panic, see the stack in the log")
	}
	compared.Inc()
	var found []difference
	if err != nil {
		found = []difference{{ofError, unexplained, err.Error()}}
	} else {
		found = a.differences(w)
	}
	for _, d := range found {
		differences.WithLabelValues(d.number, string(w.operation), string(d.of)).Inc()
	}
	if len(found) > 0 {
		r.log(w, a, found)
	}
}

// answer computes a write with Tenure, with the time at which upstream wrote.
func (r *Recorder) answer(w *write) (*answers, error) {
	r.now = w.clock()
	w.of.warned = nil
	live, obj := copyOf(w.live), copyOf(w.obj)
	a := &answers{upstreamErr: w.err}
	var out runtime.Object
	switch w.operation {
	case apply:
		out, a.tenureErr = w.of.tenure.Apply(live, obj, w.manager, w.force)
	case update:
		out, a.tenureErr = w.of.tenure.Update(live, obj, w.manager)
	case updateNoErrors:
		out = w.of.tenure.UpdateNoErrors(live, obj, w.manager)
		// If upstream ignored an error of its own, the error explains a difference.
		_, a.upstreamUntracked = w.of.upstream.Update(copyOf(w.live), copyOf(w.obj), w.manager)
	}
	a.warned = len(w.of.warned) > 0
	var errs []error
	tree := func(obj runtime.Object) map[string]any {
		if obj == nil {
			return nil
		}
		out, err := w.of.kind.tree(obj)
		errs = append(errs, err)
		return out
	}
	if exists(w.live) {
		a.live = tree(w.live)
	}
	if intent, ok := w.obj.(runtime.Unstructured); ok && w.operation == apply {
		// Take the intent as the client sent it, even if both engines reject its version.
		a.obj = runtime.DeepCopyJSON(intent.UnstructuredContent())
	} else {
		a.obj = tree(w.obj)
	}
	if w.err == nil {
		a.upstream = tree(w.result)
	}
	if a.tenureErr == nil {
		a.tenure = tree(out)
	}
	return a, errors.Join(errs...)
}

// clock returns the time of upstream's write. This is the time of the newest entry that may have been written during
// the call. If there is no such entry, it is the time of the call. clock ignores entries with a later time: a server
// whose clock is ahead has written them into the live object.
func (w *write) clock() time.Time {
	if w.result == nil {
		return w.at
	}
	accessor, err := meta.Accessor(w.result)
	if err != nil {
		return w.at
	}
	clock, began := w.at, w.at.Truncate(time.Second)
	isWritten := false
	for _, e := range accessor.GetManagedFields() {
		if e.Time == nil || e.Time.Time.Before(began) || e.Time.Time.After(w.ended) {
			continue
		}
		if !isWritten || e.Time.Time.After(clock) {
			clock, isWritten = e.Time.Time, true
		}
	}
	return clock
}

// exists reports whether live is an object that is already stored.
func exists(live runtime.Object) bool {
	if live == nil {
		return false
	}
	accessor, err := meta.Accessor(live)
	return err == nil && (accessor.GetUID() != "" || accessor.GetResourceVersion() != "")
}

// tree returns an object as JSON, at the kind's version.
func (k *Kind) tree(obj runtime.Object) (map[string]any, error) {
	if u, ok := obj.(runtime.Unstructured); ok && obj.GetObjectKind().GroupVersionKind() == k.Kind {
		return runtime.DeepCopyJSON(u.UnstructuredContent()), nil
	}
	versioned, err := k.Converter.ConvertToVersion(obj, k.Kind.GroupVersion())
	if err != nil {
		return nil, fmt.Errorf("converting to %s: %w", k.Kind.GroupVersion(), err)
	}
	if u, ok := versioned.(runtime.Unstructured); ok {
		return runtime.DeepCopyJSON(u.UnstructuredContent()), nil
	}
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(versioned)
	if err != nil {
		return nil, err
	}
	tree["apiVersion"], tree["kind"] = k.Kind.GroupVersion().String(), k.Kind.Kind
	return tree, nil
}

// differences compares the results of both engines.
func (a *answers) differences(w *write) []difference {
	switch {
	case a.upstreamErr != nil && a.tenureErr != nil:
		if detail := compareErrors(a.upstreamErr, a.tenureErr); detail != "" {
			number := unexplained
			if apierrors.IsConflict(a.upstreamErr) && a.explainConflicts(w) {
				number = "25"
			} else if apierrors.IsConflict(a.tenureErr) { // upstream may fail before it finds the conflicts
				number = a.numberOfUpstreamError(a.upstreamErr)
			}
			return []difference{{ofError, number, detail}}
		}
		return nil
	case a.upstreamErr != nil || a.tenureErr != nil:
		detail := fmt.Sprintf("upstream: %v; Tenure: %v", a.upstreamErr, a.tenureErr)
		return []difference{{ofError, a.numberOfError(w), detail}}
	}
	var out []difference
	if paths := differingPaths(managedfields.With(a.upstream, nil), managedfields.With(a.tenure, nil)); len(paths) > 0 {
		out = append(out, difference{ofObject, a.numberOfObject(w, paths), "objects differ at " + describe(paths)})
	}
	upstream, tenure := entriesOf(a.upstream), entriesOf(a.tenure)
	if !sameJSON(upstream, tenure) {
		detail := "managed fields differ at " + describe(differingPaths(upstream, tenure))
		out = append(out, difference{ofManagedFields, a.numberOfEntries(w, out), detail})
	}
	return out
}

// compareErrors describes how two errors differ. Conflicts are compared cause by cause. For other errors, it only
// matters that both are errors, because the engines word them differently.
func compareErrors(upstream, tenure error) string {
	if apierrors.IsConflict(upstream) != apierrors.IsConflict(tenure) {
		return fmt.Sprintf("upstream: %v; Tenure: %v", upstream, tenure)
	}
	theirs, ours := causes(upstream), causes(tenure)
	if slices.Equal(theirs, ours) {
		return ""
	}
	return fmt.Sprintf("conflicts of upstream: %q; of Tenure: %q", theirs, ours)
}

// causes returns the sorted causes of a conflict: upstream's order is not fixed.
func causes(err error) []string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Reason != metav1.StatusReasonConflict ||
		status.Status().Details == nil {
		return nil
	}
	var out []string
	for _, c := range status.Status().Details.Causes {
		out = append(out, fmt.Sprintf("%s %s %s", c.Field, c.Type, c.Message))
	}
	slices.Sort(out)
	return out
}

var secretKind = schema.GroupKind{Kind: "Secret"}

func (r *Recorder) log(w *write, a *answers, found []difference) {
	path := "none"
	isHidden := w.of.kind.Kind.GroupKind() == secretKind && !r.options.Secrets
	if a != nil && !isHidden && r.written < r.options.Traces {
		if written, err := r.writeTrace(w, a, found); err != nil {
			klog.ErrorS(err, "Writing a trace")
		} else if written != "" {
			path = written
			r.written++
			traces.Inc()
		}
	}
	name := ""
	if accessor, err := meta.Accessor(w.obj); err == nil {
		name = accessor.GetNamespace() + "/" + accessor.GetName()
	}
	for _, d := range found {
		if isHidden { // errors may quote values
			d.detail = "left out, because it may have values of a Secret; " + SecretsVariable + "=true shows it"
		}
		klog.InfoS("Tenure differs from upstream", "difference", d.number, "of", d.of, "operation", w.operation,
			"versionKind", w.of.kind.Kind, "subresource", w.of.kind.Subresource, "object", name,
			"manager", w.manager, "detail", shortened(d.detail), "trace", path)
	}
}

func shortened(text string) string {
	const most = 2000
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

func entriesOf(tree map[string]any) []any {
	metadata, _ := tree["metadata"].(map[string]any)
	entries, _ := metadata["managedFields"].([]any)
	return entries
}

// text returns a value in JSON, as a server stores it.
func text(v any) []byte {
	out, err := json.Marshal(v)
	if err != nil {
		return []byte(err.Error())
	}
	return out
}

func sameJSON(a, b any) bool { return bytes.Equal(text(a), text(b)) }
