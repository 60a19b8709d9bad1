package cli

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The commands of the README print what the README says, one after the other,
// starting without a store.
func TestReadme(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(dir, "examples"), os.DirFS(filepath.Join(root, "examples"))))

	ran := 0
	for _, block := range consoleBlocks(string(readme)) {
		for _, cmd := range block {
			line, ok := strings.CutPrefix(cmd.line, "go run ./cmd/tenure ")
			if !ok {
				require.Contains(t, []string{"go test work", "git clone https://github.com/tenure-ssa/tenure && cd tenure"}, cmd.line, "the README has a command that is not tested")
				require.Empty(t, cmd.want)
				continue
			}
			ran++
			out := newNotice()
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				Main(Env{
					Stdout: out, Stderr: out, Dir: dir, Context: ctx,
					Now:    func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) },
					NewUID: func() string { return "uid" },
				}, strings.Fields(line))
			}()
			if line == "serve" {
				<-out.written // all that it says
				cancel()
			}
			<-ended
			cancel()
			require.Equal(t, generic.ReplaceAllString(cmd.want, "#"),
				generic.ReplaceAllString(strings.ReplaceAll(out.String(), dir, "/home/you/tenure"), "#"), "%s", cmd.line)
		}
	}
	require.GreaterOrEqual(t, ran, 5)

	_, shown, _ := strings.Cut(string(readme), "```txtar\n")
	shown, _, _ = strings.Cut(shown, "```")
	example, err := os.ReadFile(filepath.Join(root, "examples", "diverge.txtar"))
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(example), shown), "the README shows the start of the example")
}

// generic is what is another on each machine.
var generic = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// command is a line of a console block and what it prints.
type command struct{ line, want string }

// consoleBlocks returns the commands of each ```console block of a Markdown text.
func consoleBlocks(text string) (out [][]command) {
	for _, part := range strings.Split(text, "```console\n")[1:] {
		part, _, _ = strings.Cut(part, "```")
		var block []command
		for line := range strings.Lines(part) {
			if cmd, ok := strings.CutPrefix(line, "$ "); ok {
				block = append(block, command{line: strings.TrimSuffix(cmd, "\n")})
			} else if len(block) > 0 {
				block[len(block)-1].want += line
			}
		}
		out = append(out, block)
	}
	return out
}
