//go:build !js

package main

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/tenure-ssa/tenure/cmd/internal/page"
	"github.com/tenure-ssa/tenure/cmd/internal/playground"
)

//go:embed page
var embedded embed.FS

// build writes the files of the site into a folder: the page, the repository's scenarios as examples, the engine, and
// wasm_exec.js. That script, which runs the engine, is part of the Go distribution, and must have the compiler's
// version.
func build(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	files, err := embedded.ReadDir("page")
	if err != nil {
		return err
	}
	for _, f := range files {
		data, err := embedded.ReadFile("page/" + f.Name())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, f.Name()), data, 0o666); err != nil {
			return err
		}
	}
	root, err := goOutput("list", "-m", "-f", "{{.Dir}}", "github.com/tenure-ssa/tenure")
	if err != nil {
		return err
	}
	examples, err := playground.ReadExamples(filepath.Join(root, "testdata", "scenarios"))
	if err != nil {
		return err
	}
	data, err := json.Marshal(examples)
	if err != nil {
		return err
	}
	goroot, err := goOutput("env", "GOROOT")
	if err != nil {
		return err
	}
	const runtime = "wasm_exec.js"
	script, err := os.ReadFile(filepath.Join(goroot, "lib", "wasm", runtime))
	if err != nil {
		return err
	}
	engine, err := buildEngine()
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "base.css"), []byte(page.Base), 0o666),
		os.WriteFile(filepath.Join(dir, "examples.json"), data, 0o666),
		os.WriteFile(filepath.Join(dir, runtime), script, 0o666),
		os.WriteFile(filepath.Join(dir, "engine.wasm.gz"), engine, 0o666),
	)
}

// buildEngine compiles and compresses the engine. Without inlining, the result is a seventh smaller.
func buildEngine() ([]byte, error) {
	scratch, err := os.MkdirTemp("", "playground")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	file := filepath.Join(scratch, "engine.wasm")
	compile := exec.Command("go", "build", "-trimpath", "-gcflags=all=-l", "-ldflags=-s -w", "-o", file,
		"github.com/tenure-ssa/tenure/cmd/playground")
	compile.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	if out, err := compile.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", compile, err, out)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func goOutput(args ...string) (string, error) {
	out, err := exec.Command("go", args...).Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
