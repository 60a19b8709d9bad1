package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/internal/planning"
	"github.com/tenure-ssa/tenure/internal/planning/applications"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/ownership/advice"
)

// pruneFlags are the flags that select the objects that an apply with --prune would delete: kubectl's flags, and --app.
type pruneFlags struct {
	prune bool
	all   bool
	kinds []string
	appFlags
}

func (f *pruneFlags) add(placement *placeFlags) {
	flags := placement.cmd.Flags()
	flags.BoolVar(&f.prune, "prune", false,
		"also list the objects that are no longer in the input; needs -l, --all or --app")
	flags.BoolVar(&f.all, "all", false, "with --prune: prune objects with any labels")
	flags.StringArrayVar(&f.kinds, "prune-allowlist", nil,
		"prune only objects of the kind `GROUP/VERSION/KIND`, such as core/v1/ConfigMap; may be given several times")
	f.appFlags.add(placement)
}

// check checks the flags, and returns a selection of the candidates for pruning, to which the function pruned adds the
// namespaces. With --app, c is empty, because the application selects the objects. ok is false if --prune is not set.
func (f *pruneFlags) check(selector string) (c place.Candidates, ok bool, err error) {
	switch {
	case !f.prune && (f.all || len(f.kinds) > 0 || f.app != ""):
		return c, false, errors.New("--all, --prune-allowlist and --app need --prune")
	case !f.prune:
		return c, false, nil
	case f.app != "" && (selector != "" || f.all || len(f.kinds) > 0):
		return c, false, errors.New("--app cannot be used with -l, --all or --prune-allowlist")
	case f.app != "":
		return c, true, nil
	case f.all && selector != "":
		return c, false, errors.New("--all cannot be used with -l")
	case !f.all && selector == "":
		return c, false, errors.New("--prune: expected -l, --all or --app")
	}
	if c.Selector, err = labels.Parse(selector); err != nil {
		return c, false, fmt.Errorf("-l: %w", err)
	}
	c.Kinds = place.PrunedKinds
	if len(f.kinds) > 0 {
		c.Kinds, c.MustBeServed = nil, true // a misspelled kind is an error, as in kubectl
	}
	for _, text := range f.kinds {
		parts := strings.Split(text, "/")
		if len(parts) != 3 || parts[1] == "" || parts[2] == "" {
			return c, false, fmt.Errorf("--prune-allowlist: expected GROUP/VERSION/KIND, got %q", text)
		}
		if parts[0] == "core" {
			parts[0] = ""
		}
		c.Kinds = append(c.Kinds, schema.GroupVersionKind{Group: parts[0], Version: parts[1], Kind: parts[2]})
	}
	return c, true, nil
}

// pruned returns the objects that were applied before and are missing from the input. With an application, these are
// its objects. Otherwise, they are objects with the annotation of kubectl apply or with an Apply entry of the
// manager.
func (f *planFlags) pruned(
	p place.Place, c place.Candidates, app *applications.Application,
) (out []planning.Pruned, err error) {
	var targets []*place.Target
	if app != nil {
		targets, err = f.pruning.objects(&f.placeFlags, p, app)
	} else {
		c.Namespaces, c.Concurrency = place.Namespaces(c.Except), f.concurrency
		if targets, err = p.Candidates(f.env.Context, c); meta.IsNoMatchError(err) {
			err = fmt.Errorf("--prune-allowlist: %w", err)
		}
	}
	for _, t := range targets {
		switch {
		case c.Except[place.KeyOf(t)] || document.TextAt(t.Object, "deletionTimestamp") != "":
		case app != nil && app.Kept(t) != "":
			fmt.Fprintf(f.env.Stderr, "note: %s is kept: %s\n", t.Title(), printable.Text(app.Kept(t)))
		case app != nil:
			out = append(out, planning.Pruned{Target: t, By: []string{f.manager}, Application: app.Source})
		default:
			if applied := planning.Applied(t, f.manager); applied.By != nil {
				out = append(out, applied)
			}
		}
	}
	slices.SortFunc(out, func(a, b planning.Pruned) int { // deletions that delete other objects too come first
		return cmp.Or(cmp.Compare(severity(a), severity(b)), cmp.Compare(a.Reference(), b.Reference()),
			cmp.Compare(a.Namespace, b.Namespace))
	})
	return out, err
}

// application returns the application that --app names.
func (f *planFlags) application(p place.Place) (*applications.Application, error) {
	app, err := f.pruning.readApp(&f.placeFlags, p)
	switch {
	case err != nil:
		return nil, err
	case app.Elsewhere != "":
		return nil, fmt.Errorf("--app %s: --prune would delete objects of %s, but the application's objects are in "+
			"another cluster, %s: plan there, with the kubeconfig of that cluster, and with -l or --all instead of "+
			"--app", f.pruning.app, p, printable.Text(app.Elsewhere))
	case app.ApplySet == nil:
		return app, nil
	}
	if tool := app.ApplySet.Tooling; !app.IsNew() && tool != kubectlManager {
		return nil, fmt.Errorf("--app %s: expected an ApplySet of kubectl, got an ApplySet of %q", f.pruning.app, tool)
	}
	return app, nil
}

// checkNamed returns an error if there are targets in unnamed. An apply would add their objects to an ApplySet whose
// parent does not name their kind or namespace, so no later prune would find them. Unlike this command, kubectl extends
// the parent before it applies.
func (f *planFlags) checkNamed(unnamed []*place.Target) error {
	if len(unnamed) == 0 || f.live != nil {
		return nil
	}
	var titles []string
	known := append(clusterFlags(), "filename", "kustomize", "recursive", "field-manager", "force-conflicts", "namespace")
	parts := strings.Split(f.pruning.app, "/")
	flags := flagsOf(f.cmd, func(name string) bool { return slices.Contains(known, name) })
	isElsewhere := false
	for _, t := range unnamed {
		titles = append(titles, t.Title())
		isElsewhere = isElsewhere || len(parts) > 2 && t.Namespace != "" && t.Namespace != parts[1]
	}
	if len(parts) > 2 && f.namespace() == "" && !isElsewhere {
		flags = append(flags, "--namespace", parts[1])
	}
	way := "run: KUBECTL_APPLYSET=true kubectl apply --server-side --prune" +
		shellArguments(append([]string{"--applyset=" + parts[0] + "/" + parts[len(parts)-1]}, flags...))
	namespace := ""
	switch {
	case f.store != "":
		way = "use a cluster and kubectl apply"
	case isElsewhere && f.namespace() == "":
		namespace = parts[1]
	}
	return errors.New(advice.ExtendSet(titles, way, namespace).Why)
}

// severity orders deletions by their effect: a lower number is more severe.
func severity(p planning.Pruned) int {
	switch {
	case p.Kind.GroupKind() == place.NamespaceKind || p.Kind.GroupKind() == place.DefinitionKind:
		return 0
	case p.Takes() != "":
		return 1
	}
	return 2
}
