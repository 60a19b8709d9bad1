package charts_test

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/benchmarks/internal/charts"
)

func TestDraw(t *testing.T) {
	y := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) + " units" }
	panels := []charts.Panel{
		{Title: "one", X: "objects", Y: y, Legend: charts.TopLeft, Curves: []charts.Curve{
			{Name: "first", Points: []charts.Point{{X: 1, Y: 10}, {X: 1000, Y: 30}}},
			{Name: "absent"},
		}},
		{Title: "other", X: "watchers", Y: y, Curves: []charts.Curve{
			{Name: "first", Points: []charts.Point{{X: 1, Y: 20}, {X: 10, Y: 90_000}}},
		}},
	}
	draw := func(sameScale bool) string {
		var out bytes.Buffer
		require.NoError(t, charts.Draw(&out, sameScale, panels...))
		return out.String()
	}
	own, same := draw(false), draw(true)
	for text, count := range map[string]int{
		">one<": 1, ">other<": 1, ">objects<": 1, ">watchers<": 1, ">first<": 1, ">absent<": 0, ">1000<": 1,
		">10 units<": 2, ">100 units<": 2, ">100000 units<": 1,
	} {
		require.Equal(t, count, strings.Count(own, text), text)
	}
	require.Equal(t, 2, strings.Count(same, ">100000 units<"), "both panels have the scale of the larger one")
	require.EqualError(t, charts.Draw(&bytes.Buffer{}, false), "expected a panel to draw")
	panels[0].Curves[0].Points[0].Y = 0
	require.EqualError(t, charts.Draw(&bytes.Buffer{}, false, panels...),
		"one: first: expected a point with positive coordinates, got 1, 0")
}
