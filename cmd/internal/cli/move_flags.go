package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/view"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// sender is the field manager of patches of managed fields. It gains no ownership.
const sender = "tenure"

// keyFlags are the flags that select entries of a manager.
type keyFlags struct {
	key       managedfields.Key
	operation string
	prefix    string
}

func (f *keyFlags) add(env *process.Env, cmd *cobra.Command, prefix, role string) {
	f.prefix = prefix
	flags := cmd.Flags()
	flags.StringVar(&f.key.Manager, prefix, "", "`NAME` of the manager "+role)
	flags.StringVar(&f.operation, prefix+"-operation", "", "`OPERATION` of the entry: Apply or Update")
	flags.StringVar(&f.key.Subresource, prefix+"-subresource", "", "`NAME` of the entry's subresource: status, scale")
	completeChoices(env, cmd, prefix+"-operation", "Apply", "Update")
}

func (f *keyFlags) addVersion(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.key.APIVersion, f.prefix+"-version", "",
		"API `VERSION` of an Update's entry, such as apps/v1")
}

// targetKey returns the key of the entry that fields move to. If the flag of the subresource is set, even to the empty
// one, which is the main resource, and no operation is named, the entry is an Apply.
func (f *keyFlags) targetKey(cmd *cobra.Command) (managedfields.Key, error) {
	if f.operation == "" && cmd.Flags().Changed(f.prefix+"-subresource") {
		f.operation = string(metav1.ManagedFieldsOperationApply)
	}
	return f.managerKey()
}

func (f *keyFlags) managerKey() (managedfields.Key, error) {
	if f.key.Manager == "" {
		return f.key, fmt.Errorf("--%s: the name is missing", f.prefix)
	}
	switch f.key.Operation = metav1.ManagedFieldsOperationType(f.operation); f.key.Operation {
	case "", metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate:
		return f.key, nil
	}
	return f.key, fmt.Errorf("--%s-operation: expected Apply or Update, got %q", f.prefix, f.operation)
}

// checkVersion rejects a version for other operations than the given ones: an applier has one
// entry for all versions.
func (f *keyFlags) checkVersion(operations ...metav1.ManagedFieldsOperationType) error {
	if f.key.APIVersion != "" && !slices.Contains(operations, f.key.Operation) {
		return fmt.Errorf("--%[1]s-version needs --%[1]s-operation Update", f.prefix)
	}
	return nil
}

// chosenFields are the flags that choose fields.
type chosenFields struct {
	fields []string
	all    bool
}

func (f *chosenFields) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.fields, "field", nil,
		"the field at `PATH`, such as .spec.replicas, and all fields in it; may be given several times")
	cmd.Flags().BoolVar(&f.all, "all", false, "all fields of the manager")
}

func (f *chosenFields) checkChoice() error {
	if f.all == (len(f.fields) > 0) {
		return errors.New("no fields: expected --field or --all")
	}
	return nil
}

// ownedBy returns the fields of the entries that a key selects. found is false if it
// selects none.
func ownedBy(t *place.Target, from managedfields.Key) (owned *fieldpath.Set, found bool, err error) {
	return ownedWhere(t, func(k managedfields.Key) bool { return ownership.Selects(from, k) })
}

// ownedWhere returns the fields of the entries whose keys are selected. found is false if
// none is. The fields of an entry that can't be decoded are left out.
func ownedWhere(
	t *place.Target, isSelected func(managedfields.Key) bool,
) (owned *fieldpath.Set, found bool, err error) {
	entries, _, err := managedfields.Read(place.Wrap(t.Object))
	if err != nil {
		return nil, false, err
	}
	for i := range entries {
		if !isSelected(entries[i].Key) {
			continue
		}
		found = true
		if fields, err := entries[i].Fields(); err == nil {
			owned = owned.Union(fields)
		}
	}
	return owned, found, nil
}

// ownedFields returns the chosen fields among those that the entries of a key own; nil for all.
func (f *chosenFields) ownedFields(t *place.Target, from managedfields.Key) (*fieldpath.Set, error) {
	owned, found, err := ownedBy(t, from)
	if err != nil {
		return nil, err
	}
	if !found {
		such := ""
		if from != (managedfields.Key{Manager: from.Manager}) {
			such = "such "
		}
		return nil, fmt.Errorf("%w: manager %q has no %sentry", errNothing, from.Manager, such)
	}
	if f.all {
		return nil, nil
	}
	fields, err := namedFields(f.fields, owned)
	var none *fieldError
	if errors.As(err, &none) && len(none.found) == 0 {
		return nil, fmt.Errorf("%w: manager %q does not own %s", errNothing, from.Manager, none.text)
	}
	return fields, err
}

// makeMoves makes moves on a target.
func makeMoves(
	ctx context.Context, env *process.Env, t *place.Target, moves ...ownership.Move,
) (moveResult, error) {
	result, err := t.Mover(env).Do(ctx, place.Wrap(t.Object), moves...)
	if err != nil {
		return moveResult{}, err
	}
	patch, err := result.Patch()
	if err != nil && !errors.Is(err, managedfields.ErrNoResourceVersion) {
		return moveResult{}, err
	}
	return moveResult{
		object: result.Object, patch: patch, manager: sender,
		preview: func(w io.Writer, p view.Palette) error { return view.PreviewMove(w, p, t, result) },
	}, nil
}

// moveFlags are the flags of a command that moves ownership.
type moveFlags struct {
	objectFlags
	dryRun      bool
	unchanged   bool
	summary     bool
	concurrency int
	confirm     view.Confirmation
	format      string
}

func (f *moveFlags) add(env *process.Env, cmd *cobra.Command) {
	f.objectFlags.add(env, cmd)
	addDryRun(cmd, &f.dryRun, true, "show what would be done, and change nothing")
	cmd.Flags().BoolVarP(&f.confirm.Yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&f.unchanged, "show-unchanged", false, "list unchanged objects too, of several")
	cmd.Flags().BoolVar(&f.summary, "summary", false, "only count the objects")
	addConcurrency(cmd, &f.concurrency)
	addFormat(env, cmd, &f.format, moveFormats...)
}

var moveFormats = []string{"yaml", "json", "name", "patch"}

// moveHelp ends the help of every command that moves ownership.
const moveHelp = `
Objects are chosen as for blame, see tenure blame --help. A preview shows which
managers gain and lose which fields, and what their next applies will then delete or
take back. Only the managed fields of the objects change. In a cluster or a store,
the command asks before it writes, and writes only objects that have not changed
since. With several objects, those with nothing to move stay as they are, and are
counted, not listed, unless --show-unchanged is given. With --live,
the resulting objects are printed. -o patch prints the JSON Patch for a server,
which fails if the object's resourceVersion has changed.

Exit status: 0 if all is done, or nothing was left to do; 1 on any error, if it was
not confirmed, or if an object that was named has nothing to move.`

// moveObjects moves ownership in all objects. done is the verb of a finished move, such as transferred.
func (f *moveFlags) moveObjects(
	env *process.Env,
	cmd *cobra.Command,
	args []string,
	done string,
	move moverFunc,
) error {
	if err := checkFormat(f.format, moveFormats...); err != nil {
		return err
	}
	if f.summary && (f.format != "" || f.unchanged) {
		return errors.New("--summary only counts: --output and --show-unchanged do not go with it")
	}
	if err := checkConcurrency(f.concurrency); err != nil {
		return err
	}
	writes := !f.dryRun && f.place.live == nil
	if writes {
		if err := f.confirm.CheckPossible(env); err != nil {
			return err
		}
	}
	p, targets, missing := f.open(env, cmd, args)
	if p == nil || len(targets) == 0 {
		return missing
	}
	m := &moving{moveFlags: f, env: env, place: p, move: move, done: done}
	m.planMoves(targets)
	if missing != nil {
		view.Report(env, missing)
		m.failed++
	}
	var err error
	if f.place.live != nil && !f.dryRun {
		err = m.printMoved()
	} else {
		err = m.writeMoves()
	}
	if err = errors.Join(err, p.Close()); err == nil && m.failed > 0 {
		err = errReported
	}
	return err
}
