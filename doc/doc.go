// Package doc embeds the rules of a write for programs that print them.
package doc

import _ "embed"

// Spec is spec.md.
//
//go:embed spec.md
var Spec string
