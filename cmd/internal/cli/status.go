package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
)

// errReported ends a command that has reported its errors already.
var errReported = errors.New("failed")

// statusError ends a command with a given exit status.
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

// flagError adds to an error of flags which one may be meant, and where their help is.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var names []string
	if errors.As(err, &unknown) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		err = fmt.Errorf("%w%s", err, cluster.DidYouMean("--"+unknown.GetSpecifiedName(), names))
	}
	return fmt.Errorf("%w\nsee: %s --help", err, cmd.CommandPath())
}

// The exit statuses of plan, conflicts and watch. statusHole is that of all commands whose answer lacks what could not be
// read, if it would be 0.
const (
	statusChanges  = 1
	statusConflict = 2
	statusFailed   = 3
	statusHole     = 4
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
	return &statusError{status: status, err: err}
}

// withErrorStatus sets the exit status of all errors of a command, including those of flags.
func withErrorStatus(status int, cmd *cobra.Command) *cobra.Command {
	args, run := cmd.Args, cmd.RunE
	cmd.Args = func(cmd *cobra.Command, given []string) error { return errorWithStatus(status, args(cmd, given)) }
	cmd.RunE = func(cmd *cobra.Command, given []string) error { return errorWithStatus(status, run(cmd, given)) }
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return errorWithStatus(status, flagError(cmd, err))
	})
	return cmd
}

func exitStatus(outcome plans.Outcome) int {
	switch outcome {
	case plans.Unchanged:
		return 0
	case plans.Conflict:
		return statusConflict
	}
	return statusChanges
}
