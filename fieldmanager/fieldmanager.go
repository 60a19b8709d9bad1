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

// Types returns the types of kinds. *openapi.Registry is one. Implementations must be safe for concurrent use, and
// return the same *typed.Type for a kind as long as its schema does not change.
type Types interface {
	// Type returns the type of a kind at a version. An error for which runtime.IsNotRegisteredError is true says that
	// there is no such kind or version. After any other error, entries of that version are kept as they are.
	Type(kind schema.GroupVersionKind) (*typed.Type, error)
}

// Converter converts objects between the versions of their kind.
type Converter interface {
	// Convert returns obj at a version, as a new object or obj itself. It must not change obj: that is an object of the
	// write as it was given, or, to compare entries of other versions, an *unstructured.Unstructured without managed
	// fields that shares memory with those, whatever Go type they have. ctx is the write's. An error for which
	// runtime.IsNotRegisteredError is true says that there is no such version. Any other is temporary.
	Convert(ctx context.Context, obj runtime.Object, to schema.GroupVersion) (runtime.Object, error)
}

// Warning is a problem that did not stop a write. The host may want to log it, count it, or pass it on to the client.
type Warning struct {
	// Manager is whose entry or intent it is about.
	Manager managedfields.Key
	// Version is the API version of the entry or intent.
	Version string
	// Err says what it is: [ErrVersionGone], a *managedfields.Error or the
	// converter's error, when an entry could not be compared; a *typed.Error for
	// an undeclared field that was left out of an intent.
	Err error
}

func (w Warning) String() string {
	var unknown *typed.Error
	if errors.As(w.Err, &unknown) {
		return "unknown field " + unknown.Path.String()
	}
	return fmt.Sprintf("managed fields of %q at %s can't be compared: %v", w.Manager.Manager, w.Version, w.Err)
}

// ErrVersionGone says that an entry is of a version that no longer exists.
var ErrVersionGone = errors.New("the version does not exist")

// defaultCap is the number of Update entries that an object keeps (spec rule 2.5).
const defaultCap = 10

// Options configure a FieldManager. The zero value is for a host whose objects all have one version, and whose
// intents declare every field.
type Options struct {
	// Converter converts objects between versions. Without it, every object must be of the FieldManager's own version,
	// and entries of other versions are kept without being compared.
	Converter Converter
	// Defaulter is called by Apply, not by Update, with the merged object before it is returned. It may change the object,
	// which is a copy of its own.
	Defaulter func(runtime.Object)
	// Subresource is the subresource that is written; the entries have its name. It is empty for the main resource.
	Subresource string
	// ResetFields are, by version (group/version), the fields that a write resets to live, so that its manager never owns
	// them (spec rule 2.9).
	ResetFields map[string]fieldpath.Filter
	// FieldValidation says what becomes of fields of an intent that its type does not declare, as the query parameter
	// of a request does. Those of live objects and updates never stop a write (spec rule 1.3).
	//
	//	metav1.FieldValidationStrict  an error, with the path of each; so is the empty string
	//	metav1.FieldValidationWarn    they are left out of the intent, and each is a [Warning]
	//	metav1.FieldValidationIgnore  they are left out of the intent
	FieldValidation string
	// Empty is what an object is before it is created; nil for one with an apiVersion and a kind. Its fields are not owned
	// by the creator of the object: for a server with Go structs, it is the zero value of a struct. It is not changed.
	Empty runtime.Object
	// Semantics say which values are equal: nil is Compatible, as upstream has it; typed.Canonical makes values equal
	// that mean the same, so that managers who mean the same neither conflict nor write (spec rule 11.1).
	Semantics *typed.Semantics
	// Cap is how many Update entries an object keeps; 0 for 10.
	Cap int
	// Clock returns the time of a write; nil for time.Now.
	Clock func() time.Time
	// Warnings is called for entries that were kept because they could not be compared, and for fields that
	// FieldValidation left out. It must be safe for concurrent use.
	Warnings func(Warning)
	// Errors is called by UpdateNoErrors for an object that is stored with the managed fields of live because of an
	// error. It must be safe for concurrent use.
	Errors func(obj runtime.Object, err error)
}

// FieldManager applies and tracks writes to the objects of one kind, at one
// version, through one subresource. It is safe for concurrent use.
type FieldManager struct {
	kind    schema.GroupVersionKind
	version string // kind's group/version
	typ     *typed.Type
	types   Types
	options Options
	// asUpstream is for hosts of upstream's package: names of managers are not checked, and errors have upstream's texts.
	asUpstream bool
	before     runtime.Object // what an object is before it is created
	empty      map[string]any // the tree of before if that is a Go struct of the version, only to compare with
}

func init() {
	hooks.BeAsUpstream = func(m any) { m.(*FieldManager).asUpstream = true }
}

// New returns a FieldManager for requests of a kind at a version. It fails when types does not know the kind, and for
// options that make no sense, such as a nil pointer in place of a Converter.
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

// Kind returns the kind and version that the FieldManager is for.
func (m *FieldManager) Kind() schema.GroupVersionKind { return m.kind }

// Options returns the options of the FieldManager, with their defaults.
func (m *FieldManager) Options() Options { return m.options }

// refusesUnknown reports whether an undeclared field of an intent is an error.
func (m *FieldManager) refusesUnknown() bool {
	return m.options.FieldValidation == metav1.FieldValidationStrict
}

// timestamp returns the time of a write as entries have it, in whole seconds.
func (m *FieldManager) timestamp() *metav1.Time {
	return &metav1.Time{Time: m.options.Clock().UTC().Truncate(time.Second)}
}

// checkManager returns an error for the name of a manager that no server accepts (spec rule 2.2).
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

// NoneConverter converts by setting the apiVersion and nothing else: the
// strategy None of CustomResourceDefinitions. It shares the rest of the object.
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
