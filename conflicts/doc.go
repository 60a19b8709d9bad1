// Package conflicts describes the conflicts of an apply: the fields that it would change and that other managers own.
// Their error text and their metav1.Status are the same as kube-apiserver's.
//
//	_, err := fields.Apply(ctx, live, intent, options)
//	var found conflicts.Conflicts
//	if errors.As(err, &found) {
//		fmt.Println(found[0].Path, found[0].Owner.Manager)
//	}
//
// Conflicts are sorted by manager, and then by path: .steps before .ingredients[name="salt"].grams, because at each level
// the fields that end there come first. Package ownership/conflictreport shows them, with the ways out.
package conflicts
