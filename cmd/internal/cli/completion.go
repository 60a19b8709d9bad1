package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
)

// complete completes KIND, KIND NAME and KIND/NAME with the objects of the place. On an error it
// completes nothing.
func (f *objectFlags) complete(
	env *process.Env, cmd *cobra.Command, args []string, text string,
) ([]string, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp
	if f.files != nil {
		return nil, directive
	}
	p, err := f.place.open(env, cmd, nil, place.EmptyStore)
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
func kindsIn(ctx context.Context, p place.Place) []string {
	switch p := p.(type) {
	case *place.Cluster:
		return p.Client.Resources()
	case *place.Store:
		return p.Resources(ctx)
	}
	return nil
}
