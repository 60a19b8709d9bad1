package cli

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
)

// One rule for all commands: what could not be read is named, and the status of an answer that lacks it is not 0.

// kindsOf returns the kinds that the arguments of a command name, or all that can be listed. It names API groups that
// can't be discovered.
func kindsOf(env *process.Env, c *cluster.Cluster, args []string) ([]cluster.Kind, error) {
	if len(args) > 0 {
		return c.KindsNamed(kindNames(args))
	}
	kinds, err := c.Kinds()
	if err != nil && len(kinds) > 0 {
		env.NoteUnread(fmt.Errorf("not read: %w", err))
		err = nil
	}
	return kinds, err
}

// noteUncompared names the entries with which conflicts are not known.
func noteUncompared(env *process.Env, w *place.Desired) {
	if err := w.Uncompared(); err != nil {
		env.NoteUnread(err)
	}
}

// noteUnlisted names the kinds that the user may not list, and returns the other errors of lists of kinds. A kind that
// nobody can list, or that is no longer served, has no objects.
func noteUnlisted(env *process.Env, err error) error {
	all := []error{err}
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		all = joined.Unwrap()
	}
	var names []string
	var others []error
	for _, one := range all {
		switch {
		case apierrors.IsForbidden(one):
			name, _, _ := strings.Cut(one.Error(), ": ") // errors of lists begin with the resource
			names = append(names, name)
		case !apierrors.IsMethodNotSupported(one) && !apierrors.IsNotFound(one):
			others = append(others, one)
		}
	}
	if len(names) > 0 {
		env.NoteUnread(fmt.Errorf("not read, because you may not list them: %s", strings.Join(names, ", ")))
	}
	return errors.Join(others...)
}
