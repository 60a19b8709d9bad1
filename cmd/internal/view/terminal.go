package view

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"strings"
	"time"

	"github.com/fatih/color"
	"github.com/rivo/uniseg"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/ownership/blame"
	"github.com/tenure-ssa/tenure/ownership/conflictreport"
)

// Guard returns a writer that escapes control characters. It lets color codes through if the stream has colors.
func Guard(e *process.Env, w io.Writer) *printable.Writer {
	return printable.NewWriter(w, PaletteFor(e, w).enabled)
}

// underlying returns the stream behind a guard.
func underlying(w io.Writer) io.Writer {
	if guard, ok := w.(*printable.Writer); ok {
		return guard.Unwrap()
	}
	return w
}

// IsTerminal reports whether a stream, which may be guarded, is a terminal.
func IsTerminal(stream any) bool {
	if w, ok := stream.(io.Writer); ok {
		stream = underlying(w)
	}
	f, ok := stream.(*os.File)
	return ok && f != nil && term.IsTerminal(int(f.Fd()))
}

// Palette colors the text for one stream, or leaves it unchanged.
type Palette struct{ enabled bool }

// PaletteFor returns the palette for a stream. By default, it has colors if the stream is a terminal and NO_COLOR is
// not set (https://no-color.org). --color overrides this.
func PaletteFor(e *process.Env, w io.Writer) Palette {
	switch e.Color {
	case "always":
		return Palette{enabled: true}
	case "never":
		return Palette{}
	}
	return Palette{enabled: e.Terminal(w) && e.Getenv("NO_COLOR") == "" && e.Getenv("TERM") != "dumb"}
}

// colorFunc returns a function that colors text; nil if the palette has no colors.
func (p Palette) colorFunc(attributes ...color.Attribute) func(string) string {
	if !p.enabled {
		return nil
	}
	c := color.New(attributes...)
	c.EnableColor()
	return func(s string) string { return c.Sprint(s) }
}

// paint escapes control characters in text, and colors it.
func (p Palette) paint(s string, attributes ...color.Attribute) string {
	s = printable.Text(s)
	if paint := p.colorFunc(attributes...); paint != nil && s != "" {
		return paint(s)
	}
	return s
}

// managerColors are distinguishable on light and dark backgrounds. Red and green are not among them, because these mark
// bad and good values.
var managerColors = []color.Attribute{
	color.FgCyan, color.FgMagenta, color.FgBlue, color.FgYellow, color.FgHiCyan, color.FgHiMagenta, color.FgHiBlue,
}

// managerColor returns the color for a manager, chosen by a hash of its name.
func managerColor(name string) color.Attribute {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return managerColors[h.Sum32()%uint32(len(managerColors))]
}

// Blame returns the style for blame reports.
func (p Palette) Blame() blame.Style {
	if !p.enabled {
		return nil
	}
	return func(part blame.Part, manager, text string) string {
		switch part {
		case blame.Heading:
			return p.paint(text, color.Bold)
		case blame.Manager:
			return p.paint(text, managerColor(manager))
		case blame.Detail, blame.Nobody:
			return p.paint(text, color.Faint)
		case blame.Warning:
			return p.paint(text, color.FgRed)
		}
		return text
	}
}

// WriteNextBlame writes another report below previous ones, in the format of [blame.Text].
func (p Palette) WriteNextBlame(w io.Writer, r *blame.Report) error {
	if _, err := fmt.Fprintf(w, "\n%s\n", p.paint(r.Title(), color.Bold)); err != nil {
		return err
	}
	return blame.Text(w, p.Blame(), r)
}

// Conflicts returns the style for reports of conflicts.
func (p Palette) Conflicts() conflictreport.Style {
	return conflictreport.Style{
		Heading: p.colorFunc(color.Bold), Field: p.colorFunc(color.FgCyan), Owner: p.colorFunc(color.FgMagenta),
		Theirs: p.colorFunc(color.FgRed), Yours: p.colorFunc(color.FgGreen), Way: p.colorFunc(color.Bold),
	}
}

// cell is one cell of a table.
type cell struct {
	text  string
	color color.Attribute
}

// table writes rows as a [printable.Table].
func (p Palette) table(w io.Writer, indent string, rows [][]cell) {
	out := make([][]printable.Cell, len(rows))
	for i, row := range rows {
		for _, c := range row {
			out[i] = append(out[i], printable.Cell{Text: c.text, Style: p.colorFunc(c.color)})
		}
	}
	fmt.Fprint(w, printable.Table(indent, out))
}

// Confirmation asks the user to confirm, unless --yes is set.
type Confirmation struct {
	Yes bool
	// Preview says how to run the command without changing anything; "" means "with --dry-run".
	Preview string
}

// ErrDeclined reports that the user did not confirm.
var ErrDeclined = errors.New("nothing was changed")

// CheckPossible returns an error if the user can't be asked because there is no terminal.
func (c Confirmation) CheckPossible(env *process.Env) error {
	if c.Yes || env.Stdin != nil && env.Terminal(env.Stdin) {
		return nil
	}
	return fmt.Errorf("no terminal for the confirmation: preview %s, then use --yes", cmp.Or(c.Preview, "with --dry-run"))
}

// Ask asks the user. It returns ErrDeclined unless the answer is yes.
func (c Confirmation) Ask(env *process.Env, question string) error {
	if c.Yes {
		return nil
	}
	fmt.Fprintf(env.Stderr, "%s [y/N] ", question)
	answer, err := bufio.NewReader(env.Stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return ErrDeclined
}

// Bar is a progress bar on a terminal. It shows nothing if stderr is not a terminal, or for fewer than two steps.
type Bar struct{ bar *progressbar.ProgressBar }

// NewBar shows a bar. A count of -1 means that the number of steps is not known.
func NewBar(e *process.Env, what string, count int) Bar {
	if count == 0 || count == 1 || !e.Terminal(e.Stderr) {
		return Bar{}
	}
	bar := progressbar.NewOptions(count,
		progressbar.OptionSetWriter(underlying(e.Stderr)),
		progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionThrottle(100*time.Millisecond), // otherwise, a bar without a count is drawn at each step
	)
	_ = bar.RenderBlank() // show it now: the first percent may take long
	return Bar{bar}
}

// Step advances the bar by one step. It is safe for concurrent use.
func (b Bar) Step() {
	if b.bar != nil {
		_ = b.bar.Add(1)
	}
}

// Hide hides the bar until the next step, so that other text can be printed.
func (b Bar) Hide() {
	if b.bar != nil {
		_ = b.bar.Clear()
	}
}

// Done removes the bar. It may be called twice.
func (b Bar) Done() {
	if b.bar != nil && !b.bar.IsFinished() {
		_ = b.bar.Finish()
	}
}

// Screen is an area of a terminal in which new text is drawn over the previous text.
type Screen struct {
	out     io.Writer
	lines   int // number of drawn lines
	columns int // width of the terminal when they were drawn
}

// NewScreen returns a screen on a stream that may be guarded. It writes to the stream behind the guard, because the
// guard escapes cursor movements.
func NewScreen(out io.Writer) *Screen { return &Screen{out: out} }

// Draw draws the part of a text that fits on the terminal. A longer text would wrap and scroll, and the next text
// could not be drawn over it.
func (s *Screen) Draw(text string) error {
	columns, rows := s.size()
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	if more := len(lines) - (rows - 2); rows > 3 && more > 1 { // keep the last line, the totals; the cursor is below it
		lines = append(lines[:rows-3:rows-3], fmt.Sprintf("and %d more lines\n", more), lines[len(lines)-1])
	}
	for i, line := range lines {
		lines[i] = cut(strings.TrimSuffix(line, "\n"), columns) + "\n"
	}
	return s.draw(strings.Join(lines, ""), len(lines), columns)
}

// Finish draws the complete last text.
func (s *Screen) Finish(text string) error {
	columns, _ := s.size()
	return s.draw(text, 0, columns)
}

func (s *Screen) draw(text string, lines, columns int) error {
	erase := ""
	switch {
	case s.lines == 0:
	case s.columns != columns: // terminals differ in how they rewrap lines
		erase = "\x1b[H\x1b[2J"
	default:
		erase = fmt.Sprintf("\x1b[%dA\x1b[J", s.lines)
	}
	s.lines, s.columns = lines, columns
	if _, err := io.WriteString(underlying(s.out), erase); err != nil {
		return err
	}
	_, err := io.WriteString(s.out, text)
	return err
}

// size returns the size of the terminal; zeros if it is not known.
func (s *Screen) size() (columns, rows int) {
	if file, ok := underlying(s.out).(*os.File); ok {
		columns, rows, _ = term.GetSize(int(file.Fd()))
	}
	return columns, rows
}

// cut returns the part of a line that fits into a number of columns; 0 means no limit.
func cut(line string, columns int) string {
	if columns == 0 || uniseg.StringWidth(line) <= columns {
		return line
	}
	end, width := 0, 0
	for graphemes := uniseg.NewGraphemes(line); graphemes.Next(); {
		if width += graphemes.Width(); width >= columns {
			break
		}
		_, end = graphemes.Positions()
	}
	return line[:end] + "…"
}
