package cli

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/managedfields"
)

// completeObjects completes KIND, KIND NAME and KIND/NAME with the objects of the place. It completes nothing if
// there is an error.
func (f *objectFlags) completeObjects(
	_ *cobra.Command, args []string, text string,
) (out []string, _ cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp
	if f.live != nil || f.app != "" || !f.inputs.Empty() {
		return nil, directive
	}
	kindName, name, slash := strings.Cut(text, "/")
	prefix := kindName + "/"
	if !slash && len(args) > 0 {
		kindName, name, prefix = args[0], text, ""
	}
	_ = f.withPlace(process.NoStore, func(p place.Place) error {
		var all []string
		if !slash && len(args) == 0 {
			name, prefix = text, ""
			kinds, _ := p.Kinds(f.env.Context)
			for _, k := range kinds {
				all = append(all, k.Resource.GroupResource().String())
			}
			slices.Sort(all)
		} else {
			targets, _ := place.Find(f.env.Context, p, place.Selection{
				Args: []string{kindName}, Namespace: f.namespace(), All: f.all,
			})
			for _, t := range targets {
				all = append(all, t.Name)
			}
		}
		for _, candidate := range all {
			if strings.HasPrefix(candidate, name) && !slices.Contains(args, candidate) {
				out = append(out, prefix+candidate)
			}
		}
		return nil
	})
	return out, directive
}

// namespaces returns the namespaces of the place, for completions.
func (f *placeFlags) namespaces() (out []string) {
	_ = f.withPlace(process.NoStore, func(p place.Place) error {
		targets, _ := place.Find(f.env.Context, p, place.Selection{Args: []string{"namespaces"}, All: true})
		for _, t := range targets {
			out = append(out, t.Name)
		}
		if f.store == "" {
			return nil
		}
		// In a store, objects can be in namespaces that do not exist.
		targets, _ = place.Find(f.env.Context, p, place.Selection{All: true})
		for _, t := range targets {
			if t.Namespace != "" {
				out = append(out, t.Namespace)
			}
		}
		return nil
	})
	return out
}

// contexts returns the contexts of the kubeconfig, for completions.
func (f *placeFlags) contexts() []string {
	config, err := f.cluster.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil
	}
	return slices.Collect(maps.Keys(config.Contexts))
}

// asksForCompletions reports whether the arguments come from a shell's completion script.
func asksForCompletions(args []string) bool {
	return len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd)
}

// completeFlag registers the completion of a flag, but only if the arguments ask for completions: cobra keeps
// registered functions in a global variable until the process ends, and each function refers to the whole command.
func completeFlag(env *process.Env, cmd *cobra.Command, name string, complete cobra.CompletionFunc) {
	if env.Completes {
		_ = cmd.RegisterFlagCompletionFunc(name, complete)
	}
}

// completeChoices completes a flag with fixed values.
func completeChoices(env *process.Env, cmd *cobra.Command, name string, choices ...string) {
	completeFlag(env, cmd, name, cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp))
}

// complete completes the named flags that the command has. The parameter all is a function that returns the possible
// values for the command's arguments.
func (f *placeFlags) complete(all func(args []string) []string, flags ...string) {
	for _, name := range flags {
		if f.cmd.Flags().Lookup(name) == nil {
			continue
		}
		completeFlag(f.env, f.cmd, name,
			func(_ *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
				found := slices.DeleteFunc(all(args), func(s string) bool { return !strings.HasPrefix(s, text) })
				slices.Sort(found)
				return slices.Compact(found), cobra.ShellCompDirectiveNoFileComp
			})
	}
}

// completeOwners completes the flags that name managers and fields, from the objects that the arguments or -f select.
func (f *objectFlags) completeOwners() {
	completer := func(names func(managedfields.Entries) []string) func([]string) []string {
		return func(args []string) (all []string) {
			_ = f.withObjects(args, func(_ place.Place, targets []*place.Target, _ error) error {
				for _, t := range targets {
					if list, err := managedfields.Read(place.Wrap(t.Object)); err == nil {
						all = append(all, names(list)...)
					}
				}
				return nil
			})
			return all
		}
	}
	f.complete(completer(func(list managedfields.Entries) (out []string) {
		for i := range list {
			out = append(out, list[i].Manager)
		}
		return out
	}), "from", "to", "manager", "field-manager")
	f.complete(completer(func(list managedfields.Entries) (out []string) {
		for i := range list {
			if fields, err := list[i].FieldSet(); err == nil {
				for path := range fields.Leaves().All() {
					out = append(out, path.String())
				}
			}
		}
		return out
	}), "field", "also")
}
