package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"runtime"
	"sync"
	"syscall"

	"k8s.io/client-go/util/workqueue"

	"github.com/tenure-ssa/tenure/cmd/internal/view"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/planning"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/ownership/advice"
	"github.com/tenure-ssa/tenure/typed"
)

// errNothing reports that there is nothing to move in an object.
var errNothing = errors.New("there is nothing to do")

// moveResult is the result of a move of one object.
type moveResult struct {
	place.Moved
	// preview writes what the move does.
	preview func(io.Writer, view.Palette) error
	// try asks the server whether it would accept the manager's next apply after the move, and adds a refusal to the
	// preview. It is nil if there is no such apply to ask about.
	try func() error
	// readAt is a version at which the preview would know more of the next apply; "" if there is none.
	readAt string
}

// moverFunc moves ownership in one object. It returns errNothing if there is nothing to move.
type moverFunc func(t *place.Target) (moveResult, error)

// pending is a move that is not stored yet.
type pending struct {
	*place.Target
	moved   place.Moved // its Object is nil if nothing changes
	preview string      // before try
	result  moveResult
	shown   string // the preview after try
}

// moving moves ownership in several objects.
type moving struct {
	*moveFlags
	move moverFunc
	done string

	all       []pending // in order, including objects that do not change
	count     int       // number of objects that change
	unchanged int
	failed    int
}

// planMoves computes the moves of all objects.
func (m *moving) planMoves(targets []*place.Target) {
	all, errs := make([]pending, len(targets)), make([]error, len(targets))
	workqueue.ParallelizeUntil(context.Background(), runtime.GOMAXPROCS(0), len(targets), func(i int) {
		all[i], errs[i] = m.planMove(targets[i])
	})
	for i, t := range targets {
		at := m.readAt(m.place, t, all[i].result.readAt)
		if errs[i] != nil || at == nil {
			continue
		}
		if next, err := m.planMove(at); err == nil {
			all[i] = next
		}
	}
	var tries []int
	for i := range all {
		if all[i].shown = all[i].preview; errs[i] == nil && all[i].moved.Object != nil && all[i].result.try != nil {
			tries = append(tries, i)
		}
	}
	if len(tries) > 0 {
		inParallel(m.env, "trying", m.concurrency, len(tries), func(n int) {
			one, err := &all[tries[n]], &errs[tries[n]]
			if *err = one.result.try(); *err == nil {
				one.shown, *err = m.render(one.result)
			}
		})
	}
	for i, t := range targets {
		next, err := all[i], errs[i]
		if errors.Is(err, errNothing) && !t.Asked {
			err = nil
		}
		if err != nil {
			m.failed++
			view.Report(m.env, fmt.Errorf("%s: %w", t.Title(), m.withVersion(t, err)))
			continue
		}
		if next.moved.Object == nil {
			m.unchanged++
		} else {
			m.count++
		}
		m.all = append(m.all, next)
	}
}

// withVersion explains an error about fields at two versions between which this process can't convert. For an object
// that the user named, it also tries the move with the object at the other version; if this move succeeds, the error
// suggests that version.
func (m *moving) withVersion(t *place.Target, err error) error {
	var other *fieldmanager.NoConverterError
	if !errors.As(err, &other) {
		return err
	}
	err = fmt.Errorf("fields at %s and fields at %s can't be compared here", t.Kind.GroupVersion(), other.Version)
	if !t.Asked {
		return err
	}
	way, at := m.wayAt(t, other.Version), m.readAt(m.place, t, other.Version)
	if way == "" || at == nil {
		return err
	}
	if _, refused := m.planMove(at); refused != nil {
		return err
	}
	return fmt.Errorf("%w; %s", err, way)
}

// wayAt returns the suggestion to read an object at another version; "" if the place does not serve this version.
func (f *moveFlags) wayAt(t *place.Target, version string) string {
	o, ok := planning.ObjectsAt(t, version, f.place.IsServed)
	if !ok {
		return ""
	}
	way, suggest := advice.ReadAt(o, version), f.suggest()
	return way.Why + ": " + suggest.Line(suggest.Arguments(way))
}

// render returns the preview of a move.
func (m *moving) render(result moveResult) (string, error) {
	var preview bytes.Buffer
	err := result.preview(&preview, view.PaletteFor(m.env, m.env.Stderr))
	return preview.String(), err
}

// planMove computes the move of one object.
func (m *moving) planMove(t *place.Target) (pending, error) {
	next := pending{Target: t}
	if t.Kind.Unknown != nil {
		return next, t.Kind.Unknown
	}
	result, err := m.move(t)
	if err != nil {
		return next, m.withAdvice(t, err)
	}
	if next.preview, err = m.render(result); err != nil {
		return next, err
	}
	next.result = result
	stored := t.Stored()
	if stored != t {
		if result, err = m.move(stored); err != nil {
			return next, err
		}
	}
	if typed.Equal(stored.Object, result.Object) {
		return next, nil
	}
	next.moved = result.Moved
	if _, ok := m.place.(*place.Cluster); ok { // if one entry is undecodable, a server removes all entries
		for _, drop := range planning.Undecodable(t, result.Object) {
			err = errors.New(m.undecodable(drop))
		}
	}
	return next, err
}

// writePreview writes the previews of the moves that change something.
func (m *moving) writePreview(w io.Writer) {
	for _, next := range m.all {
		if next.moved.Object != nil && !m.summary {
			fmt.Fprint(w, next.shown)
		}
	}
}

// printMoved prints the resulting objects of files, but only if every move succeeded. Otherwise, a user who replaces
// the file with the output would lose the objects whose move failed.
func (m *moving) printMoved() error {
	m.writePreview(m.env.Stderr)
	if m.failed > 0 {
		return nil
	}
	var objects []map[string]any
	for _, next := range m.all {
		if next.moved.Object == nil {
			next.moved.Object = next.Stored().Object
		}
		objects = append(objects, next.moved.Object)
	}
	out := view.Output{Format: m.format, ManagedFields: true}
	switch m.format {
	case "patch":
		return m.printPatches()
	case "":
		out.Format = "yaml"
	}
	return out.Print(m.env.Stdout, objects, false)
}

// printPatches prints a patch for each object that changes, as one line of JSON.
func (m *moving) printPatches() error {
	for _, next := range m.all {
		if next.moved.Object == nil {
			continue
		}
		if next.moved.Patch == nil {
			return fmt.Errorf("%s: no patch: the object has no resourceVersion", next.Title())
		}
		if _, err := fmt.Fprintf(m.env.Stdout, "%s\n", printable.JSON(next.moved.Patch)); err != nil {
			return err
		}
	}
	return nil
}

// writeMoves previews the moves, asks for confirmation, and stores them.
func (m *moving) writeMoves() error {
	switch {
	case m.dryRun && m.format == "":
		m.writePreview(m.env.Stdout)
	case !m.dryRun:
		m.writePreview(m.env.Stderr)
	}
	if m.count > 0 && !m.dryRun {
		question := fmt.Sprintf("Write this to %s in %s?", printable.Counted(m.count, "object", "objects"), m.place)
		if err := m.confirm.Ask(m.env, question); err != nil {
			return err
		}
	}
	if m.format == "patch" {
		if err := m.printPatches(); err != nil {
			return err
		}
	}
	written, skipped := m.storeMoves()
	switch m.format {
	case "":
		if total := m.count + m.unchanged + m.failed + skipped; total > 1 || m.summary {
			fmt.Fprintf(m.env.Stdout, "%s: %d %s, %d unchanged, %d failed\n",
				printable.Counted(total, "object", "objects"), m.count, m.done, m.unchanged, m.failed)
		}
	case "yaml", "json", "name":
		out := view.Output{Format: m.format, ManagedFields: true}
		if err := out.Print(m.env.Stdout, written, len(m.all) > 1); err != nil {
			return err
		}
	}
	if skipped > 0 {
		return fmt.Errorf("interrupted: %d %s, %s not; to continue: %s", m.count, m.done,
			printable.Counted(skipped, "object was", "objects were"), m.env.CommandLine)
	}
	return nil
}

// storeMoves stores the objects that change, until it is interrupted. It prints a line or an error for each object, in
// the order of the objects, as early as possible. It returns the stored objects (in a dry run, the objects that would
// be stored), and the number of objects that were skipped because of an interrupt.
func (m *moving) storeMoves() (written []map[string]any, skipped int) {
	ctx, stop := signal.NotifyContext(m.env.Context, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends the process
	const waits, isDone, isSkipped = 0, 1, 2
	errs, states := make([]error, len(m.all)), make([]int, len(m.all))
	var mu sync.Mutex
	next := 0
	inParallel(m.env, "writing", m.concurrency, len(m.all), func(i int) {
		state := isDone
		if one := &m.all[i]; one.moved.Object != nil && !m.dryRun {
			if ctx.Err() != nil {
				state = isSkipped
			} else {
				errs[i] = m.storeMove(context.WithoutCancel(ctx), one) // uncancelled: the outcome must be known
			}
		}
		mu.Lock()
		defer mu.Unlock()
		states[i] = state
		for ; next < len(m.all) && states[next] != waits; next++ {
			if states[next] == isSkipped {
				skipped++
				m.count--
			} else if object := m.finished(&m.all[next], errs[next]); object != nil {
				written = append(written, object)
			}
		}
	})
	return written, skipped
}

// finished prints the result for an object. It returns the changed object; nil if the object does not change, or if it
// could not be stored.
func (m *moving) finished(one *pending, err error) map[string]any {
	verb := "unchanged"
	switch {
	case err != nil:
		m.failed++
		m.count--
		view.Report(m.env, fmt.Errorf("%s: %w", one.Title(), err))
		return nil
	case one.moved.Object != nil:
		if verb = m.done; m.dryRun {
			verb += " (dry run)"
		}
	case len(m.all)+m.failed > 1 && !m.moveFlags.unchanged:
		return nil
	}
	if m.format == "" && !m.summary {
		fmt.Fprintf(m.env.Stdout, "%s %s\n", one.Title(), verb)
	}
	return one.moved.Object
}

// storeMove stores one object. If the live object has changed in the meantime, storeMove computes the move again for
// the new live object. It stores the result only if its preview equals the preview that the user confirmed.
func (m *moving) storeMove(ctx context.Context, next *pending) error {
	for attempt := 1; ; attempt++ {
		err := m.place.Move(ctx, next.Target, next.moved)
		if !errors.Is(err, place.ErrStale) || attempt == place.Attempts {
			return err
		}
		uid := document.TextAt(next.Target.Object, "uid")
		if err := m.place.Reload(ctx, next.Target); err != nil {
			return err
		}
		if document.TextAt(next.Target.Object, "uid") != uid {
			return fmt.Errorf("%w: it was deleted, and another one was created: run the command again", place.ErrStale)
		}
		planned, err := m.planMove(next.Target)
		if err != nil {
			return err
		}
		if planned.preview != next.preview || planned.moved.Object == nil {
			return fmt.Errorf("%w, and the preview would be different: run the command again", place.ErrStale)
		}
		next.moved = planned.moved
	}
}
