// Package traces embeds the recorded traces for programs that do not have the source tree.
package traces

import "embed"

// Files are the traces: random/*.json, scenarios/*.json and topology/*.json.
//
//go:embed random scenarios topology
var Files embed.FS
