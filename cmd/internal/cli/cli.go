// Package cli has the commands of tenure: flags, help and exit statuses, one file a command.
// Where objects are is the business of package place, how they are printed that of package
// view.
package cli

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/view"
	"github.com/tenure-ssa/tenure/internal/printable"
)

// Main runs the command with its arguments, without the name of the program, and
// returns the exit status: 0 when all is well, 1 when anything is not, and what the
// help of a command says beyond that.
func Main(env process.Env, args []string) int {
	if env.Now == nil {
		env.Now = time.Now
	}
	if env.NewUID == nil {
		env.NewUID = func() string { return string(uuid.NewUUID()) }
	}
	if env.Getenv == nil {
		env.Getenv = os.Getenv
	}
	if env.Context == nil {
		env.Context = context.Background()
	}
	if env.Terminal == nil {
		env.Terminal = view.IsTerminal
	}
	stdout, stderr := view.Guard(&env, env.Stdout), view.Guard(&env, env.Stderr)
	env.Stdout, env.Stderr = stdout, stderr
	status := execute(&env, args)
	for _, stream := range []*printable.Writer{stdout, stderr} {
		if err := stream.Close(); err != nil {
			status = max(status, 1)
		}
	}
	return status
}

// main runs the command in a world that is complete.
func execute(e *process.Env, args []string) int {
	root := newRoot(e)
	root.SetArgs(args)
	root.SetIn(e.Stdin)
	root.SetOut(e.Stdout)
	root.SetErr(e.Stderr)
	err := root.Execute()
	if err == nil {
		return 0
	}
	status := 1
	var own *statusError
	if errors.As(err, &own) {
		status = own.status
		if err = own.err; err == nil {
			return status
		}
	}
	if !errors.Is(err, errReported) {
		view.Report(e, err)
	}
	return status
}

func newRoot(env *process.Env) *cobra.Command {
	root := &cobra.Command{
		Use:   "tenure",
		Short: "Apply Kubernetes-style objects, and know who manages which field",
		Long: `Tenure applies Kubernetes-style objects as a server does (server-side apply),
without one: it merges what several managers apply, remembers for every field
who manages it, and says what is in conflict and what to do about it.

It also shows who owns what, says what an apply would do, and moves ownership
without losing fields: in a cluster, in a store, or in files.

Without a server, objects live in a store, a file called tenure.db in the current
folder unless --store names another. The built-in kinds are known from the start;
custom ones from their CustomResourceDefinitions.

Exit status: 0 when all went well, 1 on a conflict or any error; plan and conflicts
have others, see their help.`,
		Example: `  # who owns what, and what would this apply do?
  tenure blame deployment/web -n shop
  tenure plan -f deployment.yaml --field-manager web

  # the same without a cluster
  tenure apply -f deployment.yaml --field-manager web
  tenure blame deployment/web --store tenure.db
  kubectl get deploy web -o yaml --show-managed-fields | tenure blame -f -`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(flagError)
	group := func(id, title string, commands ...*cobra.Command) {
		root.AddGroup(&cobra.Group{ID: id, Title: title})
		for _, cmd := range commands {
			cmd.GroupID = id
			root.AddCommand(cmd)
		}
	}
	group("see", "See what is, and what would be:", newPlan(env), newConflicts(env), newBlame(env), newWatch(env))
	group("move", "Move ownership:", newTransfer(env), newRelease(env), newAdopt(env), newDrop(env), newRename(env),
		newHandover(env), newUpgrade(env), newDowngrade(env))
	group("store", "Keep objects in a store, and serve it:", newApply(env), newReplace(env), newGet(env), newDelete(env),
		newServe(env))
	group("check", "Check:", newTest(env), newReplay(env))
	root.AddCommand(newVersion(env))
	callBy(root, env.Name)
	return root
}
