// Package shadow computes writes with Tenure in addition to upstream, and reports where the results differ.
//
// It never changes upstream's result and never blocks a request. For a sample of writes, it copies input and result
// into a queue; if the queue is full, it drops the write and counts it as dropped. One goroutine takes each write from
// the queue, computes it with Tenure at the time of upstream's write, and compares objects, managed fields and errors.
// A metric counts differences, with the number in doc/differences.md or "unexplained" as a label. The log has each
// difference and the path of a trace, which `cmd/replay` can replay.
//
// Limits bound the cost: the sample rate for requests (each sampled write copies three objects), the length of the
// queue for memory, the single goroutine for CPU, and the number of traces for disk.
package shadow

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/tenure-ssa/tenure/fieldmanager"
)

// Writer is a field manager, upstream's or Tenure's.
type Writer = interface {
	Apply(live, applied runtime.Object, manager string, force bool) (runtime.Object, error)
	Update(live, obj runtime.Object, manager string) (runtime.Object, error)
	UpdateNoErrors(live, obj runtime.Object, manager string) runtime.Object
}

// Kind describes the kind that a field manager was created for.
type Kind struct {
	Kind        schema.GroupVersionKind
	Hub         schema.GroupVersion
	Subresource string
	// Custom is true for custom resources.
	Custom      bool
	Converter   runtime.ObjectConvertor
	Types       managedfields.TypeConverter
	ResetFields map[fieldpath.APIVersion]fieldpath.Filter
}

// Recorder compares writes.
type Recorder struct {
	options Options
	queue   chan *write
	written int // number of traces; only for the comparing goroutine
	// sample returns a random number from 0 to 1, to compare with the rate.
	sample func() float64
	// now is the time of the write that is being compared. Only the comparing goroutine uses it.
	now time.Time
}

// New returns a recorder. It compares nothing until Start is called.
func New(o Options) (*Recorder, error) {
	if o.Traces > 0 {
		var err error
		if o.Folder == "" {
			o.Folder, err = os.MkdirTemp("", "tenure-traces-") // new, so that no other user owns it
		} else {
			err = os.MkdirAll(o.Folder, 0o700)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", FolderVariable, err)
		}
	}
	registerMetrics()
	return &Recorder{options: o, queue: make(chan *write, o.Queue), sample: rand.Float64}, nil
}

// Start starts the comparing goroutine, which runs until the process ends.
func (r *Recorder) Start() {
	klog.InfoS("Tenure computes writes beside upstream", "rate", r.options.Rate, "queue", r.options.Queue,
		"traces", r.options.Folder)
	go func() {
		for w := range r.queue {
			r.compare(w)
		}
	}()
}

// Wrap returns a Writer that returns upstream's results and records a sample of the writes. build creates Tenure's
// field manager for the same kind.
func (r *Recorder) Wrap(upstream Writer, build func(...func(*fieldmanager.Options)) (Writer, error),
	kind Kind) (Writer, error) {
	writer := &recorded{recorder: r, upstream: upstream, kind: kind}
	var err error
	writer.tenure, err = build(
		func(o *fieldmanager.Options) { o.Clock = func() time.Time { return r.now } },
		func(o *fieldmanager.Options) {
			o.Warnings = func(w fieldmanager.Warning) { writer.warned = append(writer.warned, w) }
		},
		func(o *fieldmanager.Options) { o.Errors = func(runtime.Object, error) {} },
	)
	if err != nil {
		// If Tenure can't be created for the kind, every write is a difference.
		writer.tenure = failing{err}
	}
	return writer, nil
}

// recorded is a Writer whose writes are recorded.
type recorded struct {
	recorder *Recorder
	upstream Writer
	kind     Kind
	// tenure is used only by the comparing goroutine. The same is true for warned.
	tenure Writer
	warned []fieldmanager.Warning
}

// operation is the kind of a write.
type operation string

const (
	apply          operation = "apply"
	update         operation = "update"
	updateNoErrors operation = "update-no-errors"
)

// write is a recorded write, with copies of its input and result.
type write struct {
	of        *recorded
	operation operation
	live, obj runtime.Object // obj is the intent, or the new object
	manager   string
	force     bool
	result    runtime.Object
	err       error
	at, ended time.Time
}

// begin starts the record of a write, with copies of its input. It returns nil if the write is not sampled, the queue
// is full, or an object can't be copied.
func (r *recorded) begin(op operation, live, obj runtime.Object, manager string, force bool) *write {
	recorder := r.recorder
	if recorder.options.Rate < 1 && recorder.sample() >= recorder.options.Rate {
		return nil
	}
	if len(recorder.queue) == cap(recorder.queue) {
		dropped.Inc()
		return nil
	}
	w := &write{of: r, operation: op, manager: manager, force: force, at: time.Now()}
	if !guarded(func() { w.live, w.obj = copyOf(live), copyOf(obj) }) {
		uncopied.Inc()
		return nil
	}
	return w
}

// end completes a record, and puts it into the queue if there is room.
func (w *write) end(result runtime.Object, err error) {
	if w == nil {
		return
	}
	w.ended = time.Now()
	if !guarded(func() { w.result = copyOf(result) }) {
		uncopied.Inc()
		return
	}
	w.err = err
	r := w.of.recorder
	select {
	case r.queue <- w:
		queued.Set(float64(len(r.queue)))
	default:
		dropped.Inc()
	}
}

// guarded calls f, and reports whether it returned without a panic: an object that can't be copied must not break a
// request.
func guarded(f func()) (ok bool) {
	defer func() {
		if v := recover(); v != nil {
			klog.ErrorS(fmt.Errorf("%v", v), "Copying a write for comparison", "stack", string(debug.Stack()))
			ok = false
		}
	}()
	f()
	return true
}

func copyOf(obj runtime.Object) runtime.Object {
	if obj == nil {
		return nil
	}
	return obj.DeepCopyObject()
}

// Apply returns upstream's result.
func (r *recorded) Apply(live, applied runtime.Object, manager string, force bool) (runtime.Object, error) {
	w := r.begin(apply, live, applied, manager, force)
	out, err := r.upstream.Apply(live, applied, manager, force)
	w.end(out, err)
	return out, err
}

// Update returns upstream's result.
func (r *recorded) Update(live, obj runtime.Object, manager string) (runtime.Object, error) {
	w := r.begin(update, live, obj, manager, false)
	out, err := r.upstream.Update(live, obj, manager)
	w.end(out, err)
	return out, err
}

// UpdateNoErrors returns upstream's result.
func (r *recorded) UpdateNoErrors(live, obj runtime.Object, manager string) runtime.Object {
	w := r.begin(updateNoErrors, live, obj, manager, false)
	out := r.upstream.UpdateNoErrors(live, obj, manager)
	w.end(out, nil)
	return out
}

// failing replaces a Writer that could not be created. Apply and Update return the error of the creation.
type failing struct{ err error }

func (f failing) Apply(_, _ runtime.Object, _ string, _ bool) (runtime.Object, error) {
	return nil, f.err
}
func (f failing) Update(_, _ runtime.Object, _ string) (runtime.Object, error)  { return nil, f.err }
func (f failing) UpdateNoErrors(_, obj runtime.Object, _ string) runtime.Object { return obj }

var (
	writes = metrics.NewCounterVec(&metrics.CounterOpts{
		Namespace: "tenure", Subsystem: "shadow", Name: "writes_total", StabilityLevel: metrics.ALPHA,
		Help: "Sampled writes: compared, dropped because the queue was full, uncopied because an object could not be copied.",
	}, []string{"result"})
	differences = metrics.NewCounterVec(&metrics.CounterOpts{
		Namespace: "tenure", Subsystem: "shadow", Name: "differences_total", StabilityLevel: metrics.ALPHA,
		Help: "Writes in which Tenure differs from upstream, by number in doc/differences.md, or unexplained.",
	}, []string{"difference", "operation", "of"})
	traces = metrics.NewCounter(&metrics.CounterOpts{
		Namespace: "tenure", Subsystem: "shadow", Name: "traces_total", StabilityLevel: metrics.ALPHA,
		Help: "Traces of differences that were written.",
	})
	queued = metrics.NewGauge(&metrics.GaugeOpts{
		Namespace: "tenure", Subsystem: "shadow", Name: "queue_length", StabilityLevel: metrics.ALPHA,
		Help: "Writes that wait for their comparison.",
	})
)

// counter is the name of a counter with one label. The metric is looked up on use, because it exists only after
// registration.
type counter string

func (c counter) Inc() { writes.WithLabelValues(string(c)).Inc() }

const (
	compared counter = "compared"
	dropped  counter = "dropped"
	uncopied counter = "uncopied"
)

var registerMetrics = sync.OnceFunc(func() { legacyregistry.MustRegister(writes, differences, traces, queued) })
