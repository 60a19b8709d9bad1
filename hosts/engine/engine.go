// Package engine provides Tenure to a patched kube-apiserver: field managers in one of three modes, and a decoder for
// intents.
//
// The files that package seam adds to Kubernetes' modules call package engine. The package uses no types that exist
// only in patched modules, so that it can be built and tested with the published modules.
package engine

import (
	"fmt"
	"os"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/tenure-ssa/tenure/compat/apimachinery"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/hosts/shadow"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// Writer is a field manager, upstream's or Tenure's.
type Writer = shadow.Writer

// Mode says which field manager determines the results of writes.
type Mode string

// The modes.
const (
	// Upstream uses only upstream's field manager.
	Upstream Mode = "upstream"
	// Tenure uses Tenure's field manager for every write.
	Tenure Mode = "tenure"
	// Shadow uses upstream's field manager for every write. It also computes a sample of the writes with Tenure, and
	// reports differences.
	Shadow Mode = "shadow"
)

// ModeVariable is the environment variable for the mode. The default is Tenure.
const ModeVariable = "TENURE_FIELD_MANAGEMENT"

// Engine creates field managers for a mode.
type Engine struct {
	mode     Mode
	recorder *shadow.Recorder // for the mode Shadow
}

// ModeFrom returns the mode that the environment sets.
func ModeFrom(getenv func(string) string) (Mode, error) {
	switch mode := Mode(getenv(ModeVariable)); mode {
	case "":
		return Tenure, nil
	case Upstream, Tenure, Shadow:
		return mode, nil
	default:
		return "", fmt.Errorf("%s is %q: expected %s, %s or %s", ModeVariable, mode, Upstream, Tenure, Shadow)
	}
}

// New returns an engine for an environment; nil in the mode Upstream.
func New(getenv func(string) string) (*Engine, error) {
	mode, err := ModeFrom(getenv)
	if err != nil {
		return nil, err
	}
	e := &Engine{mode: mode}
	switch mode {
	case Upstream:
		return nil, nil
	case Shadow:
		options, err := shadow.OptionsFrom(getenv)
		if err != nil {
			return nil, err
		}
		if e.recorder, err = shadow.New(options); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// start creates the engine of the process. It does so only once, even if several packages register the engine.
var start = sync.OnceValue(func() *Engine {
	mode, _ := ModeFrom(os.Getenv)
	e, err := New(os.Getenv)
	if err != nil {
		// A server with a misspelt mode must not run in another mode.
		fmt.Fprintln(os.Stderr, "tenure:", err)
		os.Exit(1)
	}
	reportMode(mode)
	if e != nil && e.recorder != nil {
		e.recorder.Start()
	}
	return e
})

// Start returns the engine of the process; nil in the mode Upstream. It exits the process if the environment is
// invalid.
func Start() *Engine { return start() }

// NewFieldManager returns the field manager that replaces upstream's field manager for a kind. custom is true for
// custom resources. All other parameters are parameters of apimachinery's constructors.
func (e *Engine) NewFieldManager(upstream Writer, custom bool, typeConverter managedfields.TypeConverter,
	objectConverter runtime.ObjectConvertor, objectDefaulter runtime.ObjectDefaulter,
	objectCreater runtime.ObjectCreater, kind schema.GroupVersionKind, hub schema.GroupVersion, subresource string,
	resetFields map[fieldpath.APIVersion]fieldpath.Filter) (Writer, error) {
	newFieldManager := apimachinery.NewDefaultFieldManager
	if custom {
		newFieldManager = apimachinery.NewDefaultCRDFieldManager
	}
	build := func(options ...func(*fieldmanager.Options)) (Writer, error) {
		return newFieldManager(typeConverter, objectConverter, objectDefaulter, objectCreater, kind, hub, subresource,
			resetFields, options...)
	}
	if typeConverter == nil {
		return upstream, nil // kinds without types do not support apply
	}
	if e.mode == Tenure {
		return build(func(o *fieldmanager.Options) {
			o.Warnings = func(w fieldmanager.Warning) {
				warnings.Inc()
				klog.V(2).
					InfoS("Managed fields can't be compared", "versionKind", kind, "subresource", subresource, "warning", w)
			}
		})
	}
	return e.recorder.Wrap(upstream, build, shadow.Kind{
		Kind: kind, Hub: hub, Subresource: subresource, Custom: custom,
		Converter: objectConverter, Types: typeConverter, ResetFields: resetFields,
	})
}

// NewTypeConverter returns the types of models as compiled by Tenure. It does not create upstream's types: no field
// manager of Tenure uses them, and for the CRDs of a cluster, they take several times as much memory as Tenure's.
func (e *Engine) NewTypeConverter(models map[string]*spec.Schema, preserveUnknownFields bool) (
	managedfields.TypeConverter, error) {
	types, err := openapi.Compile(models, preserveUnknownFields)
	if err != nil {
		return nil, err
	}
	return apimachinery.FromTypes(types), nil
}

// Validate returns an error if managed fields are malformed.
func (e *Engine) Validate(entries []metav1.ManagedFieldsEntry) error {
	return apimachinery.ValidateManagedFields(entries)
}

// ScaleToSubresource returns the managed fields of an object's scale subresource at a version. parent has the managed
// fields of the object.
func (e *Engine) ScaleToSubresource(parent []metav1.ManagedFieldsEntry, version schema.GroupVersion,
	mappings managedfields.ResourcePathMappings) ([]metav1.ManagedFieldsEntry, error) {
	return apimachinery.NewScaleHandler(parent, version, mappings).ToSubresource()
}

// ScaleToParent returns the managed fields of an object after a write to its scale subresource. scale has the managed
// fields of the scale subresource after the write.
func (e *Engine) ScaleToParent(parent, scale []metav1.ManagedFieldsEntry, version schema.GroupVersion,
	mappings managedfields.ResourcePathMappings) ([]metav1.ManagedFieldsEntry, error) {
	return apimachinery.NewScaleHandler(parent, version, mappings).ToParent(scale)
}

// Answers reports whether Tenure determines results. In the mode Shadow, upstream determines results, and Tenure only
// computes a sample of the writes.
func (e *Engine) Answers() bool { return e.mode == Tenure }

var (
	modes = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Namespace: "tenure", Name: "field_management_mode", StabilityLevel: metrics.ALPHA,
		Help: "1 for the mode that field management is in: upstream, tenure or shadow.",
	}, []string{"mode"})
	warnings = metrics.NewCounter(&metrics.CounterOpts{
		Namespace: "tenure", Name: "warnings_total", StabilityLevel: metrics.ALPHA,
		Help: "Entries of managed fields that were kept because they could not be compared.",
	})
)

func reportMode(mode Mode) {
	legacyregistry.MustRegister(modes, warnings)
	for _, m := range []Mode{Upstream, Tenure, Shadow} {
		value := 0.0
		if m == mode {
			value = 1
		}
		modes.WithLabelValues(string(m)).Set(value)
	}
}
