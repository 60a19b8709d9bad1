package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tenure-ssa/tenure/fieldmanager"
)

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

// flagError says where to look what the flags of a command are.
func flagError(cmd *cobra.Command, err error) error {
	return fmt.Errorf("%w\nsee: %s --help", err, cmd.CommandPath())
}

// The exit statuses of plan. Those of conflicts are among them.
const (
	statusChanges  = 1
	statusConflict = 2
	statusFailed   = 3
)

// failedWith gives an error an exit status of its own.
func failedWith(status int, err error) error {
	if err == nil {
		return nil
	}
	var own *statusError
	if errors.As(err, &own) {
		return err
	}
	return &statusError{status: status, err: err}
}

// failsWith gives every error of a command an exit status of its own, that of a
// mistyped flag as well.
func failsWith(status int, cmd *cobra.Command) *cobra.Command {
	args, run := cmd.Args, cmd.RunE
	cmd.Args = func(cmd *cobra.Command, given []string) error { return failedWith(status, args(cmd, given)) }
	cmd.RunE = func(cmd *cobra.Command, given []string) error { return failedWith(status, run(cmd, given)) }
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return failedWith(status, flagError(cmd, err))
	})
	return cmd
}

func statusOf(outcome fieldmanager.Outcome) int {
	switch outcome {
	case fieldmanager.Unchanged:
		return 0
	case fieldmanager.Conflict:
		return statusConflict
	}
	return statusChanges
}
