package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/typed"
)

// moveFlags are those of a command that moves ownership.
type moveFlags struct {
	objectFlags
	dryRun  bool
	confirm confirmation
	format  string
}

func (f *moveFlags) add(env *Env, cmd *cobra.Command) {
	f.objectFlags.add(env, cmd)
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "show what would be done, and change nothing")
	cmd.Flags().BoolVarP(&f.confirm.yes, "yes", "y", false, "do not ask")
	addFormat(cmd, &f.format, moveFormats...)
}

var moveFormats = []string{"yaml", "json", "name", "patch"}

// moveHelp ends the help of every command that moves ownership.
const moveHelp = `
Objects are chosen as for blame, see tenure blame --help. A preview says who gains
and loses which fields, and what each manager's next apply will then delete or take
back; nothing in the objects changes but their managed fields. In a cluster or a
store, it asks before it writes, and writes only what has not changed since. Of
several objects, those with nothing to move stay as they are. With -f, the objects
are printed as they become. -o patch prints the JSON Patch, bound to the object's
resourceVersion, that a server takes.

Exit status: 0 when all is done, or nothing was left to do; 1 on any error: when it
was not confirmed, or when an object that was named has nothing of what is asked.`

// errNothing says that there is nothing to do for an object.
var errNothing = errors.New("there is nothing to do")

// moveResult is what a move makes of an object.
type moveResult struct {
	object runtime.Object
	patch  []byte
	// manager is who sends the patch.
	manager string
	// preview writes what the move does.
	preview func(io.Writer, palette) error
}

// moverFunc moves ownership in one object; the error is errNothing when it has nothing
// that the move is about.
type moverFunc func(t *target) (moveResult, error)

// pending is a move that is to be made.
type pending struct {
	*target
	moved
	preview string
}

// run moves ownership in all objects; done says what became of one: transferred.
func (f *moveFlags) run(env *Env, cmd *cobra.Command, args []string, done string, move moverFunc) error {
	if err := checkFormat(f.format, moveFormats...); err != nil {
		return err
	}
	writes := !f.dryRun && f.files == nil
	if writes {
		if err := f.confirm.possible(env); err != nil {
			return err
		}
	}
	p, targets, missing := f.open(env, cmd, args)
	if p == nil || len(targets) == 0 {
		return missing
	}
	m := &moving{env: env, place: p, move: move, done: done, dryRun: f.dryRun, format: f.format}
	m.plan(targets)
	if missing != nil {
		env.report(missing)
		m.failed++
	}
	var err error
	if f.files != nil && !f.dryRun {
		err = m.print()
	} else {
		err = m.write(cmd.Context(), f.confirm)
	}
	if err = errors.Join(err, p.close()); err == nil && m.failed > 0 {
		err = errReported
	}
	return err
}

// moving is a move of ownership in a number of objects.
type moving struct {
	env    *Env
	place  place
	move   moverFunc
	done   string
	dryRun bool
	format string

	all       []pending // in order, those that stay as they are too
	count     int       // that change
	unchanged int
	failed    int
}

// plan computes what becomes of every object.
func (m *moving) plan(targets []*target) {
	for _, t := range targets {
		next, err := m.one(t)
		if errors.Is(err, errNothing) && !t.asked {
			err = nil
		}
		if err != nil {
			m.failed++
			m.env.report(fmt.Errorf("%s: %w", t.title(), err))
			continue
		}
		if next.becomes() == nil {
			m.unchanged++
		} else {
			m.count++
		}
		m.all = append(m.all, next)
	}
}

// one computes what becomes of an object; it has none when nothing changes.
func (m *moving) one(t *target) (pending, error) {
	next := pending{target: t}
	if t.kind.unknown != nil {
		return next, t.kind.unknown
	}
	result, err := m.move(t)
	if err != nil {
		return next, err
	}
	var preview bytes.Buffer
	if err := result.preview(&preview, m.env.paletteFor(m.env.Stderr)); err != nil {
		return next, err
	}
	next.preview = preview.String()
	object, ok := result.object.(*unstructured.Unstructured)
	if !ok || typed.Equal(t.object, object.Object) {
		return next, nil
	}
	next.moved = moved{object: object.Object, patch: result.patch, manager: result.manager}
	return next, nil
}

// preview writes what is going to be done.
func (m *moving) preview(w io.Writer) {
	for _, next := range m.all {
		if next.becomes() != nil {
			fmt.Fprint(w, next.preview)
		}
	}
}

// becomes is what the target becomes; nil when it stays as it is.
func (p *pending) becomes() map[string]any { return p.moved.object }

// print writes the objects of files as they become, and only when all could be
// moved: what is missing in it would be lost to who redirects it into the file.
func (m *moving) print() error {
	m.preview(m.env.Stderr)
	if m.failed > 0 {
		return nil
	}
	var objects []map[string]any
	for _, next := range m.all {
		object := next.becomes()
		if object == nil {
			object = next.target.object
		}
		objects = append(objects, object)
	}
	out := output{format: m.format, managedFields: true}
	switch m.format {
	case "patch":
		return m.patches()
	case "":
		out.format = "yaml"
	}
	return out.print(m.env.Stdout, objects, false)
}

// patches writes the patches of what changes, each as a line of JSON.
func (m *moving) patches() error {
	for _, next := range m.all {
		if next.becomes() == nil {
			continue
		}
		if next.patch == nil {
			return fmt.Errorf("%s: no patch: the object has no resourceVersion to bind it to", next.title())
		}
		if _, err := fmt.Fprintf(m.env.Stdout, "%s\n", printable.JSON(next.patch)); err != nil {
			return err
		}
	}
	return nil
}

// write previews the moves, asks, and makes them.
func (m *moving) write(ctx context.Context, confirm confirmation) error {
	switch {
	case m.dryRun && m.format == "":
		m.preview(m.env.Stdout)
	case !m.dryRun:
		m.preview(m.env.Stderr)
	}
	if m.count > 0 && !m.dryRun {
		question := fmt.Sprintf("Write this to %s in %s?", counted(m.count, "object", "objects"), m.place)
		if err := confirm.ask(m.env, question); err != nil {
			return err
		}
	}
	if m.format == "patch" {
		if err := m.patches(); err != nil {
			return err
		}
	}
	step, done := m.env.progress("writing", m.count)
	var lines []string
	var written []map[string]any
	var errs []error
	for i := range m.all {
		next := &m.all[i]
		verb := "unchanged"
		if next.becomes() != nil {
			verb = m.done
			if m.dryRun {
				verb += " (dry run)"
			} else if err := m.store(ctx, next); err != nil {
				m.failed++
				m.count--
				errs = append(errs, fmt.Errorf("%s: %w", next.title(), err))
				step()
				continue
			}
			written = append(written, next.becomes())
			step()
		}
		lines = append(lines, fmt.Sprintf("%s %s", next.title(), verb))
	}
	done()
	for _, err := range errs {
		m.env.report(err)
	}
	switch m.format {
	case "":
		for _, line := range lines {
			fmt.Fprintln(m.env.Stdout, line)
		}
		if total := len(lines) + m.failed; total > 1 {
			fmt.Fprintf(m.env.Stdout, "%s: %d %s, %d unchanged, %d failed\n",
				counted(total, "object", "objects"), m.count, m.done, m.unchanged, m.failed)
		}
	case "yaml", "json", "name":
		out := output{format: m.format, managedFields: true}
		return out.print(m.env.Stdout, written, len(m.all) > 1)
	}
	return nil
}

// store writes one object. When it has changed in the meantime, the move is made
// again on what is there now, as long as it comes to the same: that was confirmed.
func (m *moving) store(ctx context.Context, next *pending) error {
	for attempt := 1; ; attempt++ {
		err := m.place.move(ctx, next.target, next.moved)
		if !errors.Is(err, errStale) || attempt == attempts {
			return err
		}
		if err := m.place.again(ctx, next.target); err != nil {
			return err
		}
		now, err := m.one(next.target)
		if err != nil {
			return err
		}
		if now.preview != next.preview || now.becomes() == nil {
			return fmt.Errorf("%w, and the preview would be another: look again", errStale)
		}
		next.moved = now.moved
	}
}
