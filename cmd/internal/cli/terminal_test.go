//go:build !windows

package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/server"
)

// TestTerminal runs the command itself on pseudo-terminals.
func TestTerminal(t *testing.T) {
	program, err := os.Executable()
	require.NoError(t, err)
	t.Setenv(commandVariable, "yes")
	binary := filepath.Join(t.TempDir(), "tenure")
	require.NoError(t, os.Symlink(program, binary))
	t.Run("prompts", func(t *testing.T) { testPrompts(t, binary) })
	t.Run("watch", func(t *testing.T) { testWatch(t, binary) })
}

// terminal runs the command on a pseudo-terminal, and keeps what it shows.
type terminal struct {
	t       *testing.T
	cmd     *exec.Cmd
	file    *os.File
	changed chan struct{} // signals that the screen has changed
	gone    chan struct{} // closed when the command closes the terminal

	mu     sync.Mutex
	screen screen
}

// onTerminal starts the command on a terminal of 80 columns.
func onTerminal(t *testing.T, dir, binary string, args ...string) *terminal {
	t.Helper()
	term := &terminal{t: t, cmd: exec.CommandContext(t.Context(), binary, args...), gone: make(chan struct{}),
		changed: make(chan struct{}, 1)}
	var err error
	term.cmd.Dir, term.screen = dir, screen{columns: 80, rows: 24}
	term.file, err = pty.StartWithSize(term.cmd, &pty.Winsize{Rows: 24, Cols: 80})
	require.NoError(t, err)
	t.Cleanup(func() { _ = term.file.Close() })
	go func() {
		defer close(term.gone)
		data := make([]byte, 4096)
		for {
			n, err := term.file.Read(data)
			term.mu.Lock()
			term.screen.write(data[:n])
			term.mu.Unlock()
			select {
			case term.changed <- struct{}{}:
			default: // a signal is pending already
			}
			if err != nil {
				return
			}
		}
	}()
	return term
}

// waitFor waits until isWanted returns true for the lines of the screen, and returns them.
func (term *terminal) waitFor(what string, isWanted func(lines []string) bool) (lines []string) {
	term.t.Helper()
	for isGone := false; ; {
		term.mu.Lock()
		lines = term.screen.visible()
		term.mu.Unlock()
		switch {
		case isWanted(lines):
			return lines
		case isGone:
			require.FailNow(term.t, "it ended before "+what, strings.Join(lines, "\n"))
		}
		select {
		case <-term.gone:
			isGone = true
		case <-term.changed:
		}
	}
}

func (term *terminal) hasText(text string) func([]string) bool {
	return func(lines []string) bool { return strings.Contains(strings.Join(lines, "\n"), text) }
}

func (term *terminal) enter(text string) {
	_, err := term.file.WriteString(text)
	require.NoError(term.t, err)
}

// status waits for the end of the command, and returns its status as a shell reports it.
func (term *terminal) status() int {
	<-term.gone
	_ = term.cmd.Wait() // ProcessState has the result
	if state := term.cmd.ProcessState.Sys().(syscall.WaitStatus); state.Signaled() {
		return 128 + int(state.Signal())
	}
	return term.cmd.ProcessState.ExitCode()
}

// screen emulates a terminal. It understands exactly the escape sequences that the command may write.
type screen struct {
	columns, rows int
	lines         []string // including lines that scrolled off
	top, row      int      // the first visible line, the cursor's line
	rest          string
}

var sequence = regexp.MustCompile(`^\x1b\[(\d*)([AJH])`)

func (s *screen) write(data []byte) {
	text := s.rest + string(data)
	for s.rest = ""; text != ""; {
		if found := sequence.FindStringSubmatch(text); found != nil {
			n, _ := strconv.Atoi(found[1])
			s.control(found[2], n)
			text = text[len(found[0]):]
			continue
		}
		if text[0] == '\x1b' && len(text) < 8 {
			s.rest = text
			return
		}
		char := []rune(text)[0]
		text = text[len(string(char)):]
		s.put(char)
	}
}

func (s *screen) control(name string, n int) {
	switch {
	case name == "A":
		s.row = max(s.row-n, s.top)
	case name == "H":
		s.row = s.top
	case n == 2:
		s.lines = s.lines[:s.top]
	default:
		s.lines = s.lines[:min(len(s.lines), s.row)]
	}
}

func (s *screen) put(char rune) {
	for len(s.lines) <= s.row {
		s.lines = append(s.lines, "")
	}
	switch {
	case char == '\r':
	case char == '\n' || len([]rune(s.lines[s.row])) == s.columns:
		s.row++
		s.top = max(s.top, s.row-s.rows+1)
		if char != '\n' {
			s.put(char)
		}
	default:
		s.lines[s.row] += string(char)
	}
}

func (s *screen) visible() []string {
	return append([]string(nil), s.lines[min(s.top, len(s.lines)):]...)
}

// prompts has arguments for all commands that ask for confirmation, each with a question of its own.
var prompts = map[string][]string{
	"plan":      {"-f", "next.yaml", "--field-manager", "alice", "--apply"},
	"conflicts": {"-f", "next.yaml", "--field-manager", "carol", "--resolve", "force"},
	"handover":  {"-f", "first.yaml", "--field-manager", "alice", "--field", ".data.color"},
	"transfer":  {"configmap/a", "--from", "alice", "--to", "bob", "--all"},
	"release":   {"configmap/a", "--from", "alice", "--all"},
	"adopt":     {"configmap/a", "--to", "bob", "--all"},
	"drop":      {"configmap/a", "--from", "alice"},
	"rename":    {"configmap/a", "--from", "alice", "--to", "bob"},
	"upgrade":   {"configmap/a", "--field-manager", "flux", "--from", "editor", "--everything"},
	"downgrade": {"configmap/a", "--field-manager", "alice"},
}

// Each command that asks writes after y. It writes nothing after n or Ctrl-C, which ends it at once.
func testPrompts(t *testing.T, binary string) {
	dir := t.TempDir()
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {color: %s, size: small}\n"
	write(t, dir, map[string]string{"first.yaml": fmt.Sprintf(object, "red"), "next.yaml": fmt.Sprintf(object, "blue")})
	run := func(args ...string) string {
		status, out, errs := output(process.Env{Dir: dir, Name: "tenure"}, args...)
		require.Zero(t, status, "%v: %s", args, errs)
		return out
	}
	run("apply", "-f", "first.yaml", "--field-manager", "alice", "--store", "first.db")
	stored := run("get", "configmap", "a", "-o", "yaml", "--store", "first.db")
	write(t, dir, map[string]string{"edited.yaml": strings.Replace(stored, "data:", "data:\n  b: c", 1)})
	run("replace", "-f", "edited.yaml", "--field-manager", "editor", "--store", "first.db")
	first, err := os.ReadFile(filepath.Join(dir, "first.db"))
	require.NoError(t, err)
	before := run("get", "-o", "yaml", "--show-managed-fields", "--store", "first.db")
	for _, cmd := range Root(&process.Env{Server: server.New()}).Commands() {
		if cmd.Flags().Lookup("yes") == nil {
			continue
		}
		require.Contains(t, prompts, cmd.Name(), "how it asks is not tested")
		for _, row := range []struct {
			what, input string
			status      int
		}{
			{"y", "y\n", 0}, {"n", "n\n", refused(cmd)}, {"nothing", "\x04", refused(cmd)}, {"Ctrl-C", "\x03", 130},
		} {
			t.Run(cmd.Name()+" "+row.what, func(t *testing.T) {
				require.NoError(t, os.WriteFile(filepath.Join(dir, "s.db"), first, 0o600))
				args := append([]string{cmd.Name()}, prompts[cmd.Name()]...)
				term := onTerminal(t, dir, binary, append(args, "--store", "s.db")...)
				term.waitFor("it asked", term.hasText("[y/N] "))
				term.enter(row.input)
				require.Equal(t, row.status, term.status(), strings.Join(term.screen.lines, "\n"))
				after := run("get", "-o", "yaml", "--show-managed-fields", "--store", "s.db")
				if row.status == 0 {
					require.NotEqual(t, before, after)
				} else {
					require.Equal(t, before, after)
				}
			})
		}
	}
}

// refused returns the exit status of a command that the user did not confirm.
func refused(cmd *cobra.Command) int {
	if strings.Contains(strings.Join(strings.Fields(cmd.Long), " "), "3 on any") {
		return statusFailed
	}
	return 1
}

// watch redraws its table in place: the screen shows one table, whose rows fit its width, even after a resize. The
// last table is complete.
func testWatch(t *testing.T, binary string) {
	w := newWatched(t, nil)
	term := onTerminal(t, t.TempDir(), binary, "watch", "configmaps", "-n", "default", "--kubeconfig", w.config)
	term.waitFor("the table", term.hasText("0 objects watched, 0 findings"))
	for round := range 6 {
		w.writeRound(t.Context(), round)
	}
	isTable := func(columns int) func([]string) bool {
		return func(lines []string) bool {
			headings, isCut := 0, false
			for _, line := range lines {
				if strings.HasPrefix(line, "FINDING") {
					headings++
				}
				isCut = isCut || strings.HasPrefix(line, "Fight") && strings.HasSuffix(line, "…") &&
					len([]rune(line)) == columns
			}
			return headings == 1 && isCut && strings.Contains(lines[len(lines)-2]+lines[len(lines)-1], "objects watched, 3")
		}
	}
	term.waitFor("a table of fights", isTable(80))
	resize := func(columns, rows int) {
		term.mu.Lock()
		defer term.mu.Unlock()
		term.screen.columns, term.screen.rows = columns, rows
		require.NoError(t, pty.Setsize(term.file, &pty.Winsize{Rows: uint16(rows), Cols: uint16(columns)}))
	}
	resize(60, 12)
	lines := term.waitFor("a table of 60 columns", isTable(60))
	require.LessOrEqual(t, len(lines), 12)
	require.Contains(t, strings.Join(lines, "\n"), " more lines\n")
	resize(100, 40)
	term.waitFor("a table of 100 columns", isTable(100))
	term.enter("\x03")
	require.Equal(t, 1, term.status(), "there were fights")
	whole := strings.Join(term.screen.lines, "") // the terminal has wrapped the text
	require.Contains(t, whole, "tenure handover -f MANIFEST --field-manager blue --field .data.color -n default "+
		"--kubeconfig "+w.config)
}
