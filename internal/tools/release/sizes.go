package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// sizes prints two Markdown tables about the programs for this machine: their sizes with different build flags, and the
// sizes of their parts if they are built with the tags of a release.
func (all *modules) sizes() error {
	scratch, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	programs := []string{"tenure", "kubectl-tenure"}
	tags := "-tags=grpcnotrace,kustomize_disable_go_plugin_support"
	fmt.Println("| build | `tenure` | `kubectl-tenure` |\n| --- | ---: | ---: |")
	for _, row := range []struct {
		name  string
		flags []string
	}{
		{"`go build`", nil},
		{"with `-ldflags='-s -w'`", []string{"-ldflags=-s -w"}},
		{"with the two tags", []string{tags}},
		{"with both, as in releases", []string{tags, "-ldflags=-s -w"}},
	} {
		fmt.Print("| " + row.name)
		for _, program := range programs {
			path, err := all.build(scratch, program, row.flags...)
			if err != nil {
				return err
			}
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			fmt.Printf(" | %s", megabytes(info.Size()))
		}
		fmt.Println(" |")
	}
	parts := map[string]int64{}
	shares := make([]map[string]int64, len(programs))
	for i, program := range programs {
		path, err := all.build(scratch, program, tags)
		if err == nil {
			shares[i], err = all.partsOf(path, program, tags)
		}
		if err != nil {
			return err
		}
		for name, size := range shares[i] {
			parts[name] += size
		}
	}
	names := slices.SortedFunc(maps.Keys(parts), func(a, b string) int { return cmp.Compare(parts[b], parts[a]) })
	fmt.Println("\n| part, with the tags | `tenure` | `kubectl-tenure` |\n| --- | ---: | ---: |")
	for _, name := range names[:min(12, len(names))] {
		fmt.Printf("| %s | %s | %s |\n", name, megabytes(shares[0][name]), megabytes(shares[1][name]))
	}
	return nil
}

func megabytes(size int64) string { return fmt.Sprintf("%.1f MB", float64(size)/1e6) }

// build builds a program of module cmd in a folder and returns its path.
func (all *modules) build(dir, program string, flags ...string) (string, error) {
	path := filepath.Join(dir, program)
	args := append(append([]string{"build", "-o", path}, flags...), "./cmd/"+program)
	_, err := output(all.root, nil, "go", args...)
	return path, err
}

// partsOf adds up the sizes of the symbols of a program that is not stripped, by module.
func (all *modules) partsOf(path, program, tags string) (map[string]int64, error) {
	list, err := output(all.root, nil, "go", "list", "-deps", tags,
		"-f", "{{.ImportPath}} {{with .Module}}{{.Path}}{{else}}Go's library and runtime{{end}}", "./cmd/"+program)
	if err != nil {
		return nil, err
	}
	moduleOf := map[string]string{"main": all.list[0].path}
	for line := range strings.Lines(list) {
		name, module, _ := strings.Cut(strings.TrimSpace(line), " ")
		moduleOf[name] = module
	}
	symbols, err := output(all.root, nil, "go", "tool", "nm", "-size", path)
	if err != nil {
		return nil, err
	}
	parts := map[string]int64{}
	for line := range strings.Lines(symbols) {
		fields := strings.Fields(line) // address, size, section, name
		if len(fields) < 4 || strings.EqualFold(fields[2], "b") || fields[2] == "U" {
			continue // not in the file
		}
		size, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("go tool nm: %s: %w", line, err)
		}
		parts[partOf(fields[3], moduleOf)] += size
	}
	return parts, nil
}

// partOf returns the module that a symbol belongs to, or the purpose for which the linker creates the symbol.
func partOf(symbol string, moduleOf map[string]string) string {
	switch {
	case symbol == "runtime.pclntab" || strings.HasPrefix(symbol, "runtime.findfunc"):
		return "lines and names of functions"
	case strings.HasPrefix(symbol, "type:") || strings.HasPrefix(symbol, "runtime.types"):
		return "descriptions of types"
	case strings.HasPrefix(symbol, "go:"):
		return "strings and other data of several packages"
	}
	name, _, _ := strings.Cut(symbol, "[") // type arguments contain paths, too
	slash := strings.LastIndexByte(name, '/') + 1
	dot := strings.IndexByte(name[slash:], '.')
	if dot < 0 {
		return "other symbols"
	}
	if module, ok := moduleOf[strings.ReplaceAll(name[:slash+dot], "%2e", ".")]; ok {
		return "`" + module + "`"
	}
	return "other symbols"
}
