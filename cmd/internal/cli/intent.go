package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/conflicts/policy"
	"github.com/tenure-ssa/tenure/internal/planning"
	"github.com/tenure-ssa/tenure/internal/planning/applications"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/planning/place"
)

// intentFlags are the flags for intents and for the place of their live objects.
type intentFlags struct {
	inputFlags
	placeFlags
	manager     string
	subresource string
	force       bool
	selector    string
	plain       bool
	policy      string
	concurrency int
	owner       *applications.Application // the application of --app; nil without it
	packs       bool                      // keep documents packed until they are planned, to save memory
}

func (f *intentFlags) add(env *process.Env, cmd *cobra.Command) {
	f.inputFlags.add(cmd, "the intents")
	addManager(cmd, &f.manager, kubectlManager, "`NAME` of the field manager")
	cmd.Flags().StringVarP(&f.selector, "selector", "l", "", "only objects with these `LABELS`, as in a=b,c!=d")
	addConcurrency(cmd, &f.concurrency)
	f.placeFlags.add(env, cmd)
}

func (f *intentFlags) addSubresource(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.subresource, "subresource", "", "write to the subresource `NAME`, status or scale; "+
		"a write to scale uses the replicas of the manifest")
	checkBefore(cmd, func() error {
		if known := []string{"", "status", place.Scale}; !slices.Contains(known, f.subresource) {
			return fmt.Errorf("--subresource: expected status or scale, got %q", f.subresource)
		}
		return nil
	})
}

// policyVariable is the environment variable that names the policy of commands that decide conflicts.
const policyVariable = "TENURE_POLICY"

func (f *intentFlags) addPolicy(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.policy, "policy", "",
		"decide conflicts by the rules in `FILE`; by default, the file that $"+policyVariable+" names")
}

// readPolicy reads the policy that --policy or the environment names. It returns nil if neither names one.
func (f *intentFlags) readPolicy() (*policy.Policy, error) {
	file := cmp.Or(f.policy, f.usedPolicy())
	switch {
	case file == "":
		return nil, nil
	case f.force && f.policy != "":
		return nil, errors.New("--force-conflicts cannot be used with --policy: it would force conflicts that the " +
			"policy gives up; do without it, and add rules with the decision force")
	case f.force:
		fmt.Fprintf(f.env.Stderr, "note: --force-conflicts forces all conflicts, whatever the policy of $%s says\n",
			policyVariable)
	}
	return readPolicy(f.env, file)
}

// kubectlManager is the default of --field-manager in most commands. It is the manager that kubectl apply uses, so that
// plans show what kubectl apply --server-side would do.
const kubectlManager = planning.KubectlManager

// withIntents reads the intents and opens the place. It closes the place after do.
func (f *intentFlags) withIntents(
	missing process.MissingStore, do func(p place.Place, docs []document.Document) error,
) error {
	if f.inputs.Empty() {
		return errors.New("no input: expected files with -f or -k")
	}
	docs, err := f.read(f.env, f.selector, f.packs)
	if err != nil {
		return err
	}
	return f.withPlace(missing, func(p place.Place) error { return do(p, docs) })
}

// noteUnmanaged prints a note that the object in a file has no managed fields, which kubectl get omits by default. If
// isUnread is true, the note also marks the output of the command as incomplete.
func noteUnmanaged(env *process.Env, t *place.Target, isUnread bool) {
	err := fmt.Errorf("%s has no managed fields: kubectl get prints them with --show-managed-fields", t.Title())
	if isUnread {
		env.NoteUnread(err)
		return
	}
	fmt.Fprintf(env.Stderr, "note: %v\n", err)
}

// takesManifests is the Args function of commands that take objects from manifests.
func takesManifests(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes manifests with -f or -k, got %q", cmd.CommandPath(), strings.Join(args, " "))
	}
	return nil
}

// options returns the options for planning documents.
func (f *intentFlags) options() planning.Options {
	return planning.Options{
		Manager: f.manager, Subresource: f.subresource, Force: f.force, Plain: f.plain, Tries: maxTries,
		Concurrency: f.concurrency, Now: f.env.Now,
		Mark: func(w *planning.Desired) error { return applications.Mark(w, f.owner) },
	}
}

// maxTries is the maximal number of ways out that a command tries with dry runs.
const maxTries = 32
