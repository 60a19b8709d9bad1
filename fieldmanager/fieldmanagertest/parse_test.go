package fieldmanagertest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/fieldmanager/fieldmanagertest"
)

const head = "About.\n-- schema --\nspec: {type: object, properties: {a: {type: integer}}}\n"

func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.txtar")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// TestParseErrors shows invalid scenarios; the error names the file and the step.
func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ name, why, text, want string }{
		{"step", "a step that there is none of", head + "-- aply alice --\n",
			`test.txtar: step 2, "aply alice": unknown step "aply"`},
		{"key", "a key=value that no step has", head + "-- apply alice color=red --\n", `unknown word "color=red"`},
		{"force", "an update can't be forced", head + "-- update alice force --\n", `unknown word "force"`},
		{"two", "a write has one manager", head + "-- apply alice bob --\n", `unknown word "bob"`},
		{"first", "an expectation of nothing", "-- want --\n", `there is no step before it`},
		{"twice", "an expectation for one step twice", head + "-- apply a --\n-- error --\n-- error --\n", `expected twice`},
		{"kind", "an expectation that a step can't meet", head + "-- apply a --\n-- orders --\n",
			`a step "apply" has no such result`},
		{"words", "an expectation with words", head + "-- apply a --\n-- want x --\n", `unknown word "x"`},
		{"alone", "an interleave without writes", head + "-- interleave --\n-- orders --\n", `expected writes after it`},
		{"limit", "a limit that is no number", head + "-- interleave limit=x --\n-- apply a --\n-- orders --\n",
			`limit: expected a whole number, got "x"`},
		{"nothing", "a text without steps shows nothing", "apply alice\nspec: {a: 1}\n", "test.txtar: no steps"},
		{"differs", "a difference that is no number", "differs: six\n", `differs: expected a number, got "six"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := fieldmanagertest.RunFile(written(t, c.text))
			require.ErrorContains(t, err, c.want, c.why)
		})
	}
	_, err := fieldmanagertest.RunFile(filepath.Join(t.TempDir(), "none.txtar"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestBrokenScenarios shows the errors of failing scenarios.
func TestBrokenScenarios(t *testing.T) {
	const apply = "-- apply alice --\nspec: {a: 1}\n"
	for _, c := range []struct {
		name, why, text string
		want            []string
	}{
		{"missing", "a step without an expectation", head + apply,
			[]string{`step 2, "apply alice": the step has no expected result, want one of want, unchanged`, "f:a: {}"}},
		{"differs", "a difference is shown as one", head + apply + "-- want --\nspec: {a: 2}\n",
			[]string{"--- want\n+++ got\n", "-  a: 2\n", "+  a: 1\n"}},
		{"other", "another outcome is named", head + apply + "-- conflict --\nmessage: x\n",
			[]string{"not expected: want", "expected, and not so: conflict"}},
		{"schema", "a schema that is none", "-- schema --\nspec: 7\n",
			[]string{`step 1, "schema": `}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := fieldmanagertest.RunFile(written(t, c.text))
			require.NoError(t, err)
			for _, want := range c.want {
				require.ErrorContains(t, s.Err(), want, c.why)
			}
			f := &failures{}
			fieldmanagertest.Run(f, s.Path)
			// The wording of the decoder's error varies.
			same := strings.NewReplacer("unable to unmarshal", "cannot unmarshal")
			require.Equal(t, same.Replace(s.Err().Error()), same.Replace(strings.Join(f.said, "\n")))
		})
	}
}

// TestRewritten shows that a rewritten scenario passes, and that YAML may have any style.
func TestRewritten(t *testing.T) {
	s, err := fieldmanagertest.RunFile(written(t, "About.\n\nrules: 1.1, 2.2\ndiffers: 3\n"+head+
		"-- apply alice --\nspec: {a: 1}\n-- interleave --\n-- apply bob --\nspec: {a: 1}\n-- apply alice --\n{}\n"))
	require.NoError(t, err)
	require.Error(t, s.Err())
	require.Equal(t, []string{"1.1", "2.2"}, s.Rules)
	require.Equal(t, []int{3}, s.Differs)
	require.NotContains(t, s.About, "rules")

	text, err := s.Rewritten()
	require.NoError(t, err)
	again, err := fieldmanagertest.RunFile(written(t, string(text)))
	require.NoError(t, err)
	require.NoError(t, again.Err())
	same, err := again.Rewritten()
	require.NoError(t, err)
	require.Equal(t, string(text), string(same))

	s, err = fieldmanagertest.RunFile(written(t, "-- schema --\nspec: 7\n-- apply alice --\nspec: {a: 1}\n-- want --\n"))
	require.NoError(t, err)
	_, err = s.Rewritten()
	require.ErrorContains(t, err, `step 1, "schema": `, "what is expected was not to blame")
}

// TestLineEnds shows that a scenario may have Windows line endings, and that a rewritten scenario has none.
func TestLineEnds(t *testing.T) {
	data, err := os.ReadFile("../../doc/examples/diverge.txtar")
	require.NoError(t, err)
	s, err := fieldmanagertest.RunFile(written(t, strings.ReplaceAll(string(data), "\n", "\r\n")))
	require.NoError(t, err)
	require.NoError(t, s.Err())
}
