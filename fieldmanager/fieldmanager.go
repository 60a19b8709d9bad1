package fieldmanager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/internal/gostruct"
	"github.com/tenure-ssa/tenure/internal/hooks"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Types returns the types of kinds. *openapi.Registry implements it. Implementations must be safe for concurrent use,
// and must return the same *typed.Type for a kind until its schema changes.
type Types interface {
	// Type returns the type of a kind at a version. If the kind or version does not exist, it returns an error for
	// which runtime.IsNotRegisteredError is true. After any other error, entries of that version are kept unchanged.
	Type(kind schema.GroupVersionKind) (*typed.Type, error)
}

// Converter converts objects between the versions of their kind.
type Converter interface {
	// Convert returns obj at a version, as a new object or obj itself. It must not change obj, because obj is an object
	// that was passed to the write, or shares memory with one. When a write compares entries of other versions, obj is
	// an *unstructured.Unstructured without managed fields, whatever Go type was passed to the write. ctx is the ctx of
	// the write. An error for which runtime.IsNotRegisteredError is true means that the version does not exist; any
	// other error is temporary.
	Convert(ctx context.Context, obj runtime.Object, to schema.GroupVersion) (runtime.Object, error)
}

// Warning is a problem that did not stop a write. The host may want to log it, count it, or pass it on to the client.
type Warning struct {
	// Manager is the key of the entry or intent that the warning is about.
	Manager managedfields.Key
	// Version is the API version of the entry or intent.
	Version string
	// Err is the problem. If an entry could not be compared, Err is, for example, [ErrVersionGone], a
	// *managedfields.Error, or the converter's error. If an undeclared field was removed from an intent, Err is a
	// *typed.Error.
	Err error
}

func (w Warning) String() string {
	var unknown *typed.Error
	if errors.As(w.Err, &unknown) {
		return "unknown field " + unknown.Path.String()
	}
	return fmt.Sprintf("managed fields of %q at %s can't be compared: %v", w.Manager.Manager, w.Version, w.Err)
}

// ErrVersionGone means that the version of an entry no longer exists.
var ErrVersionGone = errors.New("the version does not exist")

// defaultCap is the default maximum number of Update entries of an object (spec rule 2.5).
const defaultCap = 10

// Options configure a FieldManager. The zero value is for a host whose kinds have one version each, and whose intents
// contain only declared fields.
type Options struct {
	// Converter converts objects between versions. Without a Converter, every object must have the FieldManager's own
	// version, and entries of other versions are kept without being compared.
	Converter Converter
	// Defaulter sets defaults in the merged object. Apply calls it if the merge changed the object; Update never calls
	// it. The object is a copy, so Defaulter may change it.
	Defaulter func(runtime.Object)
	// Subresource is the target of all writes of this FieldManager, such as status, and the subresource of the entries
	// that these writes make. It is empty for the main resource.
	Subresource string
	// ResetFields has, for each version (group/version), the fields that a write resets to live's values. The manager
	// of the write never owns them (spec rule 2.9).
	ResetFields map[string]fieldpath.Filter
	// FieldValidation says how undeclared fields of an intent are handled, like the query parameter fieldValidation.
	// Undeclared fields of live objects and updates never stop a write (spec rule 1.3).
	//
	//	metav1.FieldValidationStrict  an error with the path of each; the empty string means the same
	//	metav1.FieldValidationWarn    they are removed from the intent, with a [Warning] for each
	//	metav1.FieldValidationIgnore  they are removed from the intent
	FieldValidation string
	// Empty takes the place of live if an object is created; nil means an object that has only an apiVersion and a
	// kind. If an update creates an object, the manager of the update does not own the fields that have the same values
	// in Empty. For a server with Go structs, Empty is the zero value of the struct. Empty is not changed.
	Empty runtime.Object
	// Semantics decide which values are equal: nil means compatible semantics, as in upstream. With typed.Canonical,
	// values with the same meaning are equal. An apply of a value that has the same meaning as live's value then causes
	// no conflict and does not change the object (spec rule 11.1).
	Semantics *typed.Semantics
	// Cap is the maximum number of Update entries of an object; 0 means 10.
	Cap int
	// Clock returns the time of a write; nil means time.Now.
	Clock func() time.Time
	// Warnings is called for entries that are kept because they can't be compared, and for fields that are removed from
	// an intent because of FieldValidation. It must be safe for concurrent use.
	Warnings func(Warning)
	// Errors is called by UpdateNoErrors with each error, and with the object whose fields could not be tracked. It
	// must be safe for concurrent use.
	Errors func(obj runtime.Object, err error)
}

// FieldManager applies and tracks writes to objects of one kind, at one version, through one subresource. It is safe
// for concurrent use.
type FieldManager struct {
	kind    schema.GroupVersionKind
	version string // kind's group/version
	typ     *typed.Type
	types   Types
	options Options
	// asUpstream is for hosts that use upstream's API: manager names are not checked, and errors have upstream's texts.
	asUpstream bool
	before     runtime.Object // the object before it is created
	empty      map[string]any // the tree of before if before is a Go struct of the version; only for comparisons
}

func init() {
	hooks.BeAsUpstream = func(m any) { m.(*FieldManager).asUpstream = true }
}

// New returns a FieldManager for requests with a kind at a version. It returns an error if types does not know the
// kind, or if an option is invalid, such as a Converter that is a nil pointer.
func New(kind schema.GroupVersionKind, types Types, options Options) (*FieldManager, error) {
	options.FieldValidation = cmp.Or(options.FieldValidation, metav1.FieldValidationStrict)
	options.Cap = cmp.Or(options.Cap, defaultCap)
	validations := []string{metav1.FieldValidationStrict, metav1.FieldValidationWarn, metav1.FieldValidationIgnore}
	switch {
	case gostruct.IsNil(types):
		return nil, fmt.Errorf("types: expected the types of kinds, got a nil %T", types)
	case options.Converter != nil && gostruct.IsNil(options.Converter):
		return nil, fmt.Errorf("options: expected a Converter or none, got a nil %T", options.Converter)
	case options.Empty != nil && gostruct.IsNil(options.Empty):
		return nil, fmt.Errorf("options: expected an Empty object or none, got a nil %T", options.Empty)
	case options.Cap < 0:
		return nil, fmt.Errorf("options: expected a Cap that is not negative, got %d", options.Cap)
	case !slices.Contains(validations, options.FieldValidation):
		return nil, fmt.Errorf("fieldValidation: expected Strict, Warn or Ignore, got %q", options.FieldValidation)
	}
	if options.Clock == nil {
		options.Clock = time.Now
	}
	t, err := types.Type(kind)
	switch {
	case runtime.IsNotRegisteredError(err):
		return nil, fmt.Errorf("no type for %s", kind)
	case err != nil:
		return nil, fmt.Errorf("type of %s: %w", kind, err)
	}
	m := &FieldManager{kind: kind, version: kind.GroupVersion().String(), typ: t, types: types, options: options}
	tree := map[string]any{"apiVersion": m.version, "kind": kind.Kind}
	m.before = cmp.Or[runtime.Object](options.Empty, &unstructured.Unstructured{Object: tree})
	if m.isOwnStruct(m.before) {
		m.empty, _ = gostruct.Tree(m.before, managedFieldsPath...)
	}
	return m, nil
}

// Kind returns the kind and version of the FieldManager.
func (m *FieldManager) Kind() schema.GroupVersionKind { return m.kind }

// Options returns the options of the FieldManager, including defaults.
func (m *FieldManager) Options() Options { return m.options }

// refusesUnknown reports whether undeclared fields of an intent are an error.
func (m *FieldManager) refusesUnknown() bool {
	return m.options.FieldValidation == metav1.FieldValidationStrict
}

// timestamp returns the time of a write for an entry, in whole seconds.
func (m *FieldManager) timestamp() *metav1.Time {
	return &metav1.Time{Time: m.options.Clock().UTC().Truncate(time.Second)}
}

// checkManager returns an error if servers reject the name of a manager (spec rule 2.2).
func (m *FieldManager) checkManager(name string) error {
	if err := managedfields.ValidateManager(name); err != nil && !m.asUpstream {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

func (m *FieldManager) warning(e *managedfields.Entry, err error) {
	if m.options.Warnings != nil {
		m.options.Warnings(Warning{Manager: e.Key, Version: e.APIVersion, Err: err})
	}
}

// NoneConverter changes only the apiVersion of objects, like the conversion strategy None of CustomResourceDefinitions.
// The result shares everything else with the object.
type NoneConverter struct{}

var _ Converter = NoneConverter{}

// Convert returns obj with the apiVersion of to.
func (NoneConverter) Convert(_ context.Context, obj runtime.Object, to schema.GroupVersion) (runtime.Object, error) {
	tree, err := gostruct.Tree(obj)
	if err != nil {
		return nil, err
	}
	tree = maps.Clone(tree)
	tree["apiVersion"] = to.String()
	return &unstructured.Unstructured{Object: tree}, nil
}
