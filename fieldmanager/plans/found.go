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

// FoundBy returns the conflicts that a server's response of an apply names, for [Options].Found, without values. They are
// those of entries of live, of any version; paths are of the version of the owner's entry. There are none if the error is
// no conflict of an apply. The error says that a cause is about no entry of live: the object has changed since, or the
// server is an unknown one. known are conflicts of which the values are known, such as those of a plan: they are returned
// as they are. An owner that the apply itself would make, [fieldmanager.BeforeFirstApply], is found only among them.
func FoundBy(response error, live runtime.Object, known conflicts.Conflicts) (out conflicts.Conflicts, err error) {
	var status apierrors.APIStatus
	if !errors.As(response, &status) || status.Status().Details == nil {
		return nil, nil
	}
	list, _, err := managedfields.Read(live)
	if err != nil {
		return nil, err
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Type != metav1.CauseTypeFieldManagerConflict {
			continue
		}
		isAbout := func(c conflicts.Conflict) bool { return c.Path.String() == cause.Field && isOwner(cause, c) }
		c, ok := foundBy(cause, list)
		if i := slices.IndexFunc(known, isAbout); i >= 0 {
			c, ok = known[i], true
		}
		if !ok {
			return nil, fmt.Errorf("%s: %s: the object has changed, or is written by an unknown server", cause.Field,
				cause.Message)
		}
		out = append(out, c)
	}
	out.Sort()
	return out, nil
}

// isOwner reports whether a cause names the owner of a conflict. Servers may add a time.
func isOwner(cause metav1.StatusCause, c conflicts.Conflict) bool {
	rest, ok := strings.CutPrefix(cause.Message, "conflict with "+conflicts.Describe(c.Entry()))
	return ok && (rest == "" || strings.HasPrefix(rest, " at "))
}

// foundBy returns the conflict of a cause: the entry that is described like its owner has the path.
func foundBy(cause metav1.StatusCause, list managedfields.Entries) (c conflicts.Conflict, ok bool) {
	for i := range list {
		e := &list[i]
		c = conflicts.Conflict{Owner: e.Key, APIVersion: e.APIVersion, Since: e.Time}
		if !isOwner(cause, c) {
			continue
		}
		for path := range e.Owned().All() {
			if path.String() == cause.Field {
				c.Path = append(fieldpath.Path(nil), path...)
				return c, true
			}
		}
	}
	return c, false
}
