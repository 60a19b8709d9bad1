// Package conflicts says what a conflict is: an apply would change a field that
// another manager owns. It holds for each what the user needs in order to
// decide, renders them for people, and turns them into the metav1.Status that a
// real server answers.
//
// Conflicts come in a fixed order: by manager, and for each manager the paths
// that end at a level before those below it, level by level.
package conflicts
