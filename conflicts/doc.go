// Package conflicts describes the conflicts of an apply: the fields that it would change and that other managers own.
// It has everything that a user needs to decide, renders it for people and as JSON, and converts it to the
// metav1.Status of kube-apiserver.
//
//	_, err := manager.Apply(live, intent, "kubectl", false)
//	var found conflicts.Conflicts
//	if errors.As(err, &found) {
//		found.Render(os.Stdout, "deployment.apps/nginx", "kubectl")
//	}
//
// Conflicts are sorted by manager. The paths of a manager that end at a level come before those below, level by
// level.
package conflicts
