// Package helm runs the program helm, and provides its post-renderer, which runs between the rendering of a chart and
// Helm's first write.
package helm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/internal/planning/releases"
)

// Program is the program helm and its streams.
type Program struct {
	Path, Dir      string
	Stdin          []byte // values for -f -
	Stdout, Stderr io.Writer
}

// Manager returns the name of Helm's field manager, which is the name of the program.
func (p *Program) Manager() string { return filepath.Base(p.Path) }

// run runs helm with additional environment variables.
func (p *Program) run(ctx context.Context, stdout io.Writer, variables []string, args ...string) error {
	helm := exec.CommandContext(ctx, p.Path, args...)
	helm.Dir, helm.Env = p.Dir, append(os.Environ(), variables...)
	helm.Stdin, helm.Stdout, helm.Stderr = bytes.NewReader(p.Stdin), stdout, p.Stderr
	if err := helm.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", p.Path, args[0], err)
	}
	return nil
}

// readJSON decodes the output of helm with -o json. The output may contain Secrets, so errors do not quote it.
func (p *Program) readJSON(ctx context.Context, into any, args ...string) error {
	var out bytes.Buffer
	if err := p.run(ctx, &out, nil, append(args, "-o", "json")...); err != nil {
		return err
	}
	if json.Unmarshal(out.Bytes(), into) != nil {
		return fmt.Errorf("helm %s: expected JSON", args[0])
	}
	return nil
}

// Release returns the newest revision of a release.
func (p *Program) Release(ctx context.Context, name string) (releases.Release, error) {
	var found struct {
		Name, Namespace string
		Revision        int
	}
	err := p.readJSON(ctx, &found, "get", "metadata", name)
	return releases.Release{Name: found.Name, Namespace: found.Namespace, Version: found.Revision}, err
}

// History returns the history of a release. It is empty if the release does not exist yet.
func (p *Program) History(ctx context.Context, r releases.Release) (out releases.History, err error) {
	if r.Version != 1 {
		err = p.readJSON(ctx, &out, "history", r.Name, "-n", r.Namespace)
	}
	return out, err
}

// Stored returns the stored templates of a revision, with or without its hooks.
func (p *Program) Stored(
	ctx context.Context, r releases.Release, revision int, hooks bool,
) (out []releases.Template, err error) {
	for _, part := range []string{"manifest", "hooks"} {
		if part == "hooks" && !hooks {
			continue
		}
		var text bytes.Buffer
		err := p.run(ctx, &text, nil, "get", part, r.Name, "-n", r.Namespace, "--revision", strconv.Itoa(revision))
		if err != nil {
			return nil, err
		}
		read, err := releases.Parse(text.Bytes())
		if err != nil {
			return nil, fmt.Errorf("helm get %s: %w", part, err)
		}
		out = append(out, read...)
	}
	return out, nil
}

var plainRun = []string{"--dry-run=none", "--server-side=true"} // later flags override earlier ones

// Render renders a chart with the arguments of helm upgrade. Helm also makes all checks that need no write.
func (p *Program) Render(ctx context.Context, args []string) (*releases.Rendering, error) {
	var text, out bytes.Buffer
	var found struct {
		releases.Release
		Chart struct {
			Files []struct {
				Name string
				Data []byte
			}
		}
	}
	keep := func(templates []byte) ([]byte, error) {
		text.Write(templates)
		return templates, nil
	}
	args = slices.Concat([]string{"upgrade"}, args, []string{"--dry-run=server", "-o", "json"})
	err := p.postRender(ctx, &out, args, keep)
	answer := out.Bytes() // Helm prints messages about pulled charts before the JSON
	if err == nil && json.Unmarshal(answer[max(0, bytes.IndexByte(answer, '{')):], &found) != nil {
		err = errors.New("helm upgrade: expected a release in JSON")
	}
	if err != nil {
		return nil, err
	}
	r := &releases.Rendering{Release: found.Release}
	for _, file := range found.Chart.Files {
		if strings.HasPrefix(file.Name, "crds/") {
			definitions, err := releases.Parse(append([]byte("# Source: "+file.Name+"\n"), file.Data...))
			if err != nil {
				return nil, err
			}
			r.Definitions = append(r.Definitions, definitions...)
		}
	}
	r.Templates, err = releases.Parse(text.Bytes())
	return r, err
}

// Replace is a function that gets rendered templates, and returns the templates that Helm applies and stores instead.
type Replace = func([]releases.Template) ([]releases.Template, error)

// Upgrade runs helm upgrade. Before Helm writes, replace gets the rendered templates and returns the ones to apply
// and store. If it returns an error, the upgrade fails.
func (p *Program) Upgrade(ctx context.Context, args []string, replace Replace) error {
	args = slices.Concat([]string{"upgrade"}, args, plainRun)
	return p.postRender(ctx, p.Stdout, args, func(text []byte) ([]byte, error) {
		templates, err := releases.Parse(text)
		if err == nil {
			templates, err = replace(templates)
		}
		if err != nil {
			return nil, err
		}
		return releases.Format(templates)
	})
}

// Restore creates a new revision of a release from a stored revision, by helm upgrade, because helm rollback has no
// post-renderer. It makes a chart with the name, the version and the values of the revision's chart, but without
// templates; replace returns the templates. Hooks do not run, because helm upgrade would run the hooks for upgrades
// instead of the hooks for rollbacks.
func (p *Program) Restore(
	ctx context.Context, r releases.Release, revision int, args []string, replace Replace,
) error {
	revisionArgs := []string{r.Name, "-n", r.Namespace, "--revision", strconv.Itoa(revision)}
	var metadata struct{ Chart, Version, AppVersion string }
	var all, given map[string]any
	err := p.readJSON(ctx, &metadata, append([]string{"get", "metadata"}, revisionArgs...)...)
	if err == nil {
		err = p.readJSON(ctx, &all, append([]string{"get", "values", "--all"}, revisionArgs...)...)
	}
	if err == nil {
		err = p.readJSON(ctx, &given, append([]string{"get", "values"}, revisionArgs...)...)
	}
	if err != nil {
		return err
	}
	chart, err := os.MkdirTemp("", "tenure") // only this user can read it
	if err != nil {
		return err
	}
	defer os.RemoveAll(chart)
	files := map[string]any{"values.yaml": all, "Chart.yaml": map[string]any{
		"apiVersion": "v2", "name": metadata.Chart, "version": metadata.Version, "appVersion": metadata.AppVersion,
	}}
	for name, content := range files {
		text, err := yaml.Marshal(content)
		if err == nil {
			err = os.WriteFile(filepath.Join(chart, name), text, 0o600)
		}
		if err != nil {
			return err
		}
	}
	with := *p
	if with.Stdin, err = yaml.Marshal(given); err != nil {
		return err
	}
	own := []string{r.Name, chart, "-n", r.Namespace, "--reset-values", "-f", "-", "--no-hooks",
		"--description", fmt.Sprintf("Rollback to %d", revision)}
	return with.Upgrade(ctx, append(own, args...), replace)
}
