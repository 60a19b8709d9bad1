package resources

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldpath"
)

// An Object is what a server stores and answers: a Go struct of a built-in kind,
// or an *unstructured.Unstructured of any other.
type Object interface {
	runtime.Object
	metav1.Object
}

// A Kind is how the objects of one resource behave at one version. All objects
// that it is given and returns are of that version. It is safe for concurrent
// use.
type Kind interface {
	// New returns an object before it is created, with its apiVersion and kind.
	New() Object

	// List returns a list of objects of the kind.
	List(items []Object, list metav1.ListMeta) runtime.Object

	// Serializers are the representations that bodies and answers may have.
	Serializers() []runtime.SerializerInfo

	// Admit makes a decoded body an object of this kind, with the defaults set:
	// it converts from other versions where clients may send them and refuses
	// other kinds. unknown are fields that it dropped because the schema does not
	// declare them, as messages for a client. What it is given is its own.
	Admit(decoded runtime.Object) (obj Object, unknown []string, err error)

	// DecodeStored reads what EncodeStored wrote; the object has the defaults of
	// today.
	DecodeStored(data []byte) (Object, error)
	// EncodeStored returns an object as JSON, at the version that is stored.
	EncodeStored(obj Object) ([]byte, error)

	// Fields returns the field manager of a subresource, "" for the object.
	Fields(subresource string) (*fieldmanager.FieldManager, error)
	// Replicas returns the path of the scale subresource's replicas at each
	// version of the kind, by group/version.
	Replicas() map[string]fieldpath.Path
	// Scale and SetScale read and write the scale subresource.
	Scale(obj Object) (replicas, ready int32, selector string, err error)
	SetScale(obj Object, replicas int32) error

	// PrepareCreate and PrepareUpdate undo what a client may not write through
	// a subresource ("" for the object), and set what follows from the write,
	// such as the generation. obj is changed in place, live is not. The context of a
	// creation has the user.
	PrepareCreate(ctx context.Context, obj Object)
	PrepareUpdate(obj, live Object, subresource string)

	// Unconditional reports whether an update may leave out the resourceVersion
	// of what it replaces.
	Unconditional() bool

	// CreatesOnUpdate reports whether an update makes an object that is not there.
	CreatesOnUpdate() bool

	// Grace returns how many seconds an object stays after it is deleted, by what
	// the delete asks for (nil: nothing); graceful is false for kinds that go at once.
	Grace(obj Object, asked *int64) (seconds int64, graceful bool)

	// AnswersDeleted reports whether a delete is answered with the object that it
	// took away, in the place of a Status.
	AnswersDeleted() bool

	// Validate says what is wrong with obj, which is about to be stored in the
	// place of live (nil: created) through a subresource; warnings are for the
	// client of a write that goes through.
	Validate(ctx context.Context, obj, live Object, subresource string) (errs field.ErrorList, warnings []string)

	// Selectable returns the values of the fields that field selectors may name.
	Selectable(obj Object) fields.Set
	// SelectableField returns a field's own name, or an error for the client when
	// selectors may not name it.
	SelectableField(name, value string) (string, string, error)

	// Strategic returns a Go struct whose tags say how strategic merge patches
	// merge; nil where there are no such patches.
	Strategic() any

	// Table returns the columns that show objects of this kind.
	Table() Columns
}

// Columns show objects as the rows of a table.
type Columns interface {
	Definitions() []metav1.TableColumnDefinition
	// Cells returns the values of one row, a value for each column.
	Cells(obj Object) ([]any, error)
}

// A Concluder are Columns of a kind whose objects come to an end: their rows say so.
type Concluder interface {
	// Conditions returns what is to be said of the row of an object, which may be
	// nothing.
	Conditions(obj Object) []metav1.TableRowCondition
}

// A VersionError says that a body is of another version than the request's.
type VersionError struct {
	Got, Expected schema.GroupVersion
}

func (e *VersionError) Error() string {
	return "the API version in the data (" + e.Got.String() + ") does not match the expected API version (" + e.Expected.String() + ")"
}
