// Command release rehearses a release of the repository's modules, and prepares one.
//
//	cd internal/tools && GOWORK=off go run ./release COMMAND
//
//	check                check that the modules can be released together
//	tidy [-w]            check that go.mod and go.sum of every module are tidy; -w tidies them
//	rehearse             check, tidy, pack the modules, install the command and build a program from the packed modules
//	prepare VERSION      write VERSION into the modules' requirements on each other, and into CHANGELOG.md
//	tag VERSION          check that HEAD is prepared for VERSION, and print the git commands that publish it
//	dist [-platforms LIST] DIR VERSION
//	                     build the command for the platforms (all of a release by default), and write archives, SBOMs, a
//	                     krew manifest, the context of an image and checksums into DIR
//	verify DIR           check what dist wrote: install it by krew, and run it alone in a file system
//
// A release is one version of all released modules: the root module has the tag vX.Y.Z, the module in the folder
// apiserver the tag apiserver/vX.Y.Z. Modules that hold only tests are not released (see testModules).
//
// Between releases, the modules need each other as they are in the tree, and not at the version that go.mod requires.
// In the workspace, go.work takes care of that. Outside of it, the command packs the modules into zip files as the go
// command does, at a version that is a digest of the files, and serves them from a folder as GOPROXY. So go.mod needs
// no replace directive, which would not hold for anybody who imports or installs a module.
//
// Nothing is pushed, and only tidy -w and prepare write to the tree. The exit status is 1 when a check fails.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

func main() {
	if err := runCommand(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: release check | tidy [-w] | rehearse | prepare VERSION | tag VERSION | " +
	"dist [-platforms LIST] DIR VERSION | verify DIR")

func runCommand(args []string, out io.Writer) error {
	if len(args) == 0 {
		return errUsage
	}
	flags := flag.NewFlagSet("release "+args[0], flag.ContinueOnError)
	write := flags.Bool("w", false, "tidy: write go.mod and go.sum")
	list := flags.String("platforms", "", "dist: platforms as in linux/amd64,darwin/arm64")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	root, err := capture(".", nil, "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	w, err := loadWorkspace(root, out)
	if err != nil {
		return err
	}
	switch command, version := args[0], flags.Arg(0); {
	case command == "check" && flags.NArg() == 0:
		return w.check()
	case command == "tidy" && flags.NArg() == 0:
		return w.tidyAll(*write)
	case command == "rehearse" && flags.NArg() == 0:
		return w.rehearse(tenureRehearsal)
	case command == "prepare" && flags.NArg() == 1:
		return w.prepare(version, time.Now())
	case command == "tag" && flags.NArg() == 1:
		return w.tag(version)
	case command == "dist" && flags.NArg() == 2:
		chosen, err := choosePlatforms(*list)
		if err != nil {
			return err
		}
		return w.dist(flags.Arg(0), flags.Arg(1), chosen)
	case command == "verify" && flags.NArg() == 1:
		return w.verifyDist(flags.Arg(0))
	}
	return errUsage
}
