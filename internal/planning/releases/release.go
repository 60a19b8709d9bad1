// Package releases does the work between the rendering of a Helm 4 release and Helm's first write, for an upgrade, an
// install or a rollback: it compares renderings, checks that the planned objects have not changed, moves ownership,
// and returns the templates that Helm applies. It does not run Helm and prints nothing.
package releases

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/planning/place"
)

// Release is a release at a revision.
type Release struct {
	Name, Namespace string
	Version         int // the revision that an upgrade creates, or the newest one
}

// added returns the labels and annotations that Helm adds to each object of a release; none if the release has no
// name.
func (r *Release) added() document.Marks {
	if r.Name == "" {
		return nil
	}
	return document.Marks{
		"labels":      {"app.kubernetes.io/managed-by": "Helm"},
		"annotations": {"meta.helm.sh/release-name": r.Name, "meta.helm.sh/release-namespace": r.Namespace},
	}
}

// Mark returns a copy of a template's object with the labels and annotations that Helm adds.
func (r *Release) Mark(tree map[string]any) map[string]any { return r.added().Add(tree) }

// Has reports whether the annotations of an object say that it belongs to the release.
func (r *Release) Has(t *place.Target) bool {
	u := &unstructured.Unstructured{Object: t.Stored().Object} // with the annotations of a Secret
	found := labels.Set(u.GetAnnotations())
	return labels.SelectorFromSet(r.added()["annotations"]).Matches(found)
}

// Unmark removes from marked what Mark added to the template's object tree.
func (r *Release) Unmark(marked, tree map[string]any) map[string]any {
	return r.added().Remove(marked, tree)
}

// Revision is an entry of the history of a release.
type Revision struct {
	Revision int
	Status   string
}

// History is the history of a release, with the newest revision last.
type History []Revision

// Last returns the newest revision that has one of the given statuses or, without statuses, the newest revision. It
// returns 0 if there is no such revision.
func (h History) Last(statuses ...string) int {
	for _, release := range slices.Backward(h) {
		if len(statuses) == 0 || slices.Contains(statuses, release.Status) {
			return release.Revision
		}
	}
	return 0
}

// Base returns the revision with which Helm compares an upgrade. Helm deletes objects of this revision that the upgrade
// lacks. Base returns 0 if there is no such revision.
func (h History) Base() int {
	if deployed := h.Last("deployed"); deployed > 0 || len(h) == 0 {
		return deployed
	}
	return h[len(h)-1:].Last("failed", "superseded")
}

// SinceGood returns the newest revision that was once deployed, and all later revisions. Their objects may exist.
func (h History) SinceGood() (out []int) {
	good := h.Last("deployed", "superseded")
	for _, release := range h {
		if release.Revision >= good {
			out = append(out, release.Revision)
		}
	}
	return out
}
