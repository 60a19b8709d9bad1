package plans

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// FoundBy returns the conflicts that a server's response to an apply names, for [Options].Found. If the response is not
// a conflict of an apply, FoundBy returns none. known are conflicts with known values, such as the conflicts of a plan.
// A conflict that is in known is returned with its values; all others are returned without values. FoundBy searches for
// their owners among the entries of live, at any version. The path of a conflict is at the version of its owner's
// entry. Conflicts with [fieldmanager.BeforeFirstApply] are found only in known, because the apply itself would make
// this manager's entry. If a cause matches neither known nor an entry of live, FoundBy returns an error: the object has
// changed since, or FoundBy does not know this server's messages.
//
// Kubernetes before 1.29 uses structured-merge-diff before v4.4, which has a bug: it overwrites the paths of some
// conflicts with other paths. Then causes repeat a path, or name a field that the owner does not own; only the owners
// are correct. So if a cause is wrong, and each conflict in known has exactly one cause with the same owner, FoundBy
// returns known.
func FoundBy(response error, live runtime.Object, known conflicts.Conflicts) (out conflicts.Conflicts, err error) {
	var status apierrors.APIStatus
	if !errors.As(response, &status) || status.Status().Details == nil {
		return nil, nil
	}
	list, err := managedfields.Read(live)
	if err != nil {
		return nil, err
	}
	isOther := func(c metav1.StatusCause) bool { return c.Type != metav1.CauseTypeFieldManagerConflict }
	causes := slices.DeleteFunc(slices.Clone(status.Status().Details.Causes), isOther)
	for i, cause := range causes {
		isAbout := func(c conflicts.Conflict) bool { return c.Path.CauseText() == cause.Field && isOwner(cause, c) }
		c, ok := foundBy(cause, list)
		if i := slices.IndexFunc(known, isAbout); i >= 0 {
			c, ok = known[i], true
		}
		if !ok || slices.Contains(causes[:i], cause) {
			if haveOwners(causes, known) {
				return slices.Clone(known), nil
			}
			return nil, fmt.Errorf("%s: %s: the object has changed, or is written by an unknown server", cause.Field,
				cause.Message)
		}
		out = append(out, c)
	}
	out.Sort()
	return out, nil
}

// haveOwners reports whether each conflict in known has exactly one cause that names its owner.
func haveOwners(causes []metav1.StatusCause, known conflicts.Conflicts) bool {
	rest := slices.Clone(known)
	for _, cause := range causes {
		i := slices.IndexFunc(rest, func(c conflicts.Conflict) bool { return isOwner(cause, c) })
		if i < 0 {
			return false
		}
		rest = slices.Delete(rest, i, i+1)
	}
	return len(rest) == 0
}

// isOwner reports whether a cause names the owner of a conflict. A server may add a time to the name.
func isOwner(cause metav1.StatusCause, c conflicts.Conflict) bool {
	rest, ok := strings.CutPrefix(cause.Message, "conflict with "+conflicts.Describe(c.Entry()))
	return ok && (rest == "" || strings.HasPrefix(rest, " at "))
}

// foundBy returns the conflict of a cause: its owner is the entry that owns the path and has the description in the
// cause.
func foundBy(cause metav1.StatusCause, list managedfields.Entries) (c conflicts.Conflict, ok bool) {
	for i := range list {
		e := &list[i]
		c = conflicts.Conflict{Owner: e.Key, APIVersion: e.APIVersion, Since: e.Time}
		if !isOwner(cause, c) {
			continue
		}
		for path := range e.Owned().All() {
			if path.CauseText() == cause.Field {
				c.Path = append(fieldpath.Path(nil), path...)
				return c, true
			}
		}
	}
	return c, false
}
