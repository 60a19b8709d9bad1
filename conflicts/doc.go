// Package conflicts describes the conflicts of an apply: the fields that the apply would change and that other managers
// own. The error text and the metav1.Status of conflicts are the same as kube-apiserver's.
//
//	_, err := fields.Apply(ctx, live, intent, options)
//	var found conflicts.Conflicts
//	if errors.As(err, &found) {
//		fmt.Println(found[0].Path, found[0].Owner.Manager)
//	}
//
// Conflicts are sorted by manager, and then by path: .steps precedes .ingredients[name="salt"].grams, because at each
// level the paths that end at that level come first. Package ownership/conflictreport prints conflicts with the ways
// out.
package conflicts
