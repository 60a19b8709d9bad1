package cli

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
