// Package cli is the tenure command: apply, replace, get and delete over a store
// of one's own, the pure function behind them, and the replay of traces.
//
// What a command touches of the world is in [Env], so that tests run it in process.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/tenure-ssa/tenure/internal/printable"
)

// Env is the world of a command.
type Env struct {
	// Name is what the command was called: the program's name, without its folder.
	// As kubectl-tenure it is a plugin, and calls itself kubectl tenure.
	Name           string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Dir is the folder that relative paths start from; "" for the process's own.
	Dir string
	// Now is the clock; time.Now when nil. As NewUID, it may be called from several
	// goroutines at once.
	Now func() time.Time
	// NewUID makes the uid of an object that is created; random ones when nil.
	NewUID func() string
	// Getenv reads the environment; os.Getenv when nil.
	Getenv func(string) string
	// Terminal reports whether a stream, one of the three, is a terminal; when nil,
	// files are that are one.
	Terminal func(stream any) bool
	// Context ends what runs until it is interrupted; context.Background() when nil.
	Context context.Context
	// StoreTimeout is how long to wait for a store that another process has
	// open, or for an etcd; their packages' DefaultTimeout for 0.
	StoreTimeout time.Duration
}

// path returns where a path that the user gave is.
func (e *Env) path(given string) string {
	if e.Dir == "" || filepath.IsAbs(given) {
		return given
	}
	return filepath.Join(e.Dir, given)
}

// paths returns where paths that the user gave are.
func (e *Env) paths(given []string) []string {
	out := make([]string, len(given))
	for i, path := range given {
		out[i] = e.path(path)
	}
	return out
}

// errReported ends a command that has said already what went wrong.
var errReported = errors.New("failed")

// statusError ends a command with an exit status of its own.
type statusError struct {
	status int
	err    error // nil when there is nothing more to say
}

func (e *statusError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.err.Error()
}

func (e *statusError) Unwrap() error { return e.err }

// report writes an error to stderr: one line for each of several that are joined.
func (e *Env) report(err error) {
	var joined interface {
		error
		Unwrap() []error
	}
	if !errors.As(err, &joined) || !strings.HasSuffix(err.Error(), joined.Error()) {
		fmt.Fprintf(e.Stderr, "error: %v\n", err)
		return
	}
	prefix := strings.TrimSuffix(err.Error(), joined.Error())
	for _, one := range joined.Unwrap() {
		fmt.Fprintf(e.Stderr, "error: %s%v\n", prefix, one)
	}
}

// Main runs the command with its arguments, without the name of the program, and
// returns the exit status: 0 when all is well, 1 when anything is not, and what the
// help of a command says beyond that.
func Main(env Env, args []string) int {
	if env.Now == nil {
		env.Now = time.Now
	}
	if env.NewUID == nil {
		env.NewUID = func() string { return string(uuid.NewUUID()) }
	}
	if env.Getenv == nil {
		env.Getenv = os.Getenv
	}
	if env.Terminal == nil {
		env.Terminal = isTerminal
	}
	stdout, stderr := env.guard(env.Stdout), env.guard(env.Stderr)
	env.Stdout, env.Stderr = stdout, stderr
	status := env.main(args)
	for _, stream := range []*printable.Writer{stdout, stderr} {
		if err := stream.Close(); err != nil {
			status = max(status, 1)
		}
	}
	return status
}

// main runs the command in a world that is complete.
func (e *Env) main(args []string) int {
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
		e.report(err)
	}
	return status
}

// flagError says where to look what the flags of a command are.
func flagError(cmd *cobra.Command, err error) error {
	return fmt.Errorf("%w\nsee: %s --help", err, cmd.CommandPath())
}

func newRoot(env *Env) *cobra.Command {
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
	group("see", "See what is, and what would be:", newPlan(env), newConflicts(env), newBlame(env))
	group("move", "Move ownership:", newTransfer(env), newRelease(env), newAdopt(env), newDrop(env), newRename(env),
		newHandover(env), newUpgrade(env), newDowngrade(env))
	group("store", "Keep objects in a store, and serve it:", newApply(env), newReplace(env), newGet(env), newDelete(env), newServe(env))
	group("check", "Check:", newTest(env), newReplay(env))
	root.AddCommand(newVersion(env))
	callBy(root, env.Name)
	return root
}
