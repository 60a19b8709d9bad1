package blame

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Report says who owns each line of an object.
type Report struct {
	// APIVersion, Kind, Namespace and Name identify the object, as far as it says.
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	// Entries are the entries of metadata.managedFields, in its order.
	Entries []Entry `json:"entries"`
	// Problem is why metadata.managedFields can't be read at all; empty if it can.
	Problem string `json:"problem,omitempty"`
	// Lines are the lines of the object's YAML, as Options has them.
	Lines []Line `json:"lines"`
}

// Title names the object, as in Deployment default/web. It may have any text, as objects do.
func (r *Report) Title() string {
	name := r.Name
	if r.Namespace != "" {
		name = r.Namespace + "/" + name
	}
	return strings.TrimSpace(r.Kind + " " + name)
}

// Owner is the header of an entry of metadata.managedFields.
type Owner struct {
	// Entry is its position in metadata.managedFields, from 0.
	Entry int `json:"entry"`
	// Manager is the manager's name.
	Manager string `json:"manager"`
	// Operation is Apply or Update.
	Operation metav1.ManagedFieldsOperationType `json:"operation"`
	// Subresource is status, scale …, or empty for the object itself.
	Subresource string `json:"subresource,omitempty"`
	// APIVersion is the group and version that the fields are of.
	APIVersion string `json:"apiVersion"`
	// Time is when the manager last changed the object or what it owns; nil if the entry has none.
	Time *metav1.Time `json:"time,omitempty"`
	// Age is the time since then, as kubectl writes it: 5m, 3d4h. It is empty if Time or Options.Now is missing.
	Age string `json:"age,omitempty"`
}

// How returns the operation and subresource, as in Update/status.
func (o *Owner) How() string {
	if o.Subresource == "" {
		return string(o.Operation)
	}
	return string(o.Operation) + "/" + o.Subresource
}

// age returns the age, or the time in RFC 3339 if there are no ages; empty for none.
func (o *Owner) age() string {
	if o.Age != "" || o.Time == nil {
		return o.Age
	}
	return o.Time.UTC().Format(time.RFC3339)
}

// MaxOwners is the number of owners of one line that Text shows; it counts the others. A report has all.
const MaxOwners = 20

// MaxAbsent is the largest number of paths in Entry.Absent.
const MaxAbsent = 100

// Entry is an entry of metadata.managedFields, with figures about its fields.
type Entry struct {
	Owner
	// Fields is the number of paths in the entry.
	Fields int `json:"fields"`
	// Lines is the number of lines of the object's YAML that show a field of the entry.
	Lines int `json:"lines"`
	// AbsentCount is the number of its paths that are not in the object, and Absent are the first MaxAbsent of them.
	AbsentCount int `json:"absentCount,omitempty"`
	// Problem is why the entry can't be read; empty if it can. Such an entry owns nothing here, and has only the parts
	// of its header that can be read.
	Problem string           `json:"problem,omitempty"`
	Absent  []fieldpath.Path `json:"absent,omitempty"`
}

// Line is a line of an object's YAML.
type Line struct {
	// Number counts the lines of the object, from 1.
	Number int `json:"number"`
	// Last is the number of the last line of the value that begins in this line.
	Last int `json:"last"`
	// Text is the line itself, without the end of line.
	Text string `json:"text"`
	// Continued reports that the line continues the field of the line before.
	Continued bool `json:"continued,omitempty"`
	// Fields are the fields in the line, outermost first: in most lines one field, in the first line of a list item the
	// item and its first field. It is empty only for an object without fields.
	Fields []Field `json:"fields"`
}

// Field returns the innermost field of the line; nil if it has none.
func (l *Line) Field() *Field {
	if len(l.Fields) == 0 {
		return nil
	}
	return &l.Fields[len(l.Fields)-1]
}

// Field is a field or an item of an object.
type Field struct {
	// Path is the path of the field. The element of a list item is as in the entries, or else as in the schema.
	Path fieldpath.Path `json:"path"`
	// Kind is the kind of its value.
	Kind Kind `json:"kind"`
	// State is how it is owned.
	State State `json:"state"`
	// Owners own it: directly if State is Owned, through the atomic list or map,
	// or the item, around it if it is Whole. They are the ones in Report.Entries, in their order.
	Owners []*Owner `json:"owners,omitempty"`
}

// Kind is the kind of a value, and how it merges.
type Kind string

const (
	// Value is a scalar, a null, or an empty list or map.
	Value Kind = "value"
	// Map is a struct or map whose entries are owned one by one.
	Map Kind = "map"
	// KeyedList is a list whose items are owned by their keys.
	KeyedList Kind = "keyed list"
	// Set is a list whose items are owned by their values.
	Set Kind = "set"
	// Atomic is a list or map that is owned as a whole.
	Atomic Kind = "atomic"
	// List is a list of an unknown kind.
	List Kind = "list"
)

// State is how a field is owned.
type State string

const (
	// Owned: an entry has exactly this path.
	Owned State = "owned"
	// Whole: it is inside an atomic list or map that is owned, or inside one of duplicate items that are owned.
	Whole State = "whole"
	// Parent: it is not owned itself, but something in it is.
	Parent State = "parent"
	// Exempt: it never has an owner; see managedfields.Unowned.
	Exempt State = "exempt"
	// Unowned: neither it nor anything in it has an owner.
	Unowned State = "unowned"
)
