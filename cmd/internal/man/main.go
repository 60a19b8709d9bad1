// Command man writes the files that installation packages contain besides the command: manual pages and shell
// completions.
//
//	go run ./cmd/internal/man DIR
//
// It writes man/tenure*.1 and completions/tenure.bash, tenure.zsh, tenure.fish and tenure.ps1. The pages have the
// date from SOURCE_DATE_EPOCH, or today's date.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/tenure-ssa/tenure/cmd/internal/cli"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/server"
)

func main() {
	if err := run(os.Args[1:], os.Getenv("SOURCE_DATE_EPOCH"), time.Now()); err != nil {
		fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(1)
	}
}

func run(args []string, epoch string, now time.Time) error {
	if len(args) != 1 {
		return errors.New("usage: man DIR")
	}
	if epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return fmt.Errorf("SOURCE_DATE_EPOCH: expected seconds, got %q", epoch)
		}
		now = time.Unix(seconds, 0)
	}
	now = now.UTC()
	root := cli.Root(&process.Env{Name: "tenure", Server: server.New()})
	return errors.Join(writePages(root, filepath.Join(args[0], "man"), now),
		writeCompletions(root, filepath.Join(args[0], "completions")))
}

func writePages(root *cobra.Command, dir string, date time.Time) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	root.DisableAutoGenTag = true
	header := &doc.GenManHeader{Section: "1", Source: "Tenure", Manual: "Tenure", Date: &date}
	return doc.GenManTree(root, header, dir)
}

func writeCompletions(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	return errors.Join(
		root.GenBashCompletionFileV2(filepath.Join(dir, "tenure.bash"), true),
		root.GenZshCompletionFile(filepath.Join(dir, "tenure.zsh")),
		root.GenFishCompletionFile(filepath.Join(dir, "tenure.fish"), true),
		root.GenPowerShellCompletionFileWithDesc(filepath.Join(dir, "tenure.ps1")),
	)
}
