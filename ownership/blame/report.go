package blame

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Report says who owns each line of an object.
type Report struct {
	// APIVersion, Kind, Namespace and Name identify the object, as far as it says.
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	// Entries are those of metadata.managedFields, in its order.
	Entries []Entry `json:"entries"`
	// Problem says why metadata.managedFields could not be read at all; empty when
	// it could.
	Problem string `json:"problem,omitempty"`
	// Lines are the lines of the object's YAML that Options asks for.
	Lines []Line `json:"lines"`
}

// YAML returns the text of the lines: the object as kubectl prints it, if
// Options asks for no managers.
func (r *Report) YAML() string {
	var b strings.Builder
	for i := range r.Lines {
		b.WriteString(r.Lines[i].Text)
		b.WriteByte('\n')
	}
	return b.String()
}

// title names the object, as in Deployment default/web.
func (r *Report) title() string {
	name := r.Name
	if r.Namespace != "" {
		name = r.Namespace + "/" + name
	}
	return strings.TrimSpace(r.Kind + " " + name)
}

// Owner is an entry of metadata.managedFields, as far as it says whose it is.
type Owner struct {
	// Entry is its position in metadata.managedFields, from 0.
	Entry int `json:"entry"`
	// Manager is the manager's name.
	Manager string `json:"manager"`
	// Operation is Apply or Update.
	Operation managedfields.Operation `json:"operation"`
	// Subresource is status, scale …, or empty for the object itself.
	Subresource string `json:"subresource,omitempty"`
	// APIVersion is the group and version that the fields are of.
	APIVersion string `json:"apiVersion"`
	// Time is when the manager last changed the object or what it owns; nil when
	// the entry has none.
	Time *metav1.Time `json:"time,omitempty"`
	// Age is how long before Options.Now that was, as kubectl writes it: 5m, 3d4h.
	// It is empty when there is no Time or no Now.
	Age string `json:"age,omitempty"`
}

// how returns the operation and subresource, as in Update/status.
func (o *Owner) how() string {
	if o.Subresource == "" {
		return string(o.Operation)
	}
	return string(o.Operation) + "/" + o.Subresource
}

// when returns the time in RFC 3339; empty for none.
func (o *Owner) when() string {
	if o.Time == nil {
		return ""
	}
	return o.Time.UTC().Format(time.RFC3339)
}

// MaxOwners is how many owners of one line Text and HTML show; they say how many more
// there are. A report has all of them.
const MaxOwners = 20

// MaxAbsent is how many paths Entry.Absent lists.
const MaxAbsent = 100

// Entry is an entry of metadata.managedFields, and what of it the object shows.
type Entry struct {
	Owner
	// Fields is how many paths the entry holds.
	Fields int `json:"fields"`
	// Lines is how many lines of the object's YAML show a field that it owns.
	Lines int `json:"lines"`
	// AbsentCount is the number of its paths that lead nowhere in the object, and Absent are the first MaxAbsent.
	AbsentCount int `json:"absentCount,omitempty"`
	// Problem says why the entry could not be read; empty when it could. Such an
	// entry owns nothing here, and says of itself what could be read.
	Problem string           `json:"problem,omitempty"`
	Absent  []fieldpath.Path `json:"absent,omitempty"`
}

// Line is a line of an object's YAML.
type Line struct {
	// Number counts the lines of the object, from 1.
	Number int `json:"number"`
	// Last is the number of the last line of what begins in this one.
	Last int `json:"last"`
	// Text is the line itself, without the end of line.
	Text string `json:"text"`
	// Continued says that the line goes on with the field of the line before.
	Continued bool `json:"continued,omitempty"`
	// Fields are what the line shows, outermost first: in most lines one field,
	// in the first line of a list's item the item and the field after it. It is
	// empty only for an object without fields. The last of them is what the line
	// is about.
	Fields []Field `json:"fields"`
}

// Field returns what the line is about: the innermost of its fields; nil for a
// line that shows none.
func (l *Line) Field() *Field {
	if len(l.Fields) == 0 {
		return nil
	}
	return &l.Fields[len(l.Fields)-1]
}

// Field is a field or an item of an object.
type Field struct {
	// Path is where it is. An item of a list has its key, value or position in it
	// as the entries have, or else the schema.
	Path fieldpath.Path `json:"path"`
	// Kind is what is there.
	Kind Kind `json:"kind"`
	// State says in which way it is owned.
	State State `json:"state"`
	// Owners own it: directly when State is Owned, through the atomic list or map
	// around it when it is Whole. They are those of Report.Entries, in their order.
	Owners []*Owner `json:"owners,omitempty"`
}

// Kind is what there is at a path, and how it merges.
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
	// List is a list of which neither the entries nor a schema say more.
	List Kind = "list"
)

// State says in which way a field is owned.
type State string

const (
	// Owned: an entry holds the very path.
	Owned State = "owned"
	// Whole: it is inside an atomic list or map that is owned.
	Whole State = "whole"
	// Parent: it is not owned itself, but something in it is.
	Parent State = "parent"
	// Exempt: nobody ever owns it; see managedfields.Unowned.
	Exempt State = "exempt"
	// Unowned: neither it nor anything in it is owned.
	Unowned State = "unowned"
)
