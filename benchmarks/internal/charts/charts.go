// Package charts draws curves over logarithmic axes, as SVG for pages with any background.
package charts

import (
	"bytes"
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// A Panel is one diagram of a chart.
type Panel struct {
	Title string
	X     string               // the label of the x axis
	Y     func(float64) string // a power of ten, as the y axis shows it
	// Curves that have no points are left out. Those at the same place in different panels have the same color.
	Curves []Curve
	Legend Legend
}

// A Legend is where the names of the curves are.
type Legend int

const (
	NoLegend Legend = iota
	TopLeft
	TopMiddle
)

// A Curve connects points, whose coordinates are positive.
type Curve struct {
	Name   string
	Points []Point
}

// A Point is a point of a curve.
type Point struct{ X, Y float64 }

// The background of the chart is transparent, and the page behind it may be white or dark. These colors can be read on
// both.
var (
	ink   = color.NRGBA{R: 0x74, G: 0x7c, B: 0x86, A: 0xff}
	faint = color.NRGBA{R: 0x74, G: 0x7c, B: 0x86, A: 0x40}
)

// looks are those of the curves of a panel, by place.
var looks = []struct {
	color color.Color
	glyph vgdraw.GlyphDrawer
}{
	{color.NRGBA{R: 0xe0, G: 0x6c, B: 0x2e, A: 0xff}, vgdraw.BoxGlyph{}},
	{color.NRGBA{R: 0x2e, G: 0x8f, B: 0xe8, A: 0xff}, vgdraw.CircleGlyph{}},
	{color.NRGBA{R: 0x3f, G: 0xa3, B: 0x5a, A: 0xff}, vgdraw.PyramidGlyph{}},
	{color.NRGBA{R: 0xa8, G: 0x6c, B: 0xd0, A: 0xff}, vgdraw.TriangleGlyph{}},
	{color.NRGBA{R: 0x74, G: 0x7c, B: 0x86, A: 0xff}, vgdraw.CrossGlyph{}},
}

const (
	panelWidth = 3.9 * vg.Inch
	height     = 3.4 * vg.Inch
	gap        = 0.15 * vg.Inch
)

// Draw draws panels side by side, with the same y axis if sameScale is true.
func Draw(w io.Writer, sameScale bool, panels ...Panel) error {
	if len(panels) == 0 {
		return errors.New("expected a panel to draw")
	}
	plot.DefaultFont.Variant = "Sans"
	plots := make([]*plot.Plot, len(panels))
	low, high := math.Inf(1), math.Inf(-1)
	for i, p := range panels {
		var err error
		if plots[i], err = p.plot(); err != nil {
			return fmt.Errorf("%s: %w", p.Title, err)
		}
		low, high = min(low, plots[i].Y.Min), max(high, plots[i].Y.Max)
	}
	for _, p := range plots {
		if sameScale {
			p.Y.Min, p.Y.Max = low, high
		}
	}
	canvas := vgsvg.New(panelWidth*vg.Length(len(panels)), height)
	page := vgdraw.New(canvas)
	tiles := vgdraw.Tiles{
		Rows:      1,
		Cols:      len(panels),
		PadX:      gap,
		PadTop:    gap / 2,
		PadBottom: gap / 2,
		PadLeft:   gap,
		PadRight:  gap,
	}
	for i, c := range plot.Align([][]*plot.Plot{plots}, tiles, page)[0] {
		plots[i].Draw(c)
	}
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return err
	}
	// Where the font is missing, one with the same widths takes its place.
	_, err := w.Write(bytes.ReplaceAll(svg.Bytes(), []byte(family), []byte(family+",Arial,Helvetica,sans-serif")))
	return err
}

// family is how the library names its font in the style of a text.
const family = "font-family:Liberation Sans"

func (p Panel) plot() (*plot.Plot, error) {
	out := plot.New()
	out.BackgroundColor = nil
	out.Title.Text = p.Title
	out.Title.TextStyle.Color = ink
	out.Title.TextStyle.Font.Size = 12
	out.Title.Padding = 6
	out.X.Label.Text = p.X
	for _, axis := range []*plot.Axis{&out.X, &out.Y} {
		axis.Scale = plot.LogScale{}
		axis.Color = ink
		axis.Label.TextStyle.Color = ink
		axis.Tick.Color = ink
		axis.Tick.Label.Color = ink
		axis.Tick.Label.Font = font.From(plot.DefaultFont, 10)
	}
	out.X.Tick.Marker = decades(func(v float64) string { return fmt.Sprintf("%.0f", v) })
	out.Y.Tick.Marker = decades(p.Y)
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = faint, faint
	out.Add(grid)
	for i, curve := range p.Curves {
		if len(curve.Points) == 0 {
			continue
		}
		xys, err := curve.xys()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", curve.Name, err)
		}
		line, points, err := plotter.NewLinePoints(xys)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", curve.Name, err)
		}
		look := looks[i%len(looks)]
		line.Color, line.Width = look.color, vg.Points(2)
		points.Color, points.Shape, points.Radius = look.color, look.glyph, vg.Points(3)
		out.Add(line, points)
		if p.Legend != NoLegend {
			out.Legend.Add(curve.Name, line, points)
		}
	}
	out.Y.Min, out.Y.Max = decade(out.Y.Min, math.Floor), decade(out.Y.Max, math.Ceil)
	out.Legend.Top, out.Legend.Left = true, true
	out.Legend.XOffs, out.Legend.YOffs = vg.Points(8), vg.Points(-4)
	if p.Legend == TopMiddle {
		out.Legend.XOffs = vg.Points(70)
	}
	out.Legend.Padding = vg.Points(3)
	out.Legend.TextStyle.Color = ink
	return out, nil
}

func (c Curve) xys() (out plotter.XYs, err error) {
	for _, p := range c.Points {
		if p.X <= 0 || p.Y <= 0 {
			return nil, fmt.Errorf("expected a point with positive coordinates, got %g, %g", p.X, p.Y)
		}
		out = append(out, plotter.XY{X: p.X, Y: p.Y})
	}
	return out, nil
}

// decade returns the power of ten next to v.
func decade(v float64, round func(float64) float64) float64 {
	return math.Pow(10, round(math.Log10(v)))
}

// decades puts a tick with a label at each power of ten. The library's own ticks
// label all that is between as well.
type decades func(float64) string

// Ticks implements plot.Ticker.
func (label decades) Ticks(low, high float64) (ticks []plot.Tick) {
	// The exponents are rounded, since 10^-n is not exact.
	for e := math.Ceil(math.Log10(low) - 1e-9); e <= math.Log10(high)+1e-9; e++ {
		v := math.Pow(10, e)
		ticks = append(ticks, plot.Tick{Value: v, Label: label(v)})
	}
	return ticks
}
