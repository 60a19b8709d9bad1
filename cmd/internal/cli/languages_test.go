package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/cmd/internal/server"
)

// commandVariable is an environment variable that makes the test binary run as the command tenure.
const commandVariable = "TENURE_TEST_COMMAND"

func runCommand() {
	env := Process()
	env.Server = server.New()
	os.Exit(Main(env, os.Args[1:]))
}

// TestLanguages runs programs in other languages, which start the command and access its server with the Kubernetes
// clients of their languages. To install the clients, run npm ci in testdata/languages, and install Debian's package
// python3-kubernetes.
func TestLanguages(t *testing.T) {
	program, err := os.Executable()
	require.NoError(t, err)
	for _, row := range []struct{ name, interpreter, check, script, want string }{
		{"node", "node", "", "apply.mjs", "applied, in conflict, forced, seen by the informer\n"},
		// Another python3, earlier in PATH, may lack Debian's packages.
		{"python", "/usr/bin/python3", "import kubernetes", "apply.py", "applied, in conflict, forced, watched\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			folder := filepath.Join("testdata", "languages")
			if row.name == "node" {
				if _, err := os.Stat(filepath.Join(folder, "node_modules")); err != nil {
					t.Skip("no node_modules: run npm ci in " + folder)
				}
			}
			if _, err := exec.LookPath(row.interpreter); err != nil {
				t.Skip(err)
			}
			if row.check != "" && exec.Command(row.interpreter, "-c", row.check).Run() != nil {
				t.Skip(row.interpreter + " lacks the package: " + row.check)
			}
			command := exec.CommandContext(t.Context(), row.interpreter, row.script)
			command.Dir, command.Stderr = folder, os.Stderr
			command.Env = append(os.Environ(), "TENURE="+program, commandVariable+"=1")
			out, err := command.Output()
			require.NoError(t, err)
			require.Equal(t, row.want, string(out))
		})
	}
}
