package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/internal/planning/cluster"
	"github.com/tenure-ssa/tenure/internal/planning/place"
)

// errReported ends a command that has already printed its errors.
var errReported = errors.New("failed")

// statusError ends a command with a given exit status.
type statusError struct {
	status int
	error
}

func (e *statusError) Unwrap() error { return e.error }

// exitWith returns an error that sets the command's exit status and prints nothing.
func exitWith(status int) error {
	if status == 0 {
		return nil
	}
	return &statusError{status, errReported}
}

// flagError adds a hint to an error about flags: a similar flag, if there is one, and the command that prints the help.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var names []string
	if errors.As(err, &unknown) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		err = fmt.Errorf("%w%s", err, cluster.DidYouMean("--"+unknown.GetSpecifiedName(), names))
	}
	return fmt.Errorf("%w\nsee: %s --help", err, cmd.CommandPath())
}

// The exit statuses of commands such as plan, conflicts and watch. Every command that could not read everything returns
// statusIncomplete instead of 0.
const (
	statusChanges    = 1
	statusConflict   = 2
	statusFailed     = 3
	statusIncomplete = 4
)

// errorWithStatus returns an error with an exit status.
func errorWithStatus(status int, err error) error {
	if err == nil {
		return nil
	}
	var own *statusError
	if errors.As(err, &own) {
		return err
	}
	return &statusError{status, err}
}

// withErrorStatus sets the exit status of all errors of a command, including errors of flags.
func withErrorStatus(status int, cmd *cobra.Command) *cobra.Command {
	withStatus := func(run func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
		return func(cmd *cobra.Command, given []string) error { return errorWithStatus(status, run(cmd, given)) }
	}
	cmd.Args, cmd.RunE = withStatus(cmd.Args), withStatus(cmd.RunE)
	if cmd.PreRunE != nil {
		cmd.PreRunE = withStatus(cmd.PreRunE)
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return errorWithStatus(status, flagError(cmd, err))
	})
	cmd.PersistentPreRunE = withStatus(func(cmd *cobra.Command, args []string) error {
		return cmd.Root().PersistentPreRunE(cmd, args)
	})
	return cmd
}

// All commands follow one rule: a command names what it could not read, and its status is then not 0.

// kindsOf returns the kinds that a command's arguments name, separated by spaces or commas as in kubectl. Without
// arguments, it returns all kinds that can be listed. It prints the API groups that can't be discovered.
func kindsOf(env *process.Env, p place.Place, args []string) ([]cluster.Kind, error) {
	names := strings.FieldsFunc(strings.Join(args, ","), func(r rune) bool { return r == ',' })
	kinds, err := p.Kinds(env.Context, names...)
	if err != nil && len(kinds) > 0 {
		env.NoteUnread(fmt.Errorf("not read: %w", err))
		err = nil
	}
	return kinds, err
}

// noteUnlisted prints the kinds that the user may not list, and returns the other errors of lists. It ignores kinds
// that do not support list or are no longer served, as they have no objects.
func noteUnlisted(env *process.Env, err error) error {
	all := []error{err}
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		all = joined.Unwrap()
	}
	var names []string
	var others []error
	for _, status := range all {
		switch {
		case apierrors.IsForbidden(status):
			name, _, _ := strings.Cut(status.Error(), ": ") // errors of lists begin with the resource
			names = append(names, name)
		case !apierrors.IsMethodNotSupported(status) && !apierrors.IsNotFound(status):
			others = append(others, status)
		}
	}
	if len(names) > 0 {
		env.NoteUnread(fmt.Errorf("not read, because you may not list them: %s", strings.Join(names, ", ")))
	}
	return errors.Join(others...)
}
