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
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/planning/place"
)

// intentFlags are the flags for an intent and the place of its live object.
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
	packs       bool // the documents, which are planned one after the other
}

func (f *intentFlags) add(env *process.Env, cmd *cobra.Command) {
	f.inputFlags.add(cmd, "the intents")
	addManager(cmd, &f.manager, kubectlManager, "`NAME` of the field manager")
	cmd.Flags().StringVarP(&f.selector, "selector", "l", "", "only objects with these `LABELS`, as in a=b,c!=d")
	addConcurrency(cmd, &f.concurrency)
	f.placeFlags.add(env, cmd)
}

func (f *intentFlags) addSubresource(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.subresource, "subresource", "", "write to the subresource `NAME`: status, or scale, "+
		"which uses the replicas of the manifest")
	checkBefore(cmd, func() error {
		if known := []string{"", "status", place.Scale}; !slices.Contains(known, f.subresource) {
			return fmt.Errorf("--subresource: expected status or scale, got %q", f.subresource)
		}
		return nil
	})
}

// policyVariable names a policy for all commands.
const policyVariable = "TENURE_POLICY"

func (f *intentFlags) addPolicy(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.policy, "policy", "",
		"decide conflicts by the rules in `FILE`; by default, the file that $"+policyVariable+" names")
}

// readPolicy reads the policy of --policy; nil without one.
func (f *intentFlags) readPolicy() (*policy.Policy, error) {
	file := cmp.Or(f.policy, f.env.Getenv(policyVariable))
	if file == "" {
		return nil, nil
	}
	return readPolicy(f.env, file)
}

// kubectlManager is the default manager of all commands: a plan for a manager that applies nothing would be wrong.
const kubectlManager = planning.KubectlManager

// withIntents reads the intents, opens the place, and closes it after do.
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

// noteUnmanaged notes that an object of a file has no managed fields, which kubectl get leaves out.
func noteUnmanaged(env *process.Env, t *place.Target) {
	fmt.Fprintf(env.Stderr, "note: %s has no managed fields: kubectl get prints them with --show-managed-fields\n",
		t.Title())
}

// takesManifests is the Args of a command whose objects come from manifests.
func takesManifests(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes manifests with -f or -k, got %q", cmd.CommandPath(), strings.Join(args, " "))
	}
	return nil
}

// options returns how documents are planned.
func (f *intentFlags) options() planning.Options {
	return planning.Options{
		Manager: f.manager, Subresource: f.subresource, Force: f.force, Plain: f.plain, Tries: maxTries,
		Concurrency: f.concurrency, Now: f.env.Now,
	}
}

// maxTries is how many dry runs a command sends for what it suggests.
const maxTries = 32
