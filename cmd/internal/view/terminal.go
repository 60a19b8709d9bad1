package view

import (
	"bufio"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/fatih/color"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/managedfields/blame"
)

// Guard puts a writer in front of a stream to which only what is printable gets
// through, and what colours it.
func Guard(e *process.Env, w io.Writer) *printable.Writer {
	return printable.NewWriter(w, PaletteFor(e, w).on)
}

// underlying returns the stream behind its guard.
func underlying(w io.Writer) io.Writer {
	if guard, ok := w.(*printable.Writer); ok {
		return guard.Unwrap()
	}
	return w
}

func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && f != nil && term.IsTerminal(int(f.Fd()))
}

// Palette colours what goes to one stream, or leaves it as it is.
type Palette struct{ on bool }

// PaletteFor returns the palette of a stream: colours are for terminals, and not
// for who says NO_COLOR (https://no-color.org).
func PaletteFor(e *process.Env, w io.Writer) Palette {
	return Palette{on: e.Terminal(underlying(w)) && e.Getenv("NO_COLOR") == "" && e.Getenv("TERM") != "dumb"}
}

// in returns what colours text; nil when there are no colours.
func (p Palette) in(attributes ...color.Attribute) func(string) string {
	if !p.on {
		return nil
	}
	c := color.New(attributes...)
	c.EnableColor()
	return func(s string) string { return c.Sprint(s) }
}

// paint colours text, which may be anybody's: it becomes printable.
func (p Palette) paint(s string, attributes ...color.Attribute) string {
	s = printable.Text(s)
	if paint := p.in(attributes...); paint != nil && s != "" {
		return paint(s)
	}
	return s
}

// managerColors are told apart on light and dark screens. Red and green are for
// what is bad and good.
var managerColors = []color.Attribute{
	color.FgCyan, color.FgMagenta, color.FgBlue, color.FgYellow, color.FgHiCyan, color.FgHiMagenta, color.FgHiBlue,
}

// ofManager returns the colour of a manager, which follows from its name.
func ofManager(name string) color.Attribute {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return managerColors[h.Sum32()%uint32(len(managerColors))]
}

// Blame returns the style of a blame.
func (p Palette) Blame() blame.Style {
	if !p.on {
		return nil
	}
	return func(part blame.Part, manager, text string) string {
		switch part {
		case blame.Heading:
			return p.paint(text, color.Bold)
		case blame.Manager:
			return p.paint(text, ofManager(manager))
		case blame.Detail, blame.Nobody:
			return p.paint(text, color.Faint)
		case blame.Warning:
			return p.paint(text, color.FgRed)
		}
		return text
	}
}

// Conflicts returns the style of a report of conflicts.
func (p Palette) Conflicts() conflicts.Style {
	return conflicts.Style{
		Heading: p.in(color.Bold), Field: p.in(color.FgCyan), Owner: p.in(color.FgMagenta),
		Theirs: p.in(color.FgRed), Yours: p.in(color.FgGreen), Way: p.in(color.Bold),
	}
}

// cell is a part of a row, and how it is coloured.
type cell struct {
	text  string
	color color.Attribute
}

// table writes rows with aligned columns, each after an indent. Texts may be
// anybody's: they become printable.
func (p Palette) table(w io.Writer, indent string, rows [][]cell) {
	var widths []int
	for _, row := range rows {
		for i := range row {
			row[i].text = printable.Text(row[i].text)
			c := row[i]
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	for _, row := range rows {
		gap := 0
		fmt.Fprint(w, indent)
		for i, c := range row {
			fmt.Fprintf(w, "%*s%s", gap, "", p.paint(c.text, c.color))
			gap = widths[i] - utf8.RuneCountInString(c.text) + 2
		}
		fmt.Fprintln(w)
	}
}

// Confirmation is the flag that stands for a yes.
type Confirmation struct{ Yes bool }

// ErrDeclined says that the answer was not yes.
var ErrDeclined = errors.New("nothing was changed")

// Possible fails when nobody is there to be asked.
func (c Confirmation) Possible(env *process.Env) error {
	if c.Yes || env.Stdin != nil && env.Terminal(env.Stdin) {
		return nil
	}
	return errors.New("nobody is there to confirm it: look with --dry-run, then say --yes")
}

// Ask asks, and fails when the answer is not yes.
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

// Progress shows on a terminal how far the work on many objects has come. What it
// returns is to be called after each of them, and the other one at the end.
func Progress(e *process.Env, what string, count int) (step, done func()) {
	const many = 2
	if count < many || !e.Terminal(underlying(e.Stderr)) {
		return func() {}, func() {}
	}
	bar := progressbar.NewOptions(count,
		progressbar.OptionSetWriter(underlying(e.Stderr)),
		progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionClearOnFinish(),
	)
	_ = bar.RenderBlank() // it moves by whole percents, and the first may take long
	return func() { _ = bar.Add(1) }, func() { _ = bar.Finish() }
}

// Counted returns a number of things.
func Counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
