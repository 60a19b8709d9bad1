package cli

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/managedfields"
)

// complete completes KIND, KIND NAME and KIND/NAME with the objects of the place. On an error it
// completes nothing.
func (f *objectFlags) complete(
	env *process.Env, cmd *cobra.Command, args []string, text string,
) ([]string, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp
	if f.place.live != nil || !f.inputs.Empty() {
		return nil, directive
	}
	p, err := f.place.open(env, cmd, process.NoStore)
	if err != nil {
		return nil, directive
	}
	defer p.Close()
	kindName, name, slash := strings.Cut(text, "/")
	prefix := kindName + "/"
	if !slash && len(args) > 0 {
		kindName, name, prefix = args[0], text, ""
	}
	var all []string
	if !slash && len(args) == 0 {
		all, name, prefix = kindsIn(cmd.Context(), p), text, ""
	} else {
		targets, _ := p.Find(cmd.Context(), place.Selection{
			Args: []string{kindName}, Namespace: *f.place.cluster.Namespace, All: f.all,
		})
		for _, t := range targets {
			all = append(all, t.Name)
		}
	}
	var out []string
	for _, candidate := range all {
		if strings.HasPrefix(candidate, name) && !slices.Contains(args, candidate) {
			out = append(out, prefix+candidate)
		}
	}
	return out, directive
}

// kindsIn returns the names of the kinds in a place.
func kindsIn(ctx context.Context, p place.Place) (out []string) {
	var kinds []cluster.Kind
	switch p := p.(type) {
	case *place.Cluster:
		kinds, _ = p.Client.Kinds()
	case *place.Store:
		kinds, _ = p.KindsStored(ctx)
	}
	for _, k := range kinds {
		out = append(out, k.Resource.GroupResource().String())
	}
	slices.Sort(out)
	return out
}

// completeNamespaces completes the flag --namespace, and completeContexts --context.
func (f *placeFlags) completeNamespaces(env *process.Env, cmd *cobra.Command, text string) []string {
	p, err := f.open(env, cmd, process.NoStore)
	if err != nil {
		return nil
	}
	defer p.Close()
	targets, _ := p.Find(cmd.Context(), place.Selection{Args: []string{"namespaces"}, All: true})
	var out []string
	for _, t := range targets {
		out = append(out, t.Name)
	}
	if s, ok := p.(*place.Store); ok {
		// Namespaces do not have to exist in a store.
		found, _ := s.Find(cmd.Context(), place.Selection{All: true})
		for _, one := range found {
			if one.Namespace != "" {
				out = append(out, one.Namespace)
			}
		}
	}
	return startingWith(out, text)
}

func (f *placeFlags) completeContexts(text string) []string {
	config, err := f.cluster.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil
	}
	return startingWith(slices.Collect(maps.Keys(config.Contexts)), text)
}

// startingWith returns the texts with a prefix, each once, sorted.
func startingWith(all []string, prefix string) []string {
	all = slices.DeleteFunc(all, func(s string) bool { return !strings.HasPrefix(s, prefix) })
	slices.Sort(all)
	return slices.Compact(all)
}

// asksForCompletions reports whether the arguments are those that the scripts of shells call the command with.
func asksForCompletions(args []string) bool {
	return len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd)
}

// completeFlag registers the completion of a flag, if the arguments ask for one: cobra keeps what is registered, and
// with it the whole command, in a variable, for as long as the process runs.
func completeFlag(env *process.Env, cmd *cobra.Command, name string, complete cobra.CompletionFunc) {
	if env.Completes {
		_ = cmd.RegisterFlagCompletionFunc(name, complete)
	}
}

// completeChoices completes a flag with one of several values.
func completeChoices(env *process.Env, cmd *cobra.Command, name string, choices ...string) {
	completeFlag(env, cmd, name, cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp))
}

// completions completes flags that a command has.
func completions(
	env *process.Env, cmd *cobra.Command,
	complete func(cmd *cobra.Command, args []string, text string) []string, flags ...string,
) {
	for _, name := range flags {
		if cmd.Flags().Lookup(name) == nil {
			continue
		}
		completeFlag(env, cmd, name,
			func(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
				return complete(cmd, args, text), cobra.ShellCompDirectiveNoFileComp
			})
	}
}

// managerFlags and pathFlags are flags that name managers and fields of the chosen objects.
var (
	managerFlags = []string{"from", "to", "manager", "field-manager"}
	pathFlags    = []string{"field", "also"}
)

// completeOwners completes the flags that name managers and fields, with those of the objects that the
// arguments or -f choose.
func (f *objectFlags) completeOwners(env *process.Env, cmd *cobra.Command) {
	of := func(names func(managedfields.Entries) []string) func(*cobra.Command, []string, string) []string {
		return func(cmd *cobra.Command, args []string, text string) []string {
			p, targets, _ := f.open(env, cmd, args)
			if p == nil {
				return nil
			}
			defer p.Close()
			var all []string
			for _, t := range targets {
				if list, _, err := managedfields.Read(place.Wrap(t.Object)); err == nil {
					all = append(all, names(list)...)
				}
			}
			return startingWith(all, text)
		}
	}
	completions(env, cmd, of(func(list managedfields.Entries) (out []string) {
		for i := range list {
			out = append(out, list[i].Manager)
		}
		return out
	}), managerFlags...)
	completions(env, cmd, of(func(list managedfields.Entries) (out []string) {
		for i := range list {
			if fields, err := list[i].Fields(); err == nil {
				for path := range fields.Leaves().All() {
					out = append(out, path.Short())
				}
			}
		}
		return out
	}), pathFlags...)
}
