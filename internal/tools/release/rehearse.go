package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	modversion "golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"
)

// rehearsal describes what users do with a release.
type rehearsal struct {
	command string   // the package to install, relative to the root module
	args    []string // to run the command with; ROOT in them is the root of the repository
	program string   // the folder of a program to build and run, relative to the root
	imports []string // the modules that the program imports, relative to the root module
	doc     string   // the package whose documentation is read, relative to the root module
}

// tenure applies a manifest with the command, and runs a program that calls the library and the API server.
var tenure = rehearsal{
	command: "/cmd/tenure",
	args:    []string{"apply", "--store", "tenure.db", "-f", "ROOT/doc/examples/nginx.yaml", "--field-manager", "alice"},
	program: "internal/tools/release/_program",
	imports: []string{"", "/apiserver"},
	doc:     "/fieldmanager",
}

// rehearse installs, builds and runs programs from the tree as users do from a release, in empty folders and outside of
// the workspace. It packs the released modules into zip files, as the go command does for a tag, in a folder that is
// the first GOPROXY. Other modules come from the module cache. No other proxy is used: the go command also looks for a
// module with the path of each package that it installs, and fails after any response except "not found".
func (all *modules) rehearse(r rehearsal) error {
	scratch, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	proxy, tree := filepath.Join(scratch, "proxy"), filepath.Join(scratch, "tree")
	version, err := all.copyTree(tree)
	if err != nil {
		return err
	}
	cache, err := output(all.root, nil, "go", "env", "GOMODCACHE")
	if err != nil {
		return err
	}
	online, err := output(all.root, nil, "go", "env", "GOPROXY")
	if err != nil {
		return err
	}
	root := all.list[0].path
	for _, m := range all.list {
		if m.dir == "." {
			root = m.path
		}
		if m.isReleased {
			if err := all.pack(m, version, tree, proxy); err != nil {
				return fmt.Errorf("%s: %w", m.path, err)
			}
			defer forget(cache, m.path, version)
		}
	}
	env := []string{"GOWORK=off", "GOPRIVATE=", "GONOPROXY=none", "GOSUMDB=off", "GOBIN=" + scratch,
		"GOPROXY=file://" + proxy + ",file://" + filepath.Join(cache, "cache", "download")}
	dir := filepath.Join(scratch, "program")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(all.root, r.program))); err != nil {
		return err
	}
	goGet := []string{"go", "get"}
	for _, name := range r.imports {
		goGet = append(goGet, root+name+"@"+version)
	}
	run := []string{filepath.Join(scratch, filepath.Base(r.command))}
	for _, arg := range r.args {
		run = append(run, strings.ReplaceAll(arg, "ROOT", all.root))
	}
	for _, command := range [][]string{
		{"go", "install", root + r.command + "@" + version}, run,
		{"go", "mod", "init", "example.com/program"}, goGet, {"go", "mod", "tidy"}, {"go", "run", "."},
		{"go", "doc", root + r.doc}, {"go", "list", "-m", "all"}, {"go", "mod", "vendor"},
	} {
		fmt.Println(strings.Join(command, " "))
		if command[1] == "doc" { // go doc lists all modules, and a build does not cache enough of them
			env = append(env, "GOPROXY=file://"+proxy+","+online)
		}
		printed, err := output(dir, env, command[0], command[1:]...)
		if err != nil {
			return err
		}
		if len(printed) > 1000 {
			printed = printed[:1000] + "…"
		}
		fmt.Println(printed)
	}
	return nil
}

// copyTree copies the files that git tracks or would add, and returns a version that is a digest of these files. The
// version must differ for different files, because the module cache never reads a version again.
func (all *modules) copyTree(tree string) (version string, err error) {
	names, err := output(all.root, nil, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return "", err
	}
	digest := sha256.New()
	for name := range strings.SplitSeq(strings.TrimSuffix(names, "\x00"), "\x00") {
		info, err := os.Lstat(filepath.Join(all.root, name))
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			continue // deleted in the tree, or a link, which a module can't contain
		}
		data, err := os.ReadFile(filepath.Join(all.root, name))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(digest, "%s %d\n%s", name, len(data), data)
		to := filepath.Join(tree, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o777), os.WriteFile(to, data, 0o666)); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("v0.0.0-rehearsal-%x", digest.Sum(nil)[:8]), nil
}

// pack writes the files that GOPROXY serves for one version of a module. A module without a LICENSE gets the
// repository's, as with the go command.
func (all *modules) pack(m module, version, tree, proxy string) error {
	goMod, err := all.edit(m, at(version))
	if err != nil {
		return err
	}
	license, err := os.ReadFile(filepath.Join(tree, "LICENSE"))
	if err != nil {
		return err
	}
	dir, base := filepath.Join(tree, m.dir), filepath.Join(proxy, m.path, "@v")
	if err := errors.Join(
		os.MkdirAll(base, 0o777),
		os.WriteFile(filepath.Join(dir, "LICENSE"), license, 0o666),
		os.WriteFile(filepath.Join(dir, "go.mod"), goMod, 0o666),
		os.WriteFile(filepath.Join(base, version+".mod"), goMod, 0o666),
		os.WriteFile(filepath.Join(base, version+".info"), fmt.Appendf(nil, "{\"Version\": %q}\n", version), 0o666),
		os.WriteFile(filepath.Join(base, "list"), []byte(version+"\n"), 0o666),
	); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(base, version+".zip"))
	if err != nil {
		return err
	}
	return errors.Join(modzip.CreateFromDir(file, modversion.Version{Path: m.path, Version: version}, dir), file.Close())
}

// forget removes a packed module from the module cache, whose folders are read-only.
func forget(cache, path, version string) {
	found, _ := filepath.Glob(filepath.Join(cache, "cache", "download", path, "@v", version+".*"))
	for _, name := range append(found, filepath.Join(cache, path+"@"+version)) {
		_ = filepath.WalkDir(name, func(name string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				return os.Chmod(name, 0o777)
			}
			return err
		})
		_ = os.RemoveAll(name)
	}
}
