package main

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"math"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/tenure-ssa/tenure/benchmarks/internal/growth"
)

// The page behind the chart is white or dark, and shows through. These colours
// stand out from both: text about as much as from either.
var (
	ink      = color.NRGBA{R: 0x74, G: 0x7c, B: 0x86, A: 0xff}
	faint    = color.NRGBA{R: 0x74, G: 0x7c, B: 0x86, A: 0x40}
	upstream = color.NRGBA{R: 0xe0, G: 0x6c, B: 0x2e, A: 0xff}
	tenure   = color.NRGBA{R: 0x2e, G: 0x8f, B: 0xe8, A: 0xff}
)

const (
	panelWidth = 3.9 * vg.Inch
	height     = 3.4 * vg.Inch
	gap        = 0.15 * vg.Inch
)

// draw draws a panel for each series, side by side, with the same scale of time.
func draw(w io.Writer, series []growth.Series) error {
	if len(series) == 0 {
		return fmt.Errorf("nothing to draw")
	}
	plot.DefaultFont.Variant = "Sans"
	panels := make([]*plot.Plot, len(series))
	low, high := math.Inf(1), math.Inf(-1)
	for i, s := range series {
		p, err := panel(s, i == 0)
		if err != nil {
			return err
		}
		low, high = min(low, p.Y.Min), max(high, p.Y.Max)
		panels[i] = p
	}
	for _, p := range panels {
		p.Y.Min, p.Y.Max = decade(low, math.Floor), decade(high, math.Ceil)
	}
	canvas := vgsvg.New(panelWidth*vg.Length(len(series)), height)
	page := vgdraw.New(canvas)
	tiles := vgdraw.Tiles{
		Rows:      1,
		Cols:      len(series),
		PadX:      gap,
		PadTop:    gap / 2,
		PadBottom: gap / 2,
		PadLeft:   gap,
		PadRight:  gap,
	}
	for i, c := range plot.Align([][]*plot.Plot{panels}, tiles, page)[0] {
		panels[i].Draw(c)
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

// decade returns the power of ten next to v.
func decade(v float64, round func(float64) float64) float64 {
	return math.Pow(10, round(math.Log10(v)))
}

// panel draws one series; only one panel needs a legend.
func panel(s growth.Series, legend bool) (*plot.Plot, error) {
	p := plot.New()
	p.BackgroundColor = nil
	p.Title.Text = s.Name
	p.Title.TextStyle.Color = ink
	p.Title.TextStyle.Font.Size = 12
	p.Title.Padding = 6
	p.X.Label.Text = s.Unit
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Scale = plot.LogScale{}
		axis.Color = ink
		axis.Label.TextStyle.Color = ink
		axis.Tick.Color = ink
		axis.Tick.Label.Color = ink
		axis.Tick.Label.Font = font.From(plot.DefaultFont, 10)
	}
	p.X.Tick.Marker = decades(func(v float64) string { return fmt.Sprintf("%.0f", v) })
	p.Y.Tick.Marker = decades(func(v float64) string { return time.Duration(v).String() })
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = faint, faint
	p.Add(grid)

	var theirs, ours plotter.XYs
	for _, point := range s.Points {
		x := float64(point.Size)
		ours = append(ours, plotter.XY{X: x, Y: float64(point.Tenure.Time)})
		if point.Upstream != nil {
			theirs = append(theirs, plotter.XY{X: x, Y: float64(point.Upstream.Time)})
		}
	}
	for _, curve := range []struct {
		name   string
		points plotter.XYs
		color  color.Color
		glyph  vgdraw.GlyphDrawer
	}{
		{"upstream", theirs, upstream, vgdraw.BoxGlyph{}},
		{"Tenure", ours, tenure, vgdraw.CircleGlyph{}},
	} {
		line, points, err := plotter.NewLinePoints(curve.points)
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", s.Name, curve.name, err)
		}
		line.Color, line.Width = curve.color, vg.Points(2)
		points.Color, points.Shape, points.Radius = curve.color, curve.glyph, vg.Points(3)
		p.Add(line, points)
		if legend {
			p.Legend.Add(curve.name, line, points)
		}
	}
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.XOffs, p.Legend.YOffs = vg.Points(8), vg.Points(-4)
	p.Legend.Padding = vg.Points(3)
	p.Legend.TextStyle.Color = ink
	return p, nil
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
