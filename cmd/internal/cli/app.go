package cli

import (
	"fmt"
	"strings"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/internal/planning/applications"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/internal/printable"
)

// appFlags select the objects of an application.
type appFlags struct{ app string }

func (f *appFlags) add(placement *placeFlags) {
	placement.cmd.Flags().StringVar(&f.app, "app", "", "objects of the application `KIND/NAME` or KIND/NAMESPACE/NAME: a "+
		"Flux kustomization or helmrelease, an Argo CD application, the parent of an ApplySet, or a Helm release "+
		"(helm/NAME)")
	placement.complete(func([]string) []string { return placement.applications() }, "app")
}

// readApp reads the application of --app.
func (f *appFlags) readApp(placement *placeFlags, p place.Place) (*applications.Application, error) {
	namespace := placement.namespace()
	var err error
	if c := place.ClusterOf(p); c != nil && namespace == "" {
		namespace, err = c.Client.Namespace()
	}
	var ref applications.Ref
	if err == nil {
		ref, err = applications.Parse(f.app, namespace)
	}
	var app *applications.Application
	if err == nil {
		app, err = applications.Read(placement.env.Context, p, ref)
	}
	if err != nil {
		return nil, fmt.Errorf("--app %s: %w", f.app, err)
	}
	return app, nil
}

// objects returns the objects of an application, and prints which of them do not exist.
func (f *appFlags) objects(
	placement *placeFlags, p place.Place, app *applications.Application,
) ([]*place.Target, error) {
	targets, missing, err := app.Objects(placement.env.Context, p, defaultConcurrency)
	if len(missing) > 0 {
		fmt.Fprintf(placement.env.Stderr, "note: %s names %s: %s\n", printable.Text(app.Source),
			printable.Counted(len(missing), "object that does not exist", "objects that do not exist"),
			strings.Join(missing, ", "))
	}
	return targets, err
}

// members returns the objects of the application that --app names.
func (f *appFlags) members(placement *placeFlags, p place.Place) ([]*place.Target, error) {
	app, err := f.readApp(placement, p)
	if err == nil && app.IsNew() {
		err = fmt.Errorf("--app %s: %w", f.app, app.ApplySet.NotFound)
	}
	if err != nil {
		return nil, err
	}
	switch isMove := placement.cmd.Flags().Lookup("yes") != nil; {
	case app.Elsewhere != "" && isMove:
		return nil, fmt.Errorf("--app %s: cannot move fields of %s: the application's objects are in another cluster, "+
			"%s; use the kubeconfig of that cluster, and select the objects by name or with -l", f.app, p,
			printable.Text(app.Elsewhere))
	case app.Elsewhere != "":
		fmt.Fprintf(placement.env.Stderr, "note: --app %s: its objects are in another cluster, %s; this command reads "+
			"%s\n", f.app, printable.Text(app.Elsewhere), p)
	}
	return f.objects(placement, p, app)
}

// applications returns the applications in the place, for completions.
func (f *placeFlags) applications() (out []string) {
	_ = f.withPlace(process.NoStore, func(p place.Place) error {
		all, _ := applications.List(f.env.Context, p, "")
		for _, ref := range all {
			out = append(out, ref.String())
		}
		return nil
	})
	return out
}
