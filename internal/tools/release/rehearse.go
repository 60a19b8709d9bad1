package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/module"
)

// rehearsal is what users do with a release.
type rehearsal struct {
	command string   // the package to install, relative to the root module
	args    []string // to run the command with; ROOT in them is the root of the repository
	program string   // the folder of a program to build and run, relative to the root
	imports []string // the folders of the modules that the program imports
}

// tenureRehearsal applies a manifest with the command, and runs a program that calls the library and the API server.
var tenureRehearsal = rehearsal{
	command: "cmd/tenure",
	args:    []string{"apply", "-f", "ROOT/doc/examples/nginx.yaml", "--field-manager", "alice"},
	program: "internal/tools/release/_program",
	imports: []string{".", "apiserver"},
}

// rehearse does with the tree what users do with a release, in empty folders and outside of the workspace.
func (w *workspace) rehearse(r rehearsal) error {
	start := time.Now()
	step := func(format string, args ...any) {
		fmt.Fprintf(w.out, "%s (after %ds)\n", fmt.Sprintf(format, args...), int(time.Since(start).Seconds()))
	}
	step("check go.mod of %d modules", len(w.modules))
	if err := w.check(); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	step("pack %d modules", len(w.released()))
	proxy, err := w.packRehearsal(filepath.Join(scratch, "proxy"))
	if err == nil {
		err = errors.Join(w.rehearseWith(r, proxy, scratch, step), w.forget(proxy))
	}
	if err = errors.Join(err, os.RemoveAll(scratch)); err == nil {
		step("rehearsed")
	}
	return err
}

func (w *workspace) rehearseWith(r rehearsal, proxy *fileProxy, scratch string, step func(string, ...any)) error {
	for _, m := range w.released() {
		fmt.Fprintf(w.out, "    %s %s\n", proxy.modules[m.path()].Version, proxy.modules[m.path()].sum)
	}
	step("go mod tidy of every module, without the workspace")
	if err := w.tidy(proxy, scratch, false); err != nil {
		return err
	}
	env, err := w.cachedEnv(proxy)
	if err != nil {
		return err
	}
	root, err := w.rootPath()
	if err != nil {
		return err
	}

	empty, bin := filepath.Join(scratch, "empty"), filepath.Join(scratch, "bin")
	if err := os.Mkdir(empty, 0o777); err != nil {
		return err
	}
	target := root + "/" + r.command + "@" + proxy.version
	step("go install %s", target)
	if _, err := capture(empty, append(env, "GOBIN="+bin), "go", "install", target); err != nil {
		return err
	}
	args := slices.Clone(r.args)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "ROOT", w.root)
	}
	name := filepath.Base(r.command)
	step("%s %s", name, strings.Join(args, " "))
	printed, err := capture(empty, env, filepath.Join(bin, name), args...)
	if err != nil {
		return err
	}
	fmt.Fprintf(w.out, "    %s\n", strings.ReplaceAll(printed, "\n", "\n    "))
	return w.buildProgram(r, proxy, env, filepath.Join(scratch, "program"), step)
}

// buildProgram copies the program into a folder of its own, makes it a module, and runs it.
func (w *workspace) buildProgram(r rehearsal, proxy *fileProxy, env []string, dir string,
	step func(string, ...any),
) error {
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(w.root, filepath.FromSlash(r.program)))); err != nil {
		return err
	}
	get := []string{"get"}
	for _, m := range w.released() {
		if slices.Contains(r.imports, m.dir) {
			get = append(get, m.path()+"@"+proxy.version)
		}
	}
	for _, args := range [][]string{{"mod", "init", "example.com/program"}, get, {"build", "-mod=mod", "-o", "program"}} {
		step("go %s", strings.Join(args, " "))
		if _, err := capture(dir, env, "go", args...); err != nil {
			return err
		}
	}
	step("./program")
	printed, err := capture(dir, env, filepath.Join(dir, "program"))
	if err != nil {
		return err
	}
	fmt.Fprintf(w.out, "    %s\n", strings.ReplaceAll(printed, "\n", "\n    "))
	return nil
}

// rootPath returns the path of the root module.
func (w *workspace) rootPath() (string, error) {
	for _, m := range w.modules {
		if m.dir == "." {
			return m.path(), nil
		}
	}
	return "", errors.New("go.work: does not use the root module")
}

// fullEnv makes the go command take the modules of the workspace from the proxy, and all others as usual.
func (w *workspace) fullEnv(proxy *fileProxy) ([]string, error) {
	usual, err := capture(w.root, w.env, "go", "env", "GOPROXY", "GONOSUMDB")
	if err != nil {
		return nil, err
	}
	others, unchecked, _ := strings.Cut(usual, "\n")
	root, err := w.rootPath()
	if err != nil {
		return nil, err
	}
	env := append(slices.Clone(w.env), "GOWORK=off", "GOPRIVATE=", "GONOPROXY=none")
	return append(env, "GOPROXY=file://"+filepath.ToSlash(proxy.dir)+","+others,
		"GONOSUMDB="+strings.Trim(root+","+unchecked, ",")), nil
}

// cachedEnv makes the go command take the modules of the workspace from the proxy, and all others from the module
// cache. It asks no other proxy: the go command also looks for a module with the path of each package that it installs,
// and an answer other than "not found", which some proxies give for modules that are not public, stops it. The go
// command checked the checksums of what is in the cache when it put it there.
func (w *workspace) cachedEnv(proxy *fileProxy) ([]string, error) {
	cache, err := w.moduleCache()
	if err != nil {
		return nil, err
	}
	env := append(slices.Clone(w.env), "GOWORK=off", "GOPRIVATE=", "GONOPROXY=none", "GOSUMDB=off")
	return append(env, "GOPROXY=file://"+filepath.ToSlash(proxy.dir)+
		",file://"+filepath.ToSlash(filepath.Join(cache, "cache", "download"))), nil
}

func (w *workspace) moduleCache() (string, error) {
	return capture(w.root, w.env, "go", "env", "GOMODCACHE")
}

// forget removes the packed modules from the module cache, where nobody would need them again.
func (w *workspace) forget(proxy *fileProxy) error {
	cache, err := w.moduleCache()
	if err != nil {
		return err
	}
	for path := range proxy.modules {
		escaped, err := module.EscapePath(path)
		if err != nil {
			return err
		}
		escaped = filepath.FromSlash(escaped)
		found, err := filepath.Glob(filepath.Join(cache, "cache", "download", escaped, "@v", proxy.version+".*"))
		if err != nil {
			return err
		}
		for _, name := range append(found, filepath.Join(cache, escaped+"@"+proxy.version)) {
			if err := removeReadOnly(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeReadOnly removes a file or a folder of the module cache, whose folders are read-only.
func removeReadOnly(name string) error {
	err := filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(path, 0o777)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, os.RemoveAll(name))
}
