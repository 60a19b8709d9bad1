package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/view"
	"github.com/tenure-ssa/tenure/fieldmanager/fieldmanagertest"
	"github.com/tenure-ssa/tenure/internal/expansion"
	"github.com/tenure-ssa/tenure/internal/folder"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/internal/secrets"
	"github.com/tenure-ssa/tenure/internal/txtar"
)

func newTest(env *process.Env) *cobra.Command {
	var update, verbose bool
	cmd := &cobra.Command{
		Use:   "test PATH…",
		Short: "Run scenarios: the writes of several managers, and their expected results",
		Long: `Test runs scenarios. A scenario is a text file (txtar) with a type, the writes of
several managers in order, and the expected result of each write: the whole object
with its managed fields, conflicts, or no change. An interleave step (see below)
runs writes in every order in which they can happen. It reports whether all orders
end with the same object, and which orders conflict. If results differ, it also
reports two orders that differ by one swap of writes, but have different results.
PATH is a scenario, or a folder of scenarios (.txtar, at any depth). This is an
example of a scenario:

  A manager that applies another value has a conflict.

  -- schema --
  spec: {type: object, properties: {a: {type: integer}}}
  -- apply alice --
  spec: {a: 1}
  -- want --
  (the whole object with its managed fields; --update writes it)
  -- apply bob --
  spec: {a: 2}
  -- conflict --
  (the message and the causes of the Status)

` + indented(fieldmanagertest.Grammar) + `
An interrupt (Ctrl-C) ends the run. A running interleave step then reports the
orders that ran.

Test prints every difference, with - for expected and + for actual lines. The last
line is

  N scenarios: P passed, F failed

Exit status: 0 if all scenarios passed, 1 if any failed, or on any error.`,
		Example: `  tenure test testdata/scenarios
  tenure test --update my-scenario.txtar`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := scenarioFiles(env, args)
			if err != nil {
				return err
			}
			if len(files) == 0 {
				return fmt.Errorf("no scenarios found")
			}
			ctx, stop := signal.NotifyContext(env.Context, syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			context.AfterFunc(ctx, stop) // a second interrupt ends the process
			run, failed := 0, 0
			for _, file := range files {
				if ctx.Err() != nil {
					break
				}
				ok, err := runScenario(ctx, env, file, update, verbose)
				if err != nil {
					return err
				}
				run++
				if !ok {
					failed++
				}
			}
			fmt.Fprintf(env.Stdout, "%s: %d passed, %d failed\n",
				printable.Counted(run, "scenario", "scenarios"), run-failed, failed)
			switch {
			case ctx.Err() != nil:
				return fmt.Errorf("interrupted: %s not run",
					printable.Counted(len(files)-run, "scenario was", "scenarios were"))
			case failed > 0:
				return errReported
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&update, "update", false, "write the result of each step into the file, as the expected result")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "print a line for every scenario")
	return cmd
}

// indented returns a text with indented lines.
func indented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line != "\n" {
			line = "  " + line
		}
		b.WriteString(line)
	}
	return b.String()
}

// runScenario runs one scenario and prints the result; ok is true if it passed.
func runScenario(ctx context.Context, e *process.Env, file string, update, verbose bool) (ok bool, err error) {
	var bar view.Bar
	s, err := fieldmanagertest.RunFileWith(file, fieldmanagertest.RunOptions{
		Context: ctx, Progress: func(what string, ran, total int) {
			if ran == 0 {
				bar = view.NewBar(e, what, total)
			} else {
				bar.Step()
			}
		},
	})
	bar.Done()
	if err != nil {
		printFailure(e, file, err)
		return false, nil
	}
	s.Path = e.Relative(file)
	switch err = s.Err(); {
	case err != nil && update:
		text, err := s.Rewritten()
		if err != nil {
			printFailure(e, file, err)
			return false, nil
		}
		if err := os.WriteFile(file, text, 0o666); err != nil {
			return false, err
		}
		fmt.Fprintf(e.Stdout, "updated %s\n", s.Path)
	case err != nil:
		printFailure(e, file, err)
		return false, nil
	case verbose:
		fmt.Fprintf(e.Stdout, "ok   %s: %s\n", s.Path, printable.Counted(len(s.Steps), "step", "steps"))
	}
	return true, nil
}

// printFailure prints why a scenario failed, without the values of Secrets in the scenario.
func printFailure(e *process.Env, file string, err error) {
	text, _ := os.ReadFile(file)
	var trees []map[string]any
	for _, section := range txtar.Parse(text).Files {
		var tree map[string]any
		if expansion.Check(section.Data) != nil || yaml.Unmarshal(section.Data, &tree) != nil || len(tree) == 0 {
			continue
		}
		if tree["kind"] == nil && len(trees) > 0 { // omitted: the same as in the first object
			tree["apiVersion"], tree["kind"] = trees[0]["apiVersion"], trees[0]["kind"]
		}
		trees = append(trees, tree)
	}
	fmt.Fprintf(e.Stdout, "FAIL %s\n%s\n", e.Relative(file), secrets.WithoutValues(fmt.Sprint(err), trees...))
}

// scenarioFiles returns the paths that are files, and the .txtar files in the paths that are folders.
func scenarioFiles(env *process.Env, paths []string) ([]string, error) {
	paths = slices.Clone(paths)
	for i, path := range paths {
		paths[i] = env.Path(path)
	}
	return folder.Files(paths, func(name string) bool { return filepath.Ext(name) == ".txtar" })
}
