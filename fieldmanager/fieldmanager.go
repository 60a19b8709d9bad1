package fieldmanager

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Types tells the topology of kinds. *openapi.Registry is one. Implementations
// must be safe for concurrent use, and return the same *typed.Type for a kind
// for as long as its schema does not change.
type Types interface {
	// TypeFor returns the type of a kind at a version, or nil when there is no
	// such kind or version.
	TypeFor(kind schema.GroupVersionKind) *typed.Type
}

// Converter converts objects between the versions of their kind.
type Converter interface {
	// Convert returns obj at a version, as a new object or obj itself. It must
	// not change obj. An error for which runtime.IsNotRegisteredError holds says
	// that there is no such version; any other is taken to be passing.
	Convert(obj runtime.Object, to schema.GroupVersion) (runtime.Object, error)
}

// Warning tells of something that did not stop a write and that the host may
// want to log, count, or pass on to the client.
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

// Option configures a FieldManager.
type Option func(*FieldManager)

// WithConverter sets how objects are converted. Without it, every object must be
// of the FieldManager's own version, and entries of other versions are kept
// without being compared.
func WithConverter(c Converter) Option { return func(m *FieldManager) { m.converter = c } }

// WithDefaulter sets what is done to a merged object before it is returned. f
// may change it: it is given a copy of its own.
func WithDefaulter(f func(runtime.Object)) Option { return func(m *FieldManager) { m.defaulter = f } }

// WithSubresource makes the FieldManager one for writes to a subresource, whose
// name then stands in the entries.
func WithSubresource(name string) Option { return func(m *FieldManager) { m.subresource = name } }

// WithResetFields sets, by version (group/version), which fields a write leaves
// as they are in live, so that it never comes to own them (spec rule 2.9).
func WithResetFields(byVersion map[string]fieldpath.Filter) Option {
	return func(m *FieldManager) { m.resetFields = byVersion }
}

// WithClock sets where times come from; time.Now without it.
func WithClock(now func() time.Time) Option { return func(m *FieldManager) { m.now = now } }

// WithEmptyObject sets what an object is before it is created; without it, it
// has an apiVersion and a kind. Fields that the empty object has already are not
// owned by who creates it: a server with Go structs gives the zero value of one.
// The object is not changed.
func WithEmptyObject(obj runtime.Object) Option { return func(m *FieldManager) { m.empty = obj } }

// WithCap sets how many Update entries an object keeps;
// [managedfields.DefaultCap] without it.
func WithCap(n int) Option { return func(m *FieldManager) { m.cap = n } }

// WithWarnings sets whom to tell of entries that were kept because they could
// not be compared. f must be safe for concurrent use.
func WithWarnings(f func(Warning)) Option { return func(m *FieldManager) { m.warn = f } }

// WithErrors sets whom to tell of an error that UpdateNoErrors passed over, and of which
// object: it is stored with the managed fields of live. f must be safe for concurrent use.
func WithErrors(f func(obj runtime.Object, err error)) Option {
	return func(m *FieldManager) { m.onError = f }
}

// WithSemantics sets which values are equal: nil, the default, is Compatible, as
// upstream has it; typed.Canonical makes values equal that mean the same, so that
// managers who mean the same neither conflict nor write (spec rule 11.1).
func WithSemantics(s *typed.Semantics) Option { return func(m *FieldManager) { m.semantics = s } }

// WithCache sets what decodes the fields of the entries of Go structs, and remembers
// those that come up again: [fieldpath.SharedCache] without it, which all
// FieldManagers of a process share; nil for none.
func WithCache(c *fieldpath.Cache) Option { return func(m *FieldManager) { m.cache = c } }

// UnknownFields says what becomes of fields of an intent that its type does not
// declare.
type UnknownFields uint8

const (
	// RefuseUnknown makes them an error, with the path of each. The default.
	RefuseUnknown UnknownFields = iota
	// WarnUnknown leaves them out of the intent, and tells of each as a [Warning].
	WarnUnknown
	// IgnoreUnknown leaves them out of the intent.
	IgnoreUnknown
)

// WithUnknownFields sets what becomes of undeclared fields of intents. Those of
// live objects and updates never stop a write (spec rule 1.3).
func WithUnknownFields(u UnknownFields) Option { return func(m *FieldManager) { m.unknown = u } }

// FieldManager applies and tracks writes to the objects of one kind, at one
// version, through one subresource. It is safe for concurrent use.
type FieldManager struct {
	kind        schema.GroupVersionKind
	version     string // kind's group/version
	typ         *typed.Type
	types       Types
	converter   Converter
	defaulter   func(runtime.Object)
	subresource string
	resetFields map[string]fieldpath.Filter
	now         func() time.Time
	empty       runtime.Object
	cap         int
	warn        func(Warning)
	onError     func(runtime.Object, error)
	semantics   *typed.Semantics
	unknown     UnknownFields
	cache       *fieldpath.Cache
}

// New returns a FieldManager for requests of a kind at a version. It fails when
// types does not know the kind.
func New(kind schema.GroupVersionKind, types Types, options ...Option) (*FieldManager, error) {
	m := &FieldManager{
		kind:    kind,
		version: kind.GroupVersion().String(),
		types:   types,
		now:     time.Now,
		cap:     managedfields.DefaultCap,
		cache:   fieldpath.SharedCache(),
	}
	for _, option := range options {
		option(m)
	}
	if m.typ = types.TypeFor(kind); m.typ == nil {
		return nil, fmt.Errorf("no type for %s", kind)
	}
	return m, nil
}

// timestamp returns now as it stands on the wire.
func (m *FieldManager) timestamp() *metav1.Time {
	return &metav1.Time{Time: m.now().UTC().Truncate(time.Second)}
}

// filter returns set without what a write at a version resets.
func (m *FieldManager) filter(version string, set *fieldpath.Set) *fieldpath.Set {
	if f := m.resetFields[version]; f != nil {
		return f.Filter(set)
	}
	return set
}

func (m *FieldManager) warning(e managedfields.Entry, err error) {
	if m.warn != nil {
		m.warn(Warning{Manager: e.Key, Version: e.APIVersion, Err: err})
	}
}
