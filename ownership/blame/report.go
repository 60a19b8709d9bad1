package blame

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Report says who owns each line of an object.
type Report struct {
	// APIVersion, Kind, Namespace and Name identify the object; each may be empty.
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	// Entries are the entries of metadata.managedFields, in the same order.
	Entries []Entry `json:"entries"`
	// Problem is the reason why metadata.managedFields can't be read; empty if it can.
	Problem string `json:"problem,omitempty"`
	// Lines are the lines of the object's YAML that Options selects.
	Lines []Line `json:"lines"`
}

// Title names the object, as in Deployment default/web. The text is not escaped.
func (r *Report) Title() string {
	name := r.Name
	if r.Namespace != "" {
		name = r.Namespace + "/" + name
	}
	return strings.TrimSpace(r.Kind + " " + name)
}

// Owner has the manager, operation and so on of an entry of metadata.managedFields, without its fields.
type Owner struct {
	// Entry is the position of the entry in metadata.managedFields, from 0.
	Entry int `json:"entry"`
	// Manager is the manager's name.
	Manager string `json:"manager"`
	// Operation is Apply or Update.
	Operation metav1.ManagedFieldsOperationType `json:"operation"`
	// Subresource is a subresource such as status or scale, or empty for the main resource.
	Subresource string `json:"subresource,omitempty"`
	// APIVersion is the group version that the entry's fields belong to.
	APIVersion string `json:"apiVersion"`
	// Time is when the manager last changed the object; nil if the entry has no time.
	Time *metav1.Time `json:"time,omitempty"`
	// Age is the time since Time, as kubectl writes it: 5m, 3d4h. It is empty if Time or Options.Now is missing.
	Age string `json:"age,omitempty"`
}

// How returns the operation and subresource, as in Update/status.
func (o *Owner) How() string {
	if o.Subresource == "" {
		return string(o.Operation)
	}
	return string(o.Operation) + "/" + o.Subresource
}

// age returns the age or, if the report has no ages, the time in RFC 3339. It returns "" if the entry has no time.
func (o *Owner) age() string {
	if o.Age != "" || o.Time == nil {
		return o.Age
	}
	return o.Time.UTC().Format(time.RFC3339)
}

// MaxOwners is the maximal number of owners that Text shows for one line. For further owners, Text shows only their
// number. A Report has all owners.
const MaxOwners = 20

// MaxAbsent is the maximal number of paths in Entry.Absent.
const MaxAbsent = 100

// Entry is an entry of metadata.managedFields, with counts of its fields.
type Entry struct {
	Owner
	// Fields is the number of paths in the entry.
	Fields int `json:"fields"`
	// Lines is the number of lines of the object's YAML that show a field of the entry.
	Lines int `json:"lines"`
	// AbsentCount is the number of the entry's paths that do not exist in the object. Absent has the first MaxAbsent of
	// these paths.
	AbsentCount int `json:"absentCount,omitempty"`
	// Problem is the reason why the entry can't be read; empty if it can. An unreadable entry owns nothing in the
	// report, and Owner has only the parts that could be read.
	Problem string           `json:"problem,omitempty"`
	Absent  []fieldpath.Path `json:"absent,omitempty"`
	mayOwn  bool             // the absent paths may be paths of other fields at the object's version
}

// Line is a line of an object's YAML.
type Line struct {
	// Number is the number of the line in the object's YAML, from 1.
	Number int `json:"number"`
	// Last is the number of the last line of the value that begins in this line.
	Last int `json:"last"`
	// Text is the text of the line, without the newline.
	Text string `json:"text"`
	// Continued is true if the line continues the field of the previous line.
	Continued bool `json:"continued,omitempty"`
	// Fields are the fields that begin in the line, outermost first. Most lines have one field; the first line of a
	// list item has the item and its first field. The only line without fields is the line of an empty object.
	Fields []Field `json:"fields"`
}

// Field returns the innermost field of the line; nil if the line has none.
func (l *Line) Field() *Field {
	if len(l.Fields) == 0 {
		return nil
	}
	return &l.Fields[len(l.Fields)-1]
}

// Field is a field or a list item of an object.
type Field struct {
	// Path is the path of the field. Its elements for list items have the form that follows from the schema or, without
	// a schema, the form that the entries use.
	Path fieldpath.Path `json:"path"`
	// Kind is the kind of the field's value.
	Kind Kind `json:"kind"`
	// State is how the field is owned.
	State State `json:"state"`
	// Owners are the managers that own the field: directly if State is Owned; through an atomic list or map, or a
	// duplicate item, around the field if State is Whole. They point into Report.Entries, in the same order.
	Owners []*Owner `json:"owners,omitempty"`
	// MayOwn are the managers that may own the field at another version, if State is Unknown.
	MayOwn []*Owner `json:"mayOwn,omitempty"`
}

// Kind is the kind of a value, which says how the value merges.
type Kind string

const (
	// Value is a scalar, a null, or an empty list or map.
	Value Kind = "value"
	// Map is a struct or map whose fields are owned individually.
	Map Kind = "map"
	// KeyedList is a list whose items are identified by key fields and owned individually.
	KeyedList Kind = "keyed list"
	// Set is a list whose items are scalars and owned individually.
	Set Kind = "set"
	// Atomic is a list or map that is owned as a whole.
	Atomic Kind = "atomic"
	// List is a list whose merge behaviour is unknown.
	List Kind = "list"
)

// State is how a field is owned.
type State string

const (
	// Owned: an entry contains exactly the field's path.
	Owned State = "owned"
	// Whole: the field is inside an owned atomic list or map, or inside an owned duplicate item.
	Whole State = "whole"
	// Parent: the field itself is not owned, but a field in it is.
	Parent State = "parent"
	// Exempt: the field never has an owner; see managedfields.Unowned.
	Exempt State = "exempt"
	// Unowned: neither the field nor any field in it has an owner.
	Unowned State = "unowned"
	// Unknown: no entry at the object's version owns the field or a field in it, but an entry at another version may.
	Unknown State = "unknown"
)
