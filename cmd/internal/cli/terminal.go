package cli

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

	"github.com/tenure-ssa/tenure/blame"
	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/internal/printable"
)

// guard puts a writer in front of a stream to which only what is printable gets
// through, and what colours it.
func (e *Env) guard(w io.Writer) *printable.Writer {
	return printable.NewWriter(w, e.paletteFor(w).on)
}

// underlying returns the stream behind its guard.
func underlying(w io.Writer) io.Writer {
	if guard, ok := w.(*printable.Writer); ok {
		return guard.Unwrap()
	}
	return w
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && f != nil && term.IsTerminal(int(f.Fd()))
}

// palette colours what goes to one stream, or leaves it as it is.
type palette struct{ on bool }

// paletteFor returns the palette of a stream: colours are for terminals, and not
// for who says NO_COLOR (https://no-color.org).
func (e *Env) paletteFor(w io.Writer) palette {
	return palette{on: e.Terminal(underlying(w)) && e.Getenv("NO_COLOR") == "" && e.Getenv("TERM") != "dumb"}
}

// in returns what colours text; nil when there are no colours.
func (p palette) in(attributes ...color.Attribute) func(string) string {
	if !p.on {
		return nil
	}
	c := color.New(attributes...)
	c.EnableColor()
	return func(s string) string { return c.Sprint(s) }
}

// paint colours text, which may be anybody's: it becomes printable.
func (p palette) paint(s string, attributes ...color.Attribute) string {
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

// blame returns the style of a blame.
func (p palette) blame() blame.Style {
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

// conflicts returns the style of a report of conflicts.
func (p palette) conflicts() conflicts.Style {
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
func (p palette) table(w io.Writer, indent string, rows [][]cell) {
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

// confirmation is the flag that stands for a yes.
type confirmation struct{ yes bool }

// errDeclined says that the answer was not yes.
var errDeclined = errors.New("nothing was changed")

// possible fails when nobody is there to be asked.
func (c confirmation) possible(env *Env) error {
	if c.yes || env.Stdin != nil && env.Terminal(env.Stdin) {
		return nil
	}
	return errors.New("nobody is there to confirm it: look with --dry-run, then say --yes")
}

// ask asks, and fails when the answer is not yes.
func (c confirmation) ask(env *Env, question string) error {
	if c.yes {
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
	return errDeclined
}

// progress shows on a terminal how far the work on many objects has come. What it
// returns is to be called after each of them, and the other one at the end.
func (e *Env) progress(what string, count int) (step, done func()) {
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

// counted returns a number of things.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
