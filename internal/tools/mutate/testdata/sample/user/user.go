// Package user uses small.
package user

import "example.com/sample/small"

// Never is false.
func Never(a bool) bool { return small.Both(a, false) }
