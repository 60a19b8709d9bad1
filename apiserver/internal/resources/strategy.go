package resources

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// An Object is an API object: a Go struct for built-in kinds, an
// *unstructured.Unstructured for custom resources.
type Object interface {
	runtime.Object
	metav1.Object
}

// A Strategy implements the behaviour of one resource at one version. It is what
// k8s.io/apiserver's registry/rest calls the create, update and delete strategy of a
// resource, together with the resource's codec, columns and field selectors. Methods that
// registry/rest has too have the names that they have there.
//
// All objects passed in and returned are of that version, unless a method says otherwise.
// A Strategy is safe for concurrent use.
type Strategy interface {
	// New returns an empty object with its apiVersion and kind.
	New() Object

	// List returns a list of objects of the kind.
	List(items []Object, list metav1.ListMeta) runtime.Object

	// Serializers returns the media types of request and response bodies.
	Serializers() []runtime.SerializerInfo

	// Decode turns what a serializer decoded into an object of the kind and sets its
	// defaults. Objects of other versions are converted where the API server accepts
	// them, and rejected elsewhere. unknown holds a message for each field that was
	// pruned because the schema does not declare it. Decode owns its argument.
	Decode(decoded runtime.Object) (obj Object, unknown []string, err error)

	// DecodeStored decodes what EncodeStored returned and sets the current defaults.
	DecodeStored(data []byte) (Object, error)
	// EncodeStored encodes an object as JSON at the storage version.
	EncodeStored(obj Object) ([]byte, error)

	// FieldManager returns the field manager of a subresource; "" is the main resource.
	FieldManager(subresource string) (*fieldmanager.FieldManager, error)
	// ReplicasPaths returns the path of the field that the scale subresource writes, by
	// apiVersion. Versions without a scale subresource have no path, or an empty one.
	ReplicasPaths() map[string]fieldpath.Path
	// Scale returns the values of the scale subresource; ready is status.replicas.
	Scale(obj Object) (replicas, ready int32, selector string, err error)
	// SetScale sets the replicas of an object.
	SetScale(obj Object, replicas int32) error

	// PrepareForCreate resets the fields that clients must not set, such as status, and
	// sets the fields that the server computes, such as the generation. ctx carries the user.
	PrepareForCreate(ctx context.Context, obj Object)
	// PrepareForUpdate does the same for an update through a subresource ("" is the main
	// resource): fields that the subresource must not write keep their live values. It
	// changes obj and leaves live alone.
	PrepareForUpdate(obj, live Object, subresource string)
	// Canonicalize gives an object that was validated the form that a read returns after it was stored: defaults that
	// depend on what PrepareForCreate or PrepareForUpdate set, null in the place of empty lists.
	Canonicalize(obj Object)

	// AllowUnconditionalUpdate reports whether an update may omit the resourceVersion.
	AllowUnconditionalUpdate() bool

	// AllowCreateOnUpdate reports whether an update creates an object that does not exist.
	AllowCreateOnUpdate() bool

	// GracefulDelete returns the grace period of a deletion. requested is
	// gracePeriodSeconds of the DeleteOptions, or nil. graceful is false for kinds
	// without graceful deletion: their objects are deleted at once.
	GracefulDelete(obj Object, requested *int64) (seconds int64, graceful bool)

	// Validate returns the errors of obj and the warnings for the client. live is the
	// object that obj replaces, or nil on create.
	Validate(ctx context.Context, obj, live Object, subresource string) (errs field.ErrorList, warnings []string)

	// SelectableFields returns the values of the fields that field selectors may use.
	SelectableFields(obj Object) fields.Set
	// ConvertFieldLabel returns the canonical name and value of a field in a field
	// selector, or an error for fields that are not selectable.
	ConvertFieldLabel(name, value string) (string, string, error)

	// PatchMetaStruct returns a Go struct whose tags are the patch strategies of
	// strategic merge patches, or nil if the resource does not support these patches.
	PatchMetaStruct() any

	// TableColumns returns the columns of Table responses.
	TableColumns() Columns
}

// Columns convert objects to the rows of a Table.
type Columns interface {
	Definitions() []metav1.TableColumnDefinition
	// Cells returns one value for each column.
	Cells(obj Object, since Since) ([]any, error)
}

// A RowConditioner is implemented by Columns whose rows have conditions: the row of a Pod
// that finished has the condition Completed.
type RowConditioner interface {
	// Conditions returns the conditions of the row of an object, or nil.
	Conditions(obj Object) []metav1.TableRowCondition
}

// A VersionError reports a body whose apiVersion is not that of the request path.
type VersionError struct {
	Got, Expected schema.GroupVersion
}

func (e *VersionError) Error() string {
	return "the API version in the data (" + e.Got.String() + ") does not match the expected API version (" +
		e.Expected.String() + ")"
}
