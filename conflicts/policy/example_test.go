package policy_test

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/conflicts/policy"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// The autoscaler keeps the replicas. Manual changes of people are reverted.
func Example() {
	p, err := policy.Parse([]byte(`
apiVersion: tenure-ssa.github.io/v1alpha1
kind: ConflictPolicy
rules:
- fields: [.spec.replicas]
  decision: give-up
  reason: the autoscaler sets the replicas
- managers: [kubectl-*]
  decision: force
`))
	if err != nil {
		panic(err)
	}
	conflict := func(manager string, fields ...string) conflicts.Conflict {
		return conflicts.Conflict{
			Path: fieldpath.NewPath(fields...), Owner: managedfields.KeyOf(manager, "Update", "apps/v1", ""),
		}
	}
	object := &metav1.PartialObjectMetadata{}
	found := conflicts.Conflicts{conflict("autoscaler", "spec", "replicas"), conflict("kubectl-edit", "spec", "paused")}
	for i, verdict := range p.Decide(object, found) {
		fmt.Printf("%s: %s, %s\n", found[i], verdict.Decision, verdict)
	}
	// plans.Resolve takes decisions one by one; the applier takes p.Resolve.
	fmt.Println(p.Resolve(object, found))
	// Output:
	// .spec.replicas of "autoscaler": give-up, rule 1 (line 5): the autoscaler sets the replicas
	// .spec.paused of "kubectl-edit": force, rule 2 (line 8)
	// [give-up force]
}
