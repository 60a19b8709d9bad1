package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
)

// A process that runs commands, such as one that links them, does not grow with each.
func TestMemoryOfCommands(t *testing.T) {
	const warmUp, rounds, perCommand = 2, 4, 12 << 10
	commands := 0
	round := func(i int) {
		dir := t.TempDir()
		for name, file := range hostileFiles(fmt.Sprint("text ", i)) {
			data, ok := file.([]byte)
			if !ok {
				var err error
				data, err = json.Marshal(file)
				require.NoError(t, err)
			}
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
		}
		for _, args := range printing {
			commands++
			runMain(process.Env{
				Stdout: io.Discard, Stderr: io.Discard, Dir: dir, Getenv: func(string) string { return "" },
			}, args)
		}
	}
	used := func() uint64 {
		var stats runtime.MemStats
		for range 3 {
			runtime.GC() // finalizers and weak pointers take more than one
		}
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc + stats.StackInuse
	}
	for i := range warmUp {
		round(i)
	}
	before, goroutines := used(), runtime.NumGoroutine()
	commands = 0
	for i := range rounds {
		round(warmUp + i)
	}
	after := used()
	t.Logf("%d commands, %d bytes each; %d goroutines, then %d", commands, (int(after)-int(before))/commands, goroutines,
		runtime.NumGoroutine())
	require.Less(t, int(after)-int(before), commands*perCommand)
	require.Less(t, runtime.NumGoroutine(), goroutines+10)
}
