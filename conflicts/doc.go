// Package conflicts describes the conflicts of an apply: the fields that it would change and that other managers own.
// Their error text and their metav1.Status are the same as kube-apiserver's.
//
//	_, err := fields.Apply(ctx, live, intent, options)
//	var found conflicts.Conflicts
//	if errors.As(err, &found) {
//		fmt.Println(found[0].Path, found[0].Owner.Manager)
//	}
//
// Conflicts are sorted by manager. The paths of a manager that end at a level come before those below, level by
// level. Package ownership/conflictreport shows them, with the ways out.
package conflicts
