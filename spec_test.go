package tenure_test

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// engine are the packages whose code has to cite the rules: those that carry
// them out.
var engine = []string{"conflicts", "fieldmanager", "managedfields", "ownership", "typed", "upgrade"}

var (
	ruleInSpec = regexp.MustCompile(`(?m)^- \*\*(\d+\.\d+)\*\*`)
	citation   = regexp.MustCompile(`spec rules? (\d+\.\d+(?:(?:, | and |, and )\d+\.\d+)*)`)
	cited      = regexp.MustCompile(`\d+\.\d+`)
	// A citation that a search for its number would miss, or that citationsIn reads only half of.
	badCitation = regexp.MustCompile(`(?m)\bspec(?: rules?(?: [\d., and]*\d(?:,| and)?)?)?\n\s*// *(?:rules? )?\d+\.\d|` +
		`spec rules? [\d., and]*\d to \d+\.\d.*$`)
	inScenario = regexp.MustCompile(`(?m)^rules:(.*)$`)
)

// citationsIn returns the rules that a text cites. It cites a rule in one of these ways, on one line, so that a search
// for the number finds it:
//
//	spec rule 5.2
//	spec rules 3.4, 3.5 and 3.7
//
// A section alone (spec rule 5) is no citation of what is in it.
func citationsIn(text string) (out []string) {
	for _, list := range citation.FindAllStringSubmatch(text, -1) {
		out = append(out, cited.FindAllString(list[1], -1)...)
	}
	return out
}

// filesUnder returns the content of the files whose names end in suffix.
func filesUnder(t *testing.T, suffix string, roots ...string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if path == root && errors.Is(err, fs.ErrNotExist) {
				return nil // a package that is still to come
			}
			if err != nil || d.IsDir() || !strings.HasSuffix(path, suffix) {
				return err
			}
			text, err := os.ReadFile(path)
			out[path] = string(text)
			return err
		})
		require.NoError(t, err)
	}
	return out
}

// TestCitationsIn shows the forms of a citation.
func TestCitationsIn(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
		why  string
	}{
		{"(spec rule 5.2)", []string{"5.2"}, "one rule"},
		{"spec rules 3.4, 3.5 and 10.1.", []string{"3.4", "3.5", "10.1"}, "an enumeration"},
		{"spec rule 5 and rule 5.2", nil, "a section, and a rule of nothing"},
	} {
		require.Equal(t, c.want, citationsIn(c.text), c.why)
		require.Empty(t, badCitation.FindString(c.text), c.why)
	}
	for text, why := range map[string]string{
		"spec rules 1.1 to 1.4":                "a range",
		"// as the (spec\n\t// rule 6.1) says": "broken before the word rule",
		"// (spec rule\n// 6.1)":               "broken before the number",
		"// (spec rules 5.1 and\n// 6.1)":      "broken within an enumeration",
		"// (spec rules 5.1,\n// 6.1)":         "broken after a comma",
	} {
		require.NotEmpty(t, badCitation.FindString(text), why)
	}
}

// TestEveryRuleIsCited requires that the engine's code cites every rule of
// doc/spec.md, and so does a test or a scenario, and that no rule is cited that
// there is none of.
func TestEveryRuleIsCited(t *testing.T) {
	text, err := os.ReadFile("doc/spec.md")
	require.NoError(t, err)
	rules := map[string]bool{}
	for _, m := range ruleInSpec.FindAllStringSubmatch(string(text), -1) {
		require.False(t, rules[m[1]], "rule %s stands twice in doc/spec.md", m[1])
		rules[m[1]] = true
	}
	require.NotEmpty(t, rules)

	byCode, byTests := map[string]bool{}, map[string]bool{}
	cites := func(cited map[string]bool, path string, list []string) {
		for _, rule := range list {
			cited[rule] = true
			if !rules[rule] {
				t.Errorf("%s cites rule %s, which is not in doc/spec.md", path, rule)
			}
		}
	}
	for path, text := range filesUnder(t, ".go", engine...) {
		for _, bad := range badCitation.FindAllString(text, -1) {
			t.Errorf("%s: a range, or a citation broken over lines: %q", path, bad)
		}
		switch {
		case strings.HasSuffix(path, "_test.go"):
			cites(byTests, path, citationsIn(text))
		case !strings.HasPrefix(path, "fieldmanager/fieldmanagertest"):
			cites(byCode, path, citationsIn(text))
		}
	}
	for path, text := range filesUnder(t, ".txtar", "testdata/scenarios") {
		var list []string
		for _, m := range inScenario.FindAllStringSubmatch(text, -1) {
			list = append(list, strings.Fields(m[1])...)
		}
		cites(byTests, path, list)
		rule, _, _ := strings.Cut(filepath.Base(path), "-")
		if !slices.Contains(list, rule) {
			t.Errorf("%s is named after rule %s and does not list it", path, rule)
		}
	}
	for _, rule := range slices.Sorted(maps.Keys(rules)) {
		if !byCode[rule] {
			t.Errorf("rule %s is not cited by the code of %s", rule, strings.Join(engine, ", "))
		}
		if !byTests[rule] {
			t.Errorf("rule %s is cited by no test and no scenario", rule)
		}
	}
}

// TestDifferencesAreShown requires that the scenarios that doc/differences.md names exist and name that row, and that
// the rows that scenarios name exist.
func TestDifferencesAreShown(t *testing.T) {
	text, err := os.ReadFile("doc/differences.md")
	require.NoError(t, err)
	rows := map[string]bool{}
	var tests []string
	named := map[string]string{} // scenario to row
	scenario := regexp.MustCompile("scenario `([^`]*)`")
	for _, m := range regexp.MustCompile(`(?m)^\| (\d+) \|.*$`).FindAllStringSubmatch(string(text), -1) {
		rows[m[1]] = true
		for _, name := range regexp.MustCompile("`(Test[A-Za-z0-9]*)`").FindAllStringSubmatch(m[0], -1) {
			tests = append(tests, name[1])
		}
		for _, s := range scenario.FindAllStringSubmatch(m[0], -1) {
			named[s[1]] = m[1]
		}
	}
	require.NotEmpty(t, rows)
	says := map[string][]string{}
	for path, text := range filesUnder(t, ".txtar", "testdata/scenarios") {
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		for _, m := range regexp.MustCompile(`(?m)^differs:(.*)$`).FindAllStringSubmatch(text, -1) {
			says[name] = append(says[name], strings.Fields(m[1])...)
		}
		for _, row := range says[name] {
			require.True(t, rows[row], "%s differs by row %s, which is not in doc/differences.md", path, row)
		}
	}
	code := ""
	for path, text := range filesUnder(t, ".go", ".") {
		if strings.HasSuffix(path, "_test.go") {
			code += text
		}
	}
	for _, name := range tests {
		require.True(t, strings.Contains(code, "func "+name+"("), "doc/differences.md names %s, which does not exist", name)
	}
	for name, row := range named {
		require.Contains(t, says[name], row, "doc/differences.md, %s names scenario %s", row, name)
	}
}
