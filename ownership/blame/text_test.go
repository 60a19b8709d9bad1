package blame_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/ownership/blame"
)

func TestTextNeutralises(t *testing.T) {
	obj := owned(t, `{}`, `{"f:spec":{}}`)
	obj["spec"] = map[string]any{"x\x1b[2J": "\u009b31m \u202e right to left \u2028 \x7f"}
	entry := obj["metadata"].(map[string]any)["managedFields"].([]any)[0].(map[string]any)
	entry["manager"] = "evil\x1b]0;title\x07\u2066\n"
	entry["fieldsV1"] = map[string]any{
		"f:spec": map[string]any{"f:x\x1b[2J": map[string]any{}, "f:gone\x1b": map[string]any{}},
	}
	r := report(t, obj, blame.Options{})
	var text bytes.Buffer
	require.NoError(t, blame.Text(&text, nil, r, r))
	control := regexp.MustCompile("[\x00-\x09\x0b-\x1f\x7f\u0080-\u009f\u2028\u202e\u2066]")
	require.NotRegexp(t, control, text.String())
	require.Contains(t, text.String(), `evil\u001b]0;title\u0007\u2066\u000a`)
	require.Contains(t, text.String(), `\u202e right to left`)
}

func TestStyle(t *testing.T) {
	r := report(t, readFile(t, live), blame.Options{})
	var without, with bytes.Buffer
	require.NoError(t, blame.Text(&without, nil, r))
	seen := map[blame.Part]bool{}
	require.NoError(t, blame.Text(&with, func(part blame.Part, manager, text string) string {
		seen[part] = true
		if part == blame.Manager {
			require.NotEmpty(t, manager)
		}
		return fmt.Sprintf("\x1b[3%dm%s\x1b[0m", part, text)
	}, r))
	require.Equal(t, without.String(), regexp.MustCompile("\x1b\\[[0-9]+m").ReplaceAllString(with.String(), ""),
		"colours take up no room")
	require.Len(t, seen, 6, "every part")
}

func TestSeveral(t *testing.T) {
	a, b := report(
		t,
		readFile(t, live),
		blame.Options{},
	), report(
		t,
		readFile(t, "widget.yaml"),
		blame.Options{},
	)
	var text bytes.Buffer
	require.NoError(t, blame.Text(&text, nil, a, b))
	require.True(t, strings.HasPrefix(text.String(), "Deployment shop/web\nMANAGER"))
	require.Contains(t, text.String(), "\n\nWidget alpha\nMANAGER")
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, fmt.Errorf("no room") }

func TestWriteErrors(t *testing.T) {
	r := report(t, readFile(t, live), blame.Options{})
	require.ErrorContains(t, blame.Text(full{}, nil, r), "no room")
}
