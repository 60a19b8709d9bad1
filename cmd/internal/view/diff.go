package view

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/fatih/color"
	"github.com/pmezard/go-difflib/difflib"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/planning"
	"github.com/tenure-ssa/tenure/managedfields"
)

// Folders for the versions of objects in a diff, named as in kubectl diff.
const (
	liveFolder   = "LIVE"
	mergedFolder = "MERGED"
)

// version is a file in a diff: an object before or after the apply.
type version struct {
	name, text string
}

// diff has the versions that the program of KUBECTL_EXTERNAL_DIFF compares.
type diff struct{ live, merged []version }

// addDiff writes a unified diff of a changed object, or keeps both versions for the program of KUBECTL_EXTERNAL_DIFF.
// It explains conflicts on stderr.
func (v *Plans) addDiff(p *planning.Planned) error {
	switch p.Outcome {
	case plans.Unchanged:
		return nil
	case plans.Conflict:
		return v.writePlan(v.Env.Context, v.Env.Stderr, p)
	}
	return v.compare(p.Target, p.Desired.Object, p.ObjectAfter(), p.Where)
}

func (v *Plans) compare(t *planning.Target, before, after map[string]any, file string) error {
	name := strings.TrimPrefix(strings.Join([]string{
		t.Kind.Group, t.Kind.Version, t.Kind.Kind, t.Namespace, t.Name,
	}, "."), ".")
	texts, err := v.yamlOf(before, after)
	if err != nil {
		return err
	}
	live, merged := version{name, texts[0]}, version{name, texts[1]}
	if v.Env.Getenv(externalDiff) == "" {
		return v.writeUnified(v.Env.Stdout, live, merged, file)
	}
	v.diff.live, v.diff.merged = append(v.diff.live, live), append(v.diff.merged, merged)
	return nil
}

const externalDiff = "KUBECTL_EXTERNAL_DIFF"

// closeDiff adds pruned objects, and runs the program of KUBECTL_EXTERNAL_DIFF.
func (v *Plans) closeDiff() error {
	for _, p := range v.Pruned {
		if err := v.compare(p.Target, p.Object, nil, reason(&p)); err != nil {
			return err
		}
	}
	if len(v.diff.live) == 0 {
		return nil
	}
	return runDiff(v.Env, v.Env.Getenv(externalDiff), v.diff.live, v.diff.merged)
}

// yamlOf returns two versions of an object as YAML without values of Secrets. The text of a nil version is empty.
func (v PlanView) yamlOf(before, after map[string]any) (texts [2]string, err error) {
	before, after = hideTrees(before, after)
	for i, tree := range []map[string]any{before, after} {
		if tree == nil {
			continue
		}
		if !v.ManagedFields {
			tree = managedfields.With(tree, nil)
		}
		var text strings.Builder
		if err := Encode(&text, "yaml", tree); err != nil {
			return texts, err
		}
		texts[i] = text.String()
	}
	return texts, nil
}

// writeUnified writes a unified diff. Its header names the manifest's file and the object.
func (v PlanView) writeUnified(w io.Writer, live, merged version, file string) error {
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: slices.Collect(strings.Lines(live.text)), FromFile: liveFolder + "/" + live.name,
		B: slices.Collect(strings.Lines(merged.text)), ToFile: mergedFolder + "/" + merged.name, Context: 3,
	})
	if err != nil || text == "" {
		return err
	}
	for line := range strings.Lines("diff " + file + "\n" + text) {
		line = strings.TrimSuffix(line, "\n")
		var attribute color.Attribute
		switch {
		case strings.HasPrefix(line, "+"):
			attribute = color.FgGreen
		case strings.HasPrefix(line, "-"):
			attribute = color.FgRed
		case strings.HasPrefix(line, "@@"):
			attribute = color.FgCyan
		}
		fmt.Fprintln(w, v.Palette.paint(line, attribute))
	}
	return nil
}

// diffArgument matches the arguments in KUBECTL_EXTERNAL_DIFF that kubectl diff uses. Like kubectl diff, this command
// ignores other arguments.
var diffArgument = regexp.MustCompile(`^[a-zA-Z0-9-=]+$`)

// runDiff runs a program on two folders with files, as kubectl diff does.
func runDiff(env *process.Env, program string, live, merged []version) error {
	folder, err := os.MkdirTemp("", "tenure-diff-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	words := strings.Split(program, " ")
	args := slices.DeleteFunc(words[1:], func(arg string) bool { return !diffArgument.MatchString(arg) })
	root, err := os.OpenRoot(folder) // names of objects can't lead out of a Root
	if err != nil {
		return err
	}
	defer root.Close()
	for side, files := range map[string][]version{liveFolder: live, mergedFolder: merged} {
		if err := root.Mkdir(side, 0o700); err != nil {
			return err
		}
		for _, file := range files {
			if err := root.WriteFile(filepath.Join(side, file.name), []byte(file.text), 0o600); err != nil {
				return err
			}
		}
	}
	cmd := exec.CommandContext(env.Context, words[0],
		append(args, filepath.Join(folder, liveFolder), filepath.Join(folder, mergedFolder))...)
	cmd.Stdout, cmd.Stderr = env.Stdout, env.Stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 { // status 1 means differences
		return nil
	}
	if err != nil {
		return fmt.Errorf("KUBECTL_EXTERNAL_DIFF: %w", err)
	}
	return nil
}
