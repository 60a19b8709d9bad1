package planning

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
	"github.com/tenure-ssa/tenure/upgrade"
)

// Pruned is an object that would be deleted. It has either all managers that applied the object, or the application
// that the object belongs to and the manager of this application.
type Pruned struct {
	*Target
	By          []string // the first manager is the reason for the deletion
	Application string   // the record with the object, as in "the inventory of …"
}

// kubectlApply is the name of kubectl apply in [Pruned.By].
const kubectlApply = "kubectl apply"

// Applied returns the object with its appliers. The first is "kubectl apply" if the object has the annotation of
// kubectl apply; otherwise, it is the given manager if this manager has an Apply entry. If neither has applied the
// object, By is nil.
func Applied(t *Target, manager string) Pruned {
	list, _ := managedfields.Read(place.Wrap(t.Object))
	first := ""
	if _, ok := (&unstructured.Unstructured{Object: t.Object}).GetAnnotations()[corev1.LastAppliedConfigAnnotation]; ok {
		first = kubectlApply
	} else if list.Get(managedfields.KeyOf(manager, metav1.ManagedFieldsOperationApply, "", "")) != nil {
		first = manager
	}
	if first == "" {
		return Pruned{Target: t}
	}
	return AppliedFirst(t, first)
}

// AppliedFirst is Applied for an object that would be deleted because of the given applier.
func AppliedFirst(t *Target, first string) Pruned {
	p := Pruned{Target: t, By: []string{first}}
	names := p.others(func(e *managedfields.Entry) bool { return e.Operation == metav1.ManagedFieldsOperationApply })
	slices.Sort(names)
	p.By = append(p.By, names...)
	return p
}

// Others returns the managers that are not in By, and that own fields outside of the object's status.
func (p *Pruned) Others() []string {
	return p.others(func(e *managedfields.Entry) bool {
		for element := range e.Owned().Level() { // an entry that can't be decoded owns nothing
			if element != fieldpath.FieldElement("status") {
				return true
			}
		}
		return false
	})
}

// others returns the managers of the wanted entries, except the managers in By. If By has kubectl apply, it also omits
// the other managers that kubectl uses.
func (p *Pruned) others(isWanted func(*managedfields.Entry) bool) (names []string) {
	known := append(slices.Clone(p.By), upgrade.LastAppliedManager) // it only keeps the annotation of kubectl apply
	if slices.Contains(known, kubectlApply) {
		known = append(known, KubectlManager, upgrade.ClientSideManager)
	}
	list, _ := managedfields.Read(place.Wrap(p.Object))
	for i := range list {
		if e := &list[i]; e.Subresource == "" && !slices.Contains(known, e.Manager) && isWanted(e) {
			known, names = append(known, e.Manager), append(names, e.Manager)
		}
	}
	return names
}
