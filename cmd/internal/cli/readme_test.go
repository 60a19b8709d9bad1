package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
)

var projectRoot = filepath.Join("..", "..", "..")

// The commands of the README print the output that the README shows. They run in order, starting without a store.
func TestReadme(t *testing.T) {
	testPage(t, "README.md", 4)
}

// The scenario in doc/testing.md is part of the example that it links to.
func TestScenarioPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(projectRoot, "doc", "testing.md"))
	require.NoError(t, err)
	_, shown, ok := strings.Cut(string(page), "```txtar\n")
	require.True(t, ok)
	shown, _, _ = strings.Cut(shown, "```")
	example, err := os.ReadFile(filepath.Join(projectRoot, "doc", "examples", "diverge.txtar"))
	require.NoError(t, err)
	require.Contains(t, string(example), shown)
}

// TestPages runs the commands of every document, each document in an empty folder.
func TestPages(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(projectRoot, "doc", "*.md"))
	require.NoError(t, err)
	ran := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		if strings.Contains(string(text), consoleStart) {
			ran++
			t.Run(filepath.Base(page), func(t *testing.T) {
				testPage(t, filepath.Join("doc", filepath.Base(page)), 1)
			})
		}
	}
	require.Greater(t, ran, 2) // guide.md, ownership.md, testing.md
}

const (
	consoleStart = "```console\n"
	consoleEnd   = "```"
)

// testPage runs the console blocks of a page, and returns its text. The page must contain at least so many commands.
func testPage(t *testing.T, page string, atLeast int) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(projectRoot, page))
	require.NoError(t, err)
	parts := strings.Split(string(data), consoleStart)
	out := parts[0]
	c := &console{dir: t.TempDir()}
	require.NoError(t,
		os.CopyFS(filepath.Join(c.dir, "doc", "examples"), os.DirFS(filepath.Join(projectRoot, "doc", "examples"))))
	for _, part := range parts[1:] {
		block, rest, ok := strings.Cut(part, consoleEnd)
		require.True(t, ok, "%s: a console block without an end", page)
		out += consoleStart
		for _, cmd := range commands(block) {
			got, err := c.run(cmd.line)
			require.NoError(t, err, "%s: %s", page, cmd.line)
			if !*update {
				require.Equal(t, cmd.want, got, "%s: %s", page, cmd.line)
			}
			out += "$ " + cmd.line + "\n" + got
		}
		out += consoleEnd + rest
	}
	require.GreaterOrEqual(t, c.ran, atLeast, page)
	if *update {
		require.NoError(t, os.WriteFile(filepath.Join(projectRoot, page), []byte(out), 0o644))
	} else {
		require.Equal(t, string(data), out, "%s: there is text before the first command of a block", page)
	}
	return string(data)
}

// command is a command line of a console block, and the output that follows it.
type command struct{ line, want string }

// commands returns the commands of a console block.
func commands(block string) (out []command) {
	for line := range strings.Lines(block) {
		if cmd, ok := strings.CutPrefix(line, "$ "); ok {
			out = append(out, command{line: strings.TrimSuffix(cmd, "\n")})
		} else if len(out) > 0 {
			out[len(out)-1].want += line
		}
	}
	return out
}

// console implements the shell features that the pages need: the command tenure with an optional > FILE, diff of
// equal files, and echo $?.
type console struct {
	dir    string
	status int
	ran    int // tenure commands
}

func (c *console) run(line string) (string, error) {
	// Quotes only protect brackets from the shell; no argument contains a blank.
	words := strings.Fields(strings.ReplaceAll(line, "'", ""))
	for _, program := range [][]string{{"go", "run", "./cmd/tenure"}, {"go", "run", "./cmd/kubectl-tenure"}, {"tenure"}} {
		if len(words) > len(program) && slices.Equal(words[:len(program)], program) {
			if words[len(program)] == "serve" {
				return c.serve(words[len(program):])
			}
			return c.tenure(words[len(program):])
		}
	}
	switch {
	case line == "go test work", line == "git clone https://github.com/tenure-ssa/tenure && cd tenure":
		return "", nil
	case line == "echo $?":
		return fmt.Sprintln(c.status), nil
	case words[0] == "diff" && len(words) == 3:
		manifest, err := os.ReadFile(filepath.Join(c.dir, words[1]))
		if err != nil {
			return "", err
		}
		other, err := os.ReadFile(filepath.Join(c.dir, words[2]))
		if err == nil && !bytes.Equal(manifest, other) {
			err = fmt.Errorf("they differ: %s", manifest)
		}
		return "", err
	}
	return "", fmt.Errorf("a command that is not tested")
}

// generic matches output that differs between machines.
var generic = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// serve runs a server until it has printed its address.
func (c *console) serve(args []string) (string, error) {
	c.ran++
	status, out, errs := untilNotice(process.Env{Dir: c.dir}, args...)
	if status != 0 {
		return "", fmt.Errorf("exit status %d: %s", status, errs)
	}
	return generic.ReplaceAllString(strings.ReplaceAll(errs+out, c.dir, "/home/you/tenure"), "127.0.0.1:41571"), nil
}

func (c *console) tenure(args []string) (string, error) {
	c.ran++
	var out, file bytes.Buffer
	env := process.Env{
		Stdout: &out, Stderr: &out, Dir: c.dir,
		Now:    func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) },
		NewUID: func() string { return "uid" },
	}
	redirected := len(args) > 2 && args[len(args)-2] == ">"
	if redirected {
		env.Stdout = &file
		c.status = runMain(env, args[:len(args)-2])
		return out.String(), os.WriteFile(filepath.Join(c.dir, args[len(args)-1]), file.Bytes(), 0o600)
	}
	c.status = runMain(env, args)
	return out.String(), nil
}
