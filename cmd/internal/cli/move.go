package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/view"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/typed"
)

// errNothing says that there is nothing to do for an object.
var errNothing = errors.New("there is nothing to do")

// moveResult is what a move makes of an object.
type moveResult struct {
	object runtime.Object
	patch  []byte
	// manager is who sends the patch.
	manager string
	// preview writes what the move does.
	preview func(io.Writer, view.Palette) error
}

// moverFunc moves ownership in one object; the error is errNothing when it has nothing
// that the move is about.
type moverFunc func(t *place.Target) (moveResult, error)

// pending is a move that is to be made.
type pending struct {
	*place.Target
	place.Moved
	preview string
}

// moving is a move of ownership in a number of objects.
type moving struct {
	env    *process.Env
	place  place.Place
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
func (m *moving) plan(targets []*place.Target) {
	for _, t := range targets {
		next, err := m.one(t)
		if errors.Is(err, errNothing) && !t.Asked {
			err = nil
		}
		if err != nil {
			m.failed++
			view.Report(m.env, fmt.Errorf("%s: %w", t.Title(), err))
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
func (m *moving) one(t *place.Target) (pending, error) {
	next := pending{Target: t}
	if t.Kind.Unknown != nil {
		return next, t.Kind.Unknown
	}
	result, err := m.move(t)
	if err != nil {
		return next, err
	}
	var preview bytes.Buffer
	if err := result.preview(&preview, view.PaletteFor(m.env, m.env.Stderr)); err != nil {
		return next, err
	}
	next.preview = preview.String()
	object, ok := result.object.(*unstructured.Unstructured)
	if !ok || typed.Equal(t.Object, object.Object) {
		return next, nil
	}
	next.Moved = place.Moved{Object: object.Object, Patch: result.patch, Manager: result.manager}
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
func (p *pending) becomes() map[string]any { return p.Moved.Object }

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
			object = next.Target.Object
		}
		objects = append(objects, object)
	}
	out := view.Output{Format: m.format, ManagedFields: true}
	switch m.format {
	case "patch":
		return m.patches()
	case "":
		out.Format = "yaml"
	}
	return out.Print(m.env.Stdout, objects, false)
}

// patches writes the patches of what changes, each as a line of JSON.
func (m *moving) patches() error {
	for _, next := range m.all {
		if next.becomes() == nil {
			continue
		}
		if next.Patch == nil {
			return fmt.Errorf("%s: no patch: the object has no resourceVersion to bind it to", next.Title())
		}
		if _, err := fmt.Fprintf(m.env.Stdout, "%s\n", printable.JSON(next.Patch)); err != nil {
			return err
		}
	}
	return nil
}

// write previews the moves, asks, and makes them.
func (m *moving) write(ctx context.Context, confirm view.Confirmation) error {
	switch {
	case m.dryRun && m.format == "":
		m.preview(m.env.Stdout)
	case !m.dryRun:
		m.preview(m.env.Stderr)
	}
	if m.count > 0 && !m.dryRun {
		question := fmt.Sprintf("Write this to %s in %s?", view.Counted(m.count, "object", "objects"), m.place)
		if err := confirm.Ask(m.env, question); err != nil {
			return err
		}
	}
	if m.format == "patch" {
		if err := m.patches(); err != nil {
			return err
		}
	}
	step, done := view.Progress(m.env, "writing", m.count)
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
				errs = append(errs, fmt.Errorf("%s: %w", next.Title(), err))
				step()
				continue
			}
			written = append(written, next.becomes())
			step()
		}
		lines = append(lines, fmt.Sprintf("%s %s", next.Title(), verb))
	}
	done()
	for _, err := range errs {
		view.Report(m.env, err)
	}
	switch m.format {
	case "":
		for _, line := range lines {
			fmt.Fprintln(m.env.Stdout, line)
		}
		if total := len(lines) + m.failed; total > 1 {
			fmt.Fprintf(m.env.Stdout, "%s: %d %s, %d unchanged, %d failed\n",
				view.Counted(total, "object", "objects"), m.count, m.done, m.unchanged, m.failed)
		}
	case "yaml", "json", "name":
		out := view.Output{Format: m.format, ManagedFields: true}
		return out.Print(m.env.Stdout, written, len(m.all) > 1)
	}
	return nil
}

// store writes one object. When it has changed in the meantime, the move is made
// again on what is there now, as long as it comes to the same: that was confirmed.
func (m *moving) store(ctx context.Context, next *pending) error {
	for attempt := 1; ; attempt++ {
		err := m.place.Move(ctx, next.Target, next.Moved)
		if !errors.Is(err, place.ErrStale) || attempt == place.Attempts {
			return err
		}
		if err := m.place.Again(ctx, next.Target); err != nil {
			return err
		}
		now, err := m.one(next.Target)
		if err != nil {
			return err
		}
		if now.preview != next.preview || now.becomes() == nil {
			return fmt.Errorf("%w, and the preview would be another: look again", place.ErrStale)
		}
		next.Moved = now.Moved
	}
}
