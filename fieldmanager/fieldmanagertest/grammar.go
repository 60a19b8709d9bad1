package fieldmanagertest

import _ "embed"

// Grammar says how a scenario is written: its steps, and what can be expected of them.
//
//go:embed grammar.txt
var Grammar string
