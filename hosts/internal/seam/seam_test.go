package seam

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/hosts/internal/gomod"
	"github.com/tenure-ssa/tenure/hosts/internal/patch"
)

// TestPatchesHold applies the patches to the versions that this module requires. For other versions, the command
// applies them and reports what has changed.
func TestPatchesHold(t *testing.T) {
	const version = "v0.37.2"
	for _, m := range slices.Concat(Modules(), Merge()) {
		t.Run(m.Path, func(t *testing.T) {
			from, err := gomod.Download(m.Path, cmp.Or(m.Version, version))
			require.NoError(t, err)
			to := t.TempDir()
			for _, step := range m.Steps {
				copyPackage(t, filepath.Join(from, step.Package()), filepath.Join(to, step.Package()))
			}
			changes, err := patch.Apply(to, m.Steps)
			require.NoError(t, err)
			for _, c := range changes {
				step := c.Step
				if _, ok := step.(patch.Imports); ok {
					continue
				}
				if file, ok := step.(patch.AddFile); ok && file.Unless != "" {
					require.Zero(t, c.Lines, "this version has %s", file.Unless)
					continue
				}
				require.Positive(t, c.Lines, "%s", step)
			}
			_, err = patch.Apply(to, m.Steps)
			require.ErrorIs(t, err, patch.ErrUpstreamChanged, "what is patched can't be patched again")
		})
	}
}

func copyPackage(t *testing.T, from, to string) {
	require.NoError(t, os.MkdirAll(to, 0o755))
	entries, err := os.ReadDir(from)
	require.NoError(t, err)
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		data, err := os.ReadFile(filepath.Join(from, e.Name()))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(to, e.Name()), data, 0o644))
	}
}

// TestAccessors tests the accessors of FieldsV1 that versions before 1.36 get: they must behave as documented in
// 1.36.
func TestAccessors(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module accessors\n\ngo 1.24\n",
		"copy.go": strings.Replace(string(fieldsV1File), "package v1", "package main", 1),
		"main.go": `package main

import "fmt"

type FieldsV1 struct{ Raw []byte }

func main() {
	raw := []byte("{}")
	a, b := &FieldsV1{}, &FieldsV1{}
	a.SetRawBytes(raw)
	raw[0] = 'x'
	b.SetRawBytes(raw[:0])
	var none *FieldsV1
	none.SetRawBytes(raw)
	fmt.Printf("%s %s %s %v", a.GetRawBytes(), b.GetRawBytes(), NewFieldsV1("{}").Raw, none.GetRawBytes() == nil)
}
`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	cmd := exec.Command("go", "run", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, "{}  {} true", string(out), "SetRawBytes keeps a copy")
}
