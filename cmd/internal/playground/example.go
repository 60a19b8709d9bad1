package playground

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tenure-ssa/tenure/fieldmanager/fieldmanagertest"
)

// Example is a scenario that shows rules of doc/spec.md.
type Example struct {
	// Name is the name of the scenario, such as 5.1-update-takes.
	Name string `json:"name"`
	// Rules are the numbers of the rules that it shows.
	Rules []string `json:"rules"`
	// About says what it shows.
	About string                        `json:"about"`
	Steps []fieldmanagertest.SourceStep `json:"steps"`
}

// ReadExamples reads the scenarios of a folder, in the order of their rules.
func ReadExamples(dir string) ([]Example, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil {
		return nil, err
	}
	var out []Example
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		source, err := fieldmanagertest.ParseSource(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out = append(out, Example{
			Name: strings.TrimSuffix(filepath.Base(file), ".txtar"), Rules: source.Rules, About: source.About,
			Steps: source.Steps,
		})
	}
	slices.SortStableFunc(out, func(a, b Example) int { return slices.Compare(numbers(a.Name), numbers(b.Name)) })
	return out, nil
}

// numbers returns the rule that a name begins with, as numbers.
func numbers(name string) []int {
	var chapter, rule int
	if _, err := fmt.Sscanf(name, "%d.%d", &chapter, &rule); err != nil {
		return nil
	}
	return []int{chapter, rule}
}
