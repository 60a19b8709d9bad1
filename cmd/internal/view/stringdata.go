package view

import (
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/internal/secrets"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// StringData is what the stringData of a Secret does to a field of data: it overwrites the value of an owner, without a
// conflict, or, with no owner, the field stays although the intent dropped it.
type StringData struct {
	Field fieldpath.Path
	Owner managedfields.Key
}

// StringData says what an apply of a Secret does through stringData, which servers move to data without a look at who owns
// that: the values of others that it overwrites without a conflict, and the keys that the intent dropped, whose values
// stay.
func (p *Planned) StringData() (out []StringData) {
	if p.Desired.Object == nil || !secrets.Is(p.Tree) {
		return nil
	}
	list, _, err := managedfields.Read(place.Wrap(p.Desired.Object))
	if err != nil {
		return nil
	}
	given, _ := p.Tree["stringData"].(map[string]any)
	data, _ := p.Desired.Object["data"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(given)) {
		path := fieldpath.Fields("data", key)
		text, _ := given[key].(string)
		if live, ok := data[key]; !ok || live == base64.StdEncoding.EncodeToString([]byte(text)) {
			continue
		}
		for i := range list {
			if list[i].Manager != p.Desired.Manager && list[i].Owned().Has(path) {
				out = append(out, StringData{path, list[i].Key})
			}
		}
	}
	mine := list.Get(managedfields.KeyOf(p.Desired.Manager, metav1.ManagedFieldsOperationApply, "", ""))
	if mine == nil {
		return out
	}
	intended := p.Kind.Typ.FieldSet(p.Tree)
	for _, key := range slices.Sorted(maps.Keys(data)) {
		path := fieldpath.Fields("data", key)
		was := fieldpath.Fields("stringData", key)
		isDecided := func(d Decided) bool { return d.Path.Equal(path) }
		if slices.ContainsFunc(p.Decided, isDecided) {
			continue // it is left to its owner
		}
		if mine.Owned().Has(was) && !mine.Owned().Has(path) && !intended.Has(was) && !intended.Has(path) {
			out = append(out, StringData{Field: path})
		}
	}
	return out
}

// WriteStringData writes what an apply does through stringData, and the command that lets the next apply remove what stays.
func (v PlanView) WriteStringData(w io.Writer, p *Planned) {
	for _, one := range p.StringData() {
		if one.Owner.Manager != "" {
			fmt.Fprintf(w, "  stringData overwrites %s of %s without a conflict: servers do not look who owns data\n",
				printable.Text(one.Field.Short()), describeKey(one.Owner))
			continue
		}
		fmt.Fprintf(w, "  %s stays: stringData set it, and no apply of %q removes it\n    to let it: %s\n",
			printable.Text(one.Field.Short()), p.Desired.Manager, v.Suggest(p.adopt(one.Field)...))
	}
}

// adopt returns the arguments of the command that makes the manager of the intent an owner of a field.
func (p *Planned) adopt(field fieldpath.Path) []string {
	return []string{"adopt", p.Reference(), "-n", p.Namespace, "--to", p.Desired.Manager, "--field", field.String()}
}

// stringDataJSON returns the same for programs.
func (v PlanView) stringDataJSON(p *Planned) (out []stringDataJSON) {
	for _, one := range p.StringData() {
		next := stringDataJSON{Field: one.Field.String(), Overwrites: one.Owner.Manager}
		if one.Owner.Manager == "" {
			next.Command = v.Suggest(p.adopt(one.Field)...)
		}
		out = append(out, next)
	}
	return out
}

// stringDataJSON is a field of data with the owner whose value stringData overwrites, or the command that lets the next
// apply remove it.
type stringDataJSON struct {
	Field      string `json:"field"`
	Overwrites string `json:"overwrites,omitempty"`
	Command    string `json:"command,omitempty"`
}
