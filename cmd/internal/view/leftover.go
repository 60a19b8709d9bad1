package view

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/defaulted"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/internal/secrets"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
	"github.com/tenure-ssa/tenure/upgrade"
)

// KubectlManager is the manager of kubectl apply --server-side.
const KubectlManager = "kubectl"

// Leftover are the fields that an earlier updater owns and the intent does not have. No apply of the intent removes
// them.
type Leftover struct {
	Manager managedfields.Key
	Fields  *fieldpath.Set // leaves
	// isClientSide is true if the updater owns the annotation of client-side apply.
	isClientSide bool
}

var annotationPath = fieldpath.Fields("metadata", "annotations", fieldmanager.LastAppliedAnnotation)

// FindLeftovers finds the fields that stay although the intent does not have them. It looks only at updaters that own a
// field of the intent, or that have the name of its manager: others, such as controllers, add fields of their own.
// Defaults, and fields that another manager applied, are not leftovers.
func (p *Planned) FindLeftovers(ctx context.Context) error {
	list, _, err := managedfields.Read(place.Wrap(p.Desired.Object))
	if err != nil || !slices.ContainsFunc(list, p.isUpdater) {
		return err
	}
	t, version := p.Kind.Typ, p.Kind.GroupVersion().String()
	intended := t.FieldSet(p.Tree)
	kept := fieldpath.UnionOf(intended, managedfields.Unowned(), fieldpath.NewSet(annotationPath))
	for i := range list {
		if list[i].Operation == metav1.ManagedFieldsOperationApply {
			kept = kept.Union(list[i].Owned())
		}
	}
	for i := range list {
		e := &list[i]
		owned := t.Reconcile(e.Owned())
		if !p.isUpdater(*e) || e.Manager != p.Desired.Manager && owned.Leaves().Intersection(intended).Empty() {
			continue
		}
		beyond := owned.Leaves().Difference(kept)
		if reset := p.Fields.Options().ResetFields[version]; reset != nil {
			beyond = reset.Filter(beyond)
		}
		beyond = defaulted.Without(t, p.Desired.Object, beyond, p.Options.Defaulter)
		if !beyond.Empty() {
			p.Leftovers = append(p.Leftovers, Leftover{e.Key, beyond, owned.Has(annotationPath)})
		}
	}
	if p.Desired.Manager == KubectlManager && p.Outcome != plans.Conflict {
		return p.planMigration(ctx)
	}
	return nil
}

// isUpdater reports whether an entry is that of an Update of the object itself, at the version of the intent.
func (p *Planned) isUpdater(e managedfields.Entry) bool {
	return e.Operation == metav1.ManagedFieldsOperationUpdate && e.Subresource == "" &&
		e.APIVersion == p.Kind.GroupVersion().String()
}

// planMigration plans what kubectl apply --server-side does after the apply: it moves the fields of client-side apply,
// and applies again.
func (p *Planned) planMigration(ctx context.Context) error {
	moved, err := upgrade.ToServerSide(ctx, p.Plan.Object, upgrade.ServerSideOptions{
		Types: p.Types, Converter: p.Converter(), Manager: KubectlManager, Everything: true, KeepLastApplied: true,
	})
	if err != nil || !moved.Changed {
		return err
	}
	options := p.Options
	options.Found = nil
	second, err := plans.New(ctx, p.Fields, moved.Object, place.Wrap(p.Tree), options)
	if err != nil {
		return err
	}
	p.Migration = slices.Collect(second.Changes())
	return nil
}

// command returns the arguments of the command that lets the next apply of an intent's manager remove a leftover.
func (l *Leftover) command(p *Planned) []string {
	args := []string{"upgrade", p.Reference()}
	if p.Namespace != "" {
		args = append(args, "-n", p.Namespace)
	}
	args = append(args, "--field-manager", p.Desired.Manager)
	if !l.isClientSide {
		args = append(args, "--from", l.Manager.Manager, "--everything")
	}
	return args
}

// writeLeftovers writes what stays although the intent does not have it, and how to remove it.
func (v PlanView) writeLeftovers(w io.Writer, p *Planned) {
	if len(p.Migration) > 0 {
		fmt.Fprintf(w, "  kubectl apply --server-side takes over what kubectl apply owned, and then also changes:\n")
		v.writeChanges(w, slices.Values(p.Migration))
	}
	for _, l := range p.Leftovers {
		names := ":"
		for path := range l.Fields.All() {
			names += " " + path.Short()
		}
		if l.Fields.Len() > manyFields {
			names = ""
		}
		fmt.Fprintf(w, "  %s keeps %s beyond the manifest, which no apply of %q removes%s\n", describeKey(l.Manager),
			printable.Counted(l.Fields.Len(), "field", "fields"), p.Desired.Manager, names)
		fmt.Fprintf(w, "    to let it: %s\n", v.Suggest(l.command(p)...))
	}
}

// StringData is what the stringData of a Secret does to a field of data: it overwrites the value of an owner, without a
// conflict, or, with no owner, the field stays although the intent dropped it.
type StringData struct {
	Field fieldpath.Path
	Owner managedfields.Key
}

// StringData says what an apply of a Secret does through stringData, which servers move to data without a look at who
// owns that: the values of others that it overwrites without a conflict, and the keys that the intent dropped, whose
// values stay.
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

// WriteStringData writes what an apply does through stringData, and the command that lets the next apply remove what
// stays.
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
