// Package cli is the tenure command: apply, replace, get and delete over a store
// of one's own, the pure function behind them, and the replay of traces.
//
// What a command touches of the world stands in [Env], so that tests run it in
// process. What a command does to an object stands in request.go and knows
// nothing of files and flags.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// Env is the world of a command.
type Env struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Dir is the folder that relative paths start from; "" for the process's own.
	Dir string
	// Now is the clock; time.Now when nil. As NewUID, it may be called from several
	// goroutines at once.
	Now func() time.Time
	// NewUID makes the uid of an object that is created; random ones when nil.
	NewUID func() string
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

// errReported ends a command that has said already what went wrong.
var errReported = errors.New("failed")

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
// returns the exit status: 0 when all is well, 1 when anything is not.
func Main(env Env, args []string) int {
	if env.Now == nil {
		env.Now = time.Now
	}
	if env.NewUID == nil {
		env.NewUID = func() string { return string(uuid.NewUUID()) }
	}
	root := newRoot(&env)
	root.SetArgs(args)
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	err := root.Execute()
	if err == nil {
		return 0
	}
	if !errors.Is(err, errReported) {
		env.report(err)
	}
	return 1
}

func newRoot(env *Env) *cobra.Command {
	root := &cobra.Command{
		Use:   "tenure",
		Short: "Apply Kubernetes-style objects, and know who manages which field",
		Long: `Tenure applies Kubernetes-style objects as a server does (server-side apply),
without one: it merges what several managers apply, remembers for every field
who manages it, and says what is in conflict and what to do about it.

Objects live in a store, a file called tenure.db in the current folder unless
--store names another. The built-in kinds are known from the start; custom ones
from their CustomResourceDefinitions.

Exit status: 0 when all went well, 1 on a conflict or any error.`,
		Example: `  tenure apply -f deployment.yaml --field-manager web
  tenure get deploy nginx -o yaml --show-managed-fields`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w\nsee: %s --help", err, cmd.CommandPath())
	})
	root.AddCommand(
		newApply(env), newReplace(env), newGet(env), newDelete(env),
		newServe(env), newReplay(env), newTest(env), newVersion(env),
	)
	return root
}
