package replay

import (
	"fmt"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
)

// unified returns the unified difference of two texts, given as lines.
func unified(want, got []string) string {
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: withNewlines(want), B: withNewlines(got), FromFile: "server", ToFile: "engine", Context: 3,
	})
	if err != nil {
		return fmt.Sprintf("want %s\ngot  %s", strings.Join(want, "\n"), strings.Join(got, "\n"))
	}
	return text
}

func withNewlines(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = line + "\n"
	}
	return out
}
