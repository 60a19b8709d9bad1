package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/fatih/color"
	"github.com/spf13/cobra"

	"github.com/tenure-ssa/tenure/fieldpath"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership"
)

// sender is who sends a patch of managed fields. It comes to own nothing by that.
const sender = "tenure"

// keyFlags name entries of a manager, as ownership.Move reads a Key.
type keyFlags struct {
	key       managedfields.Key
	operation string
	prefix    string
}

func (f *keyFlags) add(cmd *cobra.Command, prefix, who string) {
	f.prefix = prefix
	flags := cmd.Flags()
	flags.StringVar(&f.key.Manager, prefix, "", "`NAME` of the manager "+who)
	flags.StringVar(&f.operation, prefix+"-operation", "", "`OPERATION` of the entry: Apply or Update")
	flags.StringVar(&f.key.Subresource, prefix+"-subresource", "", "`NAME` of the entry's subresource: status, scale")
	_ = cmd.RegisterFlagCompletionFunc(prefix+"-operation",
		cobra.FixedCompletions([]string{"Apply", "Update"}, cobra.ShellCompDirectiveNoFileComp))
}

func (f *keyFlags) addVersion(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.key.APIVersion, f.prefix+"-version", "", "API `VERSION` of an Update's entry, such as apps/v1")
}

func (f *keyFlags) read() (managedfields.Key, error) {
	if f.key.Manager == "" {
		return f.key, fmt.Errorf("--%s: which manager?", f.prefix)
	}
	switch f.key.Operation = managedfields.Operation(f.operation); f.key.Operation {
	case "", managedfields.Apply, managedfields.Update:
		return f.key, nil
	}
	return f.key, fmt.Errorf("--%s-operation: expected Apply or Update, got %q", f.prefix, f.operation)
}

// ofUpdate refuses a version where it says nothing: an applier has one entry, of
// whatever version.
func (f *keyFlags) ofUpdate(operations ...managedfields.Operation) error {
	if f.key.APIVersion != "" && !slices.Contains(operations, f.key.Operation) {
		return fmt.Errorf("--%[1]s-version is that of an Update: expected --%[1]s-operation Update", f.prefix)
	}
	return nil
}

// chosenFields say which fields move.
type chosenFields struct {
	fields []string
	all    bool
}

func (f *chosenFields) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.fields, "field", nil, "the field at `PATH`, such as .spec.replicas, and all in it; may be given several times")
	cmd.Flags().BoolVar(&f.all, "all", false, "all its fields")
}

func (f *chosenFields) check() error {
	if f.all == (len(f.fields) > 0) {
		return errors.New("which fields? expected --field, or --all")
	}
	return nil
}

// ownedBy returns the fields of the entries that a key selects. ok is false if it selects none.
func ownedBy(t *target, from managedfields.Key) (*fieldpath.Set, bool, error) {
	return ownedWhere(t, func(k managedfields.Key) bool { return ownership.Selects(from, k) })
}

// ownedWhere returns what the entries own whose keys are chosen, and whether there are
// any. One that can't be decoded owns nothing.
func ownedWhere(t *target, isChosen func(managedfields.Key) bool) (owned *fieldpath.Set, found bool, err error) {
	entries, err := managedfields.Read(wrap(t.object), fieldpath.SharedCache())
	if err != nil {
		return nil, false, err
	}
	for i := range entries {
		if !isChosen(entries[i].Key) {
			continue
		}
		found = true
		if fields, err := entries[i].Fields(); err == nil {
			owned = owned.Union(fields)
		}
	}
	return owned, found, nil
}

// of returns the manager whose fields are chosen.
func (f *chosenFields) of(manager *keyFlags) (managedfields.Key, error) {
	key, err := manager.read()
	if err == nil {
		err = f.check()
	}
	return key, err
}

// among returns the chosen fields of what a key's entries own; nil for all.
func (f *chosenFields) among(t *target, from managedfields.Key) (*fieldpath.Set, error) {
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

// do makes moves on a target.
func do(env *Env, t *target, moves ...ownership.Move) (moveResult, error) {
	result, err := t.mover(env).Do(wrap(t.object), moves...)
	if err != nil {
		return moveResult{}, err
	}
	patch, err := result.Patch()
	if err != nil && !errors.Is(err, ownership.ErrNoResourceVersion) {
		return moveResult{}, err
	}
	return moveResult{
		object: result.Object, patch: patch, manager: sender,
		preview: func(w io.Writer, p palette) error { return previewMove(w, p, t, result) },
	}, nil
}

// previewMove writes what a move does, and what the next applies will then do.
func previewMove(w io.Writer, p palette, t *target, result *ownership.Result) error {
	fmt.Fprintln(w, p.paint(t.title(), color.Bold))
	list := func(head string, fields *fieldpath.Set, attribute color.Attribute) {
		if fields.Empty() {
			return
		}
		fmt.Fprintf(w, "  %s\n", head)
		for path := range fields.Leaves().All() {
			fmt.Fprintf(w, "    %s\n", p.paint(path.Short(), attribute))
		}
	}
	for _, change := range result.Changes {
		who := p.paint(describeKey(change.Manager), ofManager(change.Manager.Manager))
		list(who+" gains", change.Gains, color.FgGreen)
		list(who+" loses", change.Loses, color.FgYellow)
	}
	for _, key := range result.Dropped {
		fmt.Fprintf(w, "  %s loses its entry, which can't be decoded\n", p.paint(describeKey(key), ofManager(key.Manager)))
	}
	for _, next := range result.Next {
		who := p.paint(describeKey(next.Manager), ofManager(next.Manager.Manager))
		if next.Err != nil {
			fmt.Fprintf(w, "  what the next apply of %s does can't be told: %s\n", who, printable.Text(next.Err.Error()))
			continue
		}
		list("the next apply of "+who+" deletes, if its manifest stays as it was", next.Deletes, color.FgRed)
		list("the next apply of "+who+" takes back, if its manifest stays as it was", next.Regains, color.FgYellow)
	}
	return nil
}

// runWith runs a move of the fields that choose returns of each object.
func (f *moveFlags) runWith(env *Env, cmd *cobra.Command, args []string, done string,
	choose func(*target) (*fieldpath.Set, error), move func(*fieldpath.Set) ownership.Move) error {
	return f.run(env, cmd, args, done, func(t *target) (moveResult, error) {
		set, err := choose(t)
		if err != nil {
			return moveResult{}, err
		}
		return do(env, t, move(set))
	})
}

func newTransfer(env *Env) *cobra.Command {
	var flags moveFlags
	var from, to keyFlags
	var fields chosenFields
	cmd := &cobra.Command{
		Use:   "transfer KIND[/NAME] [NAME…] | -f FILE|- --from NAME --to NAME",
		Short: "Move fields from one manager to another",
		Long: `Transfer moves the ownership of fields, or of all fields, from one manager to
another. Who applies the fields from now on has to have them in the manifest, and
who applied them so far has to take them out.

--from alone stands for all entries of that name; --to for an applier, unless
--to-operation says Update.
` + moveHelp,
		Example: `  # bob applies the replicas from now on
  tenure transfer deployment/web --from alice --to bob --field .spec.replicas

  # whatever helm owns is Argo CD's, in all namespaces; look first
  tenure transfer deployments -A --from helm --to argocd --all --dry-run

  # a field of a list's item, of an object in hand
  tenure transfer -f live.yaml --from alice --to bob \
    --field '.spec.template.spec.containers[name=web].image'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			source, err := fields.of(&from)
			if err != nil {
				return err
			}
			heir, err := to.read()
			if err == nil {
				err = to.ofUpdate(managedfields.Update)
			}
			if err == nil {
				err = from.ofUpdate("", managedfields.Update)
			}
			if err != nil {
				return err
			}
			owned := func(t *target) (*fieldpath.Set, error) { return fields.among(t, source) }
			return flags.runWith(env, cmd, args, "transferred", owned, func(set *fieldpath.Set) ownership.Move {
				return ownership.Transfer{Fields: set, All: fields.all, From: source, To: heir}
			})
		},
	}
	flags.add(env, cmd)
	from.add(cmd, "from", "who owns them")
	from.addVersion(cmd)
	to.add(cmd, "to", "who is to own them")
	to.addVersion(cmd)
	fields.add(cmd)
	return cmd
}

func newRelease(env *Env) *cobra.Command {
	var flags moveFlags
	var from keyFlags
	var fields chosenFields
	cmd := &cobra.Command{
		Use:   "release KIND[/NAME] [NAME…] | -f FILE|- --from NAME",
		Short: "Give fields up: they stay, and no apply removes them",
		Long: `Release takes fields, or all, from a manager. They stay in the object. What nobody
else owns is nobody's from then on: whoever applies it owns it, without a conflict,
and no apply removes it.
` + moveHelp,
		Example: `  tenure release deployment/web --from alice --field .spec.replicas
  tenure release configmaps -A -l app=web --from kubectl-edit --all`,
		RunE: func(cmd *cobra.Command, args []string) error {
			source, err := fields.of(&from)
			if err == nil {
				err = from.ofUpdate("", managedfields.Update)
			}
			if err != nil {
				return err
			}
			owned := func(t *target) (*fieldpath.Set, error) { return fields.among(t, source) }
			return flags.runWith(env, cmd, args, "released", owned, func(set *fieldpath.Set) ownership.Move {
				return ownership.Release{Fields: set, All: fields.all, From: source}
			})
		},
	}
	flags.add(env, cmd)
	from.add(cmd, "from", "who gives them up")
	from.addVersion(cmd)
	fields.add(cmd)
	return cmd
}

func newAdopt(env *Env) *cobra.Command {
	var flags moveFlags
	var to keyFlags
	var fields chosenFields
	cmd := &cobra.Command{
		Use:   "adopt KIND[/NAME] [NAME…] | -f FILE|- --to NAME",
		Short: "Own what is there already, along with who owns it",
		Long: `Adopt makes a manager an owner of fields that are in the object already, along with
who owns them, or alone of what nobody owned. Its next apply has to have them, or
deletes those that nobody else owns.
` + moveHelp,
		Example: `  # who applies the namespace from now on can remove what was made by hand
  tenure adopt deployment/web -n shop --to argocd --field .spec.template

  tenure adopt -f live.yaml --to argocd --all > adopted.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			manager, err := fields.of(&to)
			if err != nil {
				return err
			}
			there := func(t *target) (*fieldpath.Set, error) { return fields.there(env, t) }
			return flags.runWith(env, cmd, args, "adopted", there, func(set *fieldpath.Set) ownership.Move {
				return ownership.Adopt{Fields: set, All: fields.all, To: manager, Version: manager.APIVersion}
			})
		},
	}
	flags.add(env, cmd)
	to.add(cmd, "to", "who is to own them")
	to.addVersion(cmd)
	fields.add(cmd)
	return cmd
}

// there returns the chosen fields of what an object has; nil for all.
func (f *chosenFields) there(env *Env, t *target) (*fieldpath.Set, error) {
	if f.all {
		return nil, nil
	}
	m, err := t.manager(env, "")
	if err != nil {
		return nil, err
	}
	known, err := m.Owned(wrap(managedfields.With(t.object, nil)))
	if err != nil {
		return nil, err
	}
	owned, _, err := ownedWhere(t, func(managedfields.Key) bool { return true })
	if err != nil {
		return nil, err
	}
	fields, err := namedFields(f.fields, known.Union(owned))
	var none *fieldError
	if errors.As(err, &none) && len(none.found) == 0 {
		return nil, fmt.Errorf("%w: no field %s in it", errNothing, none.text)
	}
	return fields, err
}

func newDrop(env *Env) *cobra.Command {
	var flags moveFlags
	var from keyFlags
	cmd := &cobra.Command{
		Use:   "drop KIND[/NAME] [NAME…] | -f FILE|- --from NAME",
		Short: "Take everything from a manager that is gone",
		Long: `Drop removes the entries of a manager. Its fields stay in the object; what nobody
else owns is nobody's from then on.
` + moveHelp,
		Example: `  tenure drop deployment/web -n shop --from old-controller
  tenure drop deployments,services -A --from old-controller --dry-run`,
		RunE: func(cmd *cobra.Command, args []string) error {
			gone, err := from.read()
			if err == nil {
				err = from.ofUpdate("", managedfields.Update)
			}
			if err != nil {
				return err
			}
			return flags.run(env, cmd, args, "dropped", func(t *target) (moveResult, error) {
				if _, err := (&chosenFields{all: true}).among(t, gone); err != nil {
					return moveResult{}, err
				}
				return do(env, t, ownership.Drop{From: gone})
			})
		},
	}
	flags.add(env, cmd)
	from.add(cmd, "from", "who is gone")
	from.addVersion(cmd)
	return cmd
}

func newRename(env *Env) *cobra.Command {
	var flags moveFlags
	var from keyFlags
	var to string
	cmd := &cobra.Command{
		Use:   "rename KIND[/NAME] [NAME…] | -f FILE|- --from NAME --to NAME",
		Short: "Give a manager another name",
		Long: `Rename gives the entries of a manager to another name. Where that has an entry of
the same operation already, the two become one.
` + moveHelp,
		Example: `  # the controller calls itself something else from now on
  tenure rename deployments -A --from flux --to kustomize-controller`,
		RunE: func(cmd *cobra.Command, args []string) error {
			old, err := from.read()
			if err == nil {
				err = from.ofUpdate("", managedfields.Update)
			}
			if err != nil {
				return err
			}
			if to == "" {
				return errors.New("--to: which name?")
			}
			return flags.run(env, cmd, args, "renamed", func(t *target) (moveResult, error) {
				if _, err := (&chosenFields{all: true}).among(t, old); err != nil {
					return moveResult{}, err
				}
				return do(env, t, ownership.Rename{From: old, To: to})
			})
		},
	}
	flags.add(env, cmd)
	from.add(cmd, "from", "as it was called")
	from.addVersion(cmd)
	cmd.Flags().StringVar(&to, "to", "", "`NAME` from now on")
	return cmd
}
