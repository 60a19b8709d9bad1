package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/cmd/internal/playground"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
)

// The command serves its own page, or the files of a folder, until it is interrupted.
func TestPlayground(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "index.html"), []byte("built"), 0o600))
	for _, row := range []struct {
		name string
		args []string
		want string
	}{
		{"own page", nil, `<meta name="engine" content="server">`},
		{"folder", []string{"--dir", dir}, "built"},
		{"chosen port", []string{"--listen", "127.0.0.1:0"}, "playground"},
	} {
		t.Run(row.name, func(t *testing.T) {
			out, errs := newNotice(), &bytes.Buffer{}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			status := make(chan int, 1)
			go func() {
				status <- Main(process.Env{Stdout: out, Stderr: errs, Context: ctx}, append([]string{"playground"}, row.args...))
			}()
			select {
			case <-out.written:
			case <-status:
				require.Fail(t, "it does not serve", "%s", errs)
			}
			_, address, _ := strings.Cut(out.String(), " ")
			answer, err := http.Get(strings.TrimSpace(address))
			require.NoError(t, err)
			defer answer.Body.Close()
			text, err := io.ReadAll(answer.Body)
			require.NoError(t, err)
			require.Contains(t, string(text), row.want)
			cancel()
			require.Zero(t, <-status, "%s", errs)
		})
	}
}

// The page has an address of its own. If that is in use, it takes another; one that was chosen is an error.
func TestPlaygroundAddress(t *testing.T) {
	first, err := listenPlayground(playgroundAddress, false) // something else on this computer may have it
	require.NoError(t, err)
	defer first.Close()
	second, err := listenPlayground(playgroundAddress, false)
	require.NoError(t, err)
	defer second.Close()
	require.NotEqual(t, playgroundAddress, second.Addr().String())
	_, err = listenPlayground(second.Addr().String(), true)
	require.Error(t, err)
}

// The number of each rule of doc/spec.md that has an example is a link to it; -update writes the links.
func TestPlaygroundLinks(t *testing.T) {
	const spec = "../../../doc/spec.md"
	examples, err := playground.ReadExamples("../../../testdata/scenarios")
	require.NoError(t, err)
	shown := map[string]bool{}
	for _, e := range examples {
		for _, rule := range e.Rules {
			shown[rule] = true
		}
	}
	text, err := os.ReadFile(spec)
	require.NoError(t, err)
	rules, _, found := strings.Cut(string(text), "\n[1.1]: ")
	require.True(t, found, "links after the rules")
	var links strings.Builder
	number := regexp.MustCompile(`(?m)^- \*\*\[?(\d+\.\d+)\]?\*\*`)
	rules = number.ReplaceAllStringFunc(rules, func(item string) string {
		rule := number.FindStringSubmatch(item)[1]
		if !shown[rule] {
			return "- **" + rule + "**"
		}
		fmt.Fprintf(&links, "[%s]: http://%s/#%s\n", rule, playgroundAddress, rule)
		return "- **[" + rule + "]**"
	})
	want := rules + "\n" + links.String()
	require.Greater(t, strings.Count(want, playgroundAddress), 40)
	if *update {
		require.NoError(t, os.WriteFile(spec, []byte(want), 0o600))
		return
	}
	require.Equal(t, want, string(text), "run the test with -update")
}

// The page is not served beyond this computer, and a folder without a page is named.
func TestPlaygroundErrors(t *testing.T) {
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"--listen", "0.0.0.0:0"}, "--listen: expected a loopback address such as 127.0.0.1:8080"},
		{[]string{"--dir", "nowhere"}, "--dir: nowhere: no files of a playground found"},
	} {
		var out, errs bytes.Buffer
		status := Main(process.Env{Stdout: &out, Stderr: &errs, Dir: t.TempDir(), Context: t.Context()},
			append([]string{"playground"}, row.args...))
		require.Equal(t, 1, status)
		require.Contains(t, errs.String(), row.want)
		require.Empty(t, out.String())
	}
}
