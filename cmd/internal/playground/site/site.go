// Package site has the page of the playground: it writes the files of a static site, and serves them.
//
// The page has the engine in one of two ways. In a static site it is WebAssembly, and nothing is sent anywhere. A
// command that was built without the WebAssembly file (which is made from this repository, and not a part of it)
// answers the page itself, on loopback; see Handler.
package site

import (
	"bytes"
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:generate go run ../../../playground examples ../../../../testdata/scenarios page/examples.json

//go:embed page
var embedded embed.FS

// Engine is where the page has the engine.
type Engine string

// The engines.
const (
	WebAssembly Engine = "wasm"
	Server      Engine = "server"
)

// The files of a static site that are made when it is built: the engine, compressed, and the script of the Go
// distribution that runs it.
const (
	engineFile  = "engine.wasm.gz"
	runtimeFile = "wasm_exec.js"
)

// staticFiles are the files of the page that are the same everywhere.
var staticFiles = []string{"page.css", "page.js", "state.js", "results.js", "worker.js", "examples.json"}

// index returns index.html for an engine.
func index(engine Engine) ([]byte, error) {
	text, err := fs.ReadFile(embedded, "page/index.html")
	if err != nil {
		return nil, err
	}
	// Not by a template: a program with one has every exported method, which is megabytes in a command that knows all
	// types of Kubernetes.
	filled := strings.NewReplacer("{{.Policy}}", html.EscapeString(policy(engine)), "{{.Engine}}", string(engine))
	return []byte(filled.Replace(string(text))), nil
}

// policy returns the content security policy of the page: it loads its own files and runs its own scripts. The worker
// compiles WebAssembly.
func policy(engine Engine) string {
	script := "script-src 'self'"
	if engine == WebAssembly {
		script += " 'wasm-unsafe-eval'"
	}
	return "default-src 'none'; " + script + "; style-src 'self'; connect-src 'self'; worker-src 'self'; " +
		"img-src data:; base-uri 'none'; form-action 'none'"
}

// Build writes the files of a static site into a folder. It compiles the engine, so it runs the go command, and needs
// the module of this package in the current folder or above it.
func Build(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	page, err := index(WebAssembly)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "index.html"), page, 0o666); err != nil {
		return err
	}
	for _, name := range staticFiles {
		data, err := fs.ReadFile(embedded, "page/"+name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			return err
		}
	}
	return errors.Join(buildEngine(dir), copyRuntime(dir))
}

// buildEngine compiles the engine. Without inlining, the compressed file is smaller by a seventh, and
// still fast enough.
func buildEngine(dir string) error {
	scratch, err := os.MkdirTemp("", "playground")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	file := filepath.Join(scratch, "engine.wasm")
	build := exec.Command("go", "build", "-trimpath", "-gcflags=all=-l", "-ldflags=-s -w", "-o", file,
		"github.com/tenure-ssa/tenure/cmd/playground")
	build.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", build, err, out)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var compressed bytes.Buffer
	w, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, engineFile), compressed.Bytes(), 0o666)
}

// copyRuntime copies the script of the Go distribution that runs WebAssembly. It has to be that of the compiler.
func copyRuntime(dir string) error {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env GOROOT: %w", err)
	}
	data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", runtimeFile))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, runtimeFile), data, 0o666)
}
