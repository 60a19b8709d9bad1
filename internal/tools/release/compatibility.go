package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// kubernetes is a version of the k8s.io libraries, and the version of controller-runtime that requires it.
type kubernetes struct{ version, controllerRuntime string }

// maintained has the oldest and the newest version in go.mod files of released modules, and one version of each minor
// version between them.
var maintained = []kubernetes{{"v0.35.0", "v0.23.0"}, {"v0.36.3", "v0.24.1"}, {"v0.37.2", "v0.25.2"}}

// compatibilityPage is the document with the table.
const compatibilityPage = "doc/compatibility.md"

// compatibility tests the released modules with the given minor versions of Kubernetes, such as 0.35, or with all
// versions in maintained. It compares the results with the lines of the table, or writes the lines. With each version,
// it tests only the modules that do not require a newer version.
func (all *modules) compatibility(minors []string, write bool) error {
	page, err := os.ReadFile(filepath.Join(all.root, compatibilityPage))
	if err != nil {
		return err
	}
	text := string(page)
	for _, k := range maintained {
		minor := strings.TrimPrefix(semver.MajorMinor(k.version), "v")
		if len(minors) > 0 && !slices.Contains(minors, minor) {
			continue
		}
		line, err := all.testWith(k)
		if err != nil {
			return fmt.Errorf("with Kubernetes %s: %w", k.version, err)
		}
		fmt.Println(line)
		start := strings.Index(text, "\n| "+minor+" |") + 1
		if start == 0 {
			return fmt.Errorf("%s: has no line of Kubernetes %s", compatibilityPage, minor)
		}
		end := start + strings.IndexByte(text[start:], '\n')
		if text[start:end] != line && !write {
			return fmt.Errorf("%s: the line of Kubernetes %s differs; compatibility -w writes it", compatibilityPage, minor)
		}
		text = text[:start] + line + text[end:]
	}
	if text == string(page) {
		return nil
	}
	return os.WriteFile(filepath.Join(all.root, compatibilityPage), []byte(text), 0o666)
}

// testWith tests the modules that do not require a newer version than k. It tests them in a workspace that also has a
// user's module at version k, and returns a line of the table. It runs neither fuzz tests nor tests that need the
// newest kinds.
func (all *modules) testWith(k kubernetes) (line string, err error) {
	scratch, err := os.MkdirTemp("", "release")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(scratch)
	line = fmt.Sprintf("| %s | %s | %s |", strings.TrimPrefix(semver.MajorMinor(k.version), "v"), k.version,
		k.controllerRuntime)
	work := "go 1.26.0\n"
	edit := []string{"mod", "edit"}
	var tested []string
	for _, m := range all.list {
		if !m.isReleased {
			continue
		}
		required, err := all.required(m, "k8s.io/apimachinery")
		if err != nil {
			return "", err
		}
		if semver.Compare(required, k.version) > 0 {
			line += " no |"
			continue
		}
		line += " yes |"
		dir := all.file(m.dir, "")
		work += fmt.Sprintf("\nuse %s\nreplace %s v0.0.0 => %s\n", dir, m.path, dir)
		edit = append(edit, "-replace="+m.path+"="+dir)
		tested = append(tested, m.path+"/...")
	}
	user := filepath.Join(scratch, "user")
	if err := all.useAt(k, user, edit); err != nil {
		return "", err
	}
	file := filepath.Join(scratch, "go.work")
	if err := os.WriteFile(file, []byte(work+"\nuse ./user\n"), 0o666); err != nil {
		return "", err
	}
	args := append([]string{"test", "-vet=off", "-skip", "^Fuzz|OfNewestKinds$"}, tested...)
	_, err = output(user, []string{"GOWORK=" + file}, "go", args...)
	return line, err
}

// useAt makes the module of a controller at a Kubernetes version, adds Tenure to it with the commands for a clone in
// doc/compatibility.md, and checks that it builds and still has that version.
func (all *modules) useAt(k kubernetes, dir string, edit []string) error {
	want := map[string]string{"sigs.k8s.io/controller-runtime": k.controllerRuntime}
	for _, name := range []string{"api", "apimachinery", "apiextensions-apiserver", "client-go"} {
		want["k8s.io/"+name] = k.version
	}
	goMod := "module example.com/user\n\ngo 1.26.0\n"
	for name, version := range want {
		goMod += fmt.Sprintf("\nrequire %s %s\n", name, version)
	}
	adapter := all.list[0].path
	for _, m := range all.list {
		if m.dir == "controllerruntime" {
			adapter = m.path
		}
	}
	program := fmt.Sprintf("package main\n\nimport (\n\t_ %q\n\t_ %q\n\t_ \"sigs.k8s.io/controller-runtime\"\n)\n\n"+
		"func main() {}\n", adapter, path.Join(adapter, "fake"))
	if err := errors.Join(
		os.Mkdir(dir, 0o777),
		os.WriteFile(filepath.Join(dir, "go.mod"), []byte(goMod), 0o666),
		os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o666),
	); err != nil {
		return err
	}
	env := []string{"GOWORK=off"}
	for _, args := range [][]string{
		edit, {"get", adapter + "@v0.0.0"}, {"mod", "tidy"}, {"build", "-o", os.DevNull, "."},
	} {
		if _, err := output(dir, env, "go", args...); err != nil {
			return err
		}
	}
	versions, err := output(dir, env, "go", "list", "-m", "all")
	if err != nil {
		return err
	}
	for name, version := range want {
		if !strings.Contains(versions+"\n", "\n"+name+" "+version+"\n") {
			return fmt.Errorf("go get %s changed %s, expected %s:\n%s", adapter, name, version, versions)
		}
	}
	return nil
}

// required returns the version of another module that go.mod of m requires.
func (all *modules) required(m module, other string) (string, error) {
	name := all.file(m.dir, "go.mod")
	data, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	file, err := modfile.ParseLax(name, data, nil)
	if err != nil {
		return "", err
	}
	for _, r := range file.Require {
		if r.Mod.Path == other {
			return r.Mod.Version, nil
		}
	}
	return "", fmt.Errorf("%s: does not require %s", name, other)
}
