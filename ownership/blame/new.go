package blame

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/tenure-ssa/tenure/internal/fieldsets"
	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Options configure a report. By default it shows everything except metadata.managedFields and ages.
type Options struct {
	// Now is the time of the report; if it is zero, Text shows times instead of ages.
	Now time.Time
	// Type is the type of the object; nil if it is unknown.
	Type *typed.Type
	// TypeAt returns the type of the object at another API version; nil if it is unknown. TypeAt itself may be nil. A
	// list or map that is atomic at the version of an entry is owned as a whole, even if it is not atomic in Type.
	TypeAt func(apiVersion string) *typed.Type
	// OtherPaths is true if fields may have other paths at other API versions, as in kinds that a server converts.
	OtherPaths bool
	// Managers are names of managers. If there are any, the report has only the lines with fields that these managers
	// own, and the lines of the structs and lists around these fields.
	Managers []string
	// ManagedFields keeps metadata.managedFields in the object.
	ManagedFields bool
}

// New reports who owns each line of an object. obj is a plain JSON tree, such as the content of an unstructured
// object. New does not change obj, and the report shares no memory with it.
//
// New returns a typed.Errors for an object that exceeds a limit (spec rules 12.1 and 12.2) or has values that JSON
// can't represent, and another error for an object that can't be written as YAML. Malformed managed fields do not
// cause an error: see Entry.Problem and Report.Problem.
func New(obj map[string]any, o Options) (*Report, error) {
	metadata, _ := obj["metadata"].(map[string]any)
	managed := metadata["managedFields"]
	if !o.ManagedFields {
		obj = managedfields.With(obj, nil)
	}
	if err := typed.Deduced().Validate(obj, typed.Rules{AllowDuplicates: true, AllowUnknown: true}); err != nil {
		return nil, fmt.Errorf("blame: %w", err)
	}
	r := &Report{
		APIVersion: textOf(obj, "apiVersion"),
		Kind:       textOf(obj, "kind"),
		Namespace:  textOf(metadata, "namespace"),
		Name:       textOf(metadata, "name"),
	}
	cursors := r.decode(managed, o.Now)
	if o.TypeAt != nil {
		r.findWholes(cursors, obj, o.TypeAt)
	}
	text, err := printable.Marshal(obj) // as kubectl does, but with unprintable characters escaped
	if err != nil {
		return nil, fmt.Errorf("blame: the object can't be written as YAML: %w", err)
	}
	root, err := lay(obj, text)
	if err != nil {
		return nil, fmt.Errorf("blame: %w", err)
	}
	r.attribute(root, o.Type, cursors)
	r.findMayOwn(o)
	r.addLines(root, string(text))
	if len(o.Managers) > 0 {
		r.keep(o.Managers)
	}
	return r, nil
}

func textOf(m map[string]any, name string) string {
	s, _ := m[name].(string)
	return s
}

// decode decodes managed fields entry by entry, and returns the cursor of each entry at the object's root.
func (r *Report) decode(managed any, now time.Time) []cursor {
	list, ok := managed.([]any)
	if managed != nil && !ok {
		r.Problem = fmt.Sprintf("metadata.managedFields: expected a list, got %T", managed)
	}
	if n := len(list); n > limits.MaxEntries {
		r.Problem = fmt.Sprintf("metadata.managedFields: %d entries, expected at most %d", n, limits.MaxEntries)
		list = nil
	}
	cursors := make([]cursor, len(list))
	r.Entries = make([]Entry, len(list))
	for i, item := range list {
		m, _ := item.(map[string]any)
		e, c := &r.Entries[i], &cursors[i]
		c.entry = i
		e.Entry, e.Manager, e.APIVersion = i, textOf(m, "manager"), textOf(m, "apiVersion")
		e.Operation = metav1.ManagedFieldsOperationType(textOf(m, "operation"))
		e.Subresource = textOf(m, "subresource")
		record, err := managedfields.ReadEntry(item, i)
		if err == nil {
			c.below, err = record.FieldSet()
		}
		var problem *managedfields.Error // drop the position and manager, which Notes shows anyway
		if errors.As(err, &problem) {
			e.Problem = problem.Err.Error()
			continue
		}
		e.Time = record.Time
		if e.Time != nil && !now.IsZero() {
			e.Age = duration.HumanDuration(now.Sub(e.Time.Time))
		}
		e.Fields = c.below.Len()
	}
	return cursors
}

// findWholes sets the wholes of the cursors whose entries have another version than the object.
func (r *Report) findWholes(cursors []cursor, obj map[string]any, typeAt func(string) *typed.Type) {
	found := map[string]*fieldpath.Set{r.APIVersion: nil}
	for i := range cursors {
		version := r.Entries[i].APIVersion
		if _, ok := found[version]; !ok {
			found[version] = nil
			if t := typeAt(version); t != nil {
				found[version] = t.FieldSet(obj).Leaves()
			}
		}
		cursors[i].wholes = found[version]
	}
}

// findMayOwn finds the entries that have another known version and own paths that the object lacks. Such a path
// may belong to a field that has another path at the object's version and seems to have no owner there. Servers ignore
// entries of unknown versions.
func (r *Report) findMayOwn(o Options) {
	for i := range r.Entries {
		e := &r.Entries[i]
		isKnown := o.TypeAt != nil && o.TypeAt(e.APIVersion) != nil
		e.mayOwn = e.mayOwn && o.OtherPaths && e.APIVersion != r.APIVersion && isKnown
	}
}

// addAbsent handles a child of n that the object lacks. It adds the entry's paths at and below this child to the
// entry's absent paths.
func (r *Report) addAbsent(entry int, n *node, child fieldpath.Element, held fieldpath.Entry) {
	e := &r.Entries[entry]
	var absent fieldsets.Builder
	absent.Add(child, held.Member, held.Below)
	for p := range absent.Set().All() {
		e.mayOwn = e.mayOwn || slices.Concat(n.path(), p)[0] != fieldpath.FieldElement("metadata")
		if e.AbsentCount++; len(e.Absent) < MaxAbsent {
			e.Absent = append(e.Absent, slices.Concat(n.path(), p))
		}
	}
}

// keep removes all lines except the lines with fields of the given managers, and the lines of the structs and lists
// around these fields.
func (r *Report) keep(managers []string) {
	isWanted := func(o *Owner) bool { return slices.Contains(managers, o.Manager) }
	wanted := make([]bool, len(r.Lines))
	for i, line := range r.Lines {
		wanted[i] = slices.ContainsFunc(line.Fields, func(f Field) bool { return slices.ContainsFunc(f.Owners, isWanted) })
	}
	r.Lines = slices.DeleteFunc(r.Lines, func(l Line) bool { return !slices.Contains(wanted[l.Number-1:l.Last], true) })
}

// addLines makes the lines of the object from its YAML text.
func (r *Report) addLines(root *node, text string) {
	for line := range strings.Lines(text) {
		n := len(r.Lines) + 1
		r.Lines = append(r.Lines, Line{Number: n, Last: n, Text: strings.TrimSuffix(line, "\n")})
	}
	r.show(root)
	counted := make([]int, len(r.Entries)) // by entry: the last line that was counted
	for i := range r.Lines {
		line := &r.Lines[i]
		if before := r.Lines[max(i-1, 0)].Field(); len(line.Fields) == 0 && before != nil {
			line.Continued, line.Fields = true, []Field{*before}
		}
		for _, f := range line.Fields {
			for _, o := range f.Owners {
				if counted[o.Entry] != line.Number {
					counted[o.Entry] = line.Number
					r.Entries[o.Entry].Lines++
				}
			}
		}
	}
}

// show adds all children of n, and their children, to the lines in which they begin, outermost first.
func (r *Report) show(n *node) {
	for _, child := range n.children {
		line := &r.Lines[child.first]
		if len(line.Fields) == 0 {
			line.Last = child.last + 1
		}
		field := Field{Path: child.path(), Kind: child.kind, State: child.state}
		for _, entry := range child.entries {
			field.Owners = append(field.Owners, &r.Entries[entry].Owner)
		}
		if field.State == Unowned && field.Path[0] != fieldpath.FieldElement("metadata") { // the same at all versions
			for i := range r.Entries {
				e := &r.Entries[i]
				isIn := e.Subresource == "" || field.Path[0] == fieldpath.FieldElement(e.Subresource) // .status
				if e.mayOwn && isIn {
					field.State, field.MayOwn = Unknown, append(field.MayOwn, &e.Owner)
				}
			}
		}
		line.Fields = append(line.Fields, field)
		r.show(child)
	}
}
