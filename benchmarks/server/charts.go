package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/tenure-ssa/tenure/benchmarks/internal/charts"
)

// drawn are the servers of a chart, each of which has a color, and their names there.
var drawn = []struct{ server, name string }{
	{againstName, "kube-apiserver, etcd"},
	{"etcd", "Tenure, etcd"},
	{"bbolt", "Tenure, bbolt"},
	{"memory", "Tenure, memory"},
	{floorName, "net/http alone"},
}

// draw writes a chart of cost against watchers and objects.
func (c Comparison) draw(path string) error {
	took := func(v float64) string { return time.Duration(v).String() }
	panels := []charts.Panel{
		{Title: "CPU of an event", X: "watchers", Y: took, Curves: c.watchCurves()},
		{Title: "CPU of a list, JSON", X: "Pods", Y: took, Curves: c.listCurves("JSON")},
		{Title: "CPU of a list, protobuf", X: "Pods", Y: took, Curves: c.listCurves("protobuf")},
		{Title: "Memory", X: "Pods", Y: func(v float64) string { return fmt.Sprintf("%.0f MiB", v) }, Curves: c.sizeCurves()},
	}
	panels = slices.DeleteFunc(panels, func(p charts.Panel) bool {
		return !slices.ContainsFunc(p.Curves, func(c charts.Curve) bool { return len(c.Points) > 0 })
	})
	if len(panels) > 0 {
		panels[0].Legend = charts.TopMiddle
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := charts.Draw(file, false, panels...); err != nil {
		return err
	}
	return file.Close()
}

// curves returns a curve for each server.
func curves(points func(server string) []charts.Point) (out []charts.Curve) {
	for _, d := range drawn {
		out = append(out, charts.Curve{Name: d.name, Points: points(d.server)})
	}
	return out
}

// watchCurves shows each number of watchers once, at the rate that was measured first.
func (c Comparison) watchCurves() []charts.Curve {
	return curves(func(server string) (out []charts.Point) {
		for _, w := range c.Watches {
			x := float64(w.Watchers)
			known := slices.ContainsFunc(out, func(p charts.Point) bool { return p.X == x })
			if w.Server == server && !known {
				out = append(out, charts.Point{X: x, Y: float64(w.CPU)})
			}
		}
		slices.SortFunc(out, func(a, b charts.Point) int { return cmp.Compare(a.X, b.X) })
		return out
	})
}

func (c Comparison) listCurves(form string) []charts.Curve {
	return curves(func(server string) (out []charts.Point) {
		for _, l := range c.Lists {
			if l.Server == server && l.Form == form && l.CPU > 0 {
				out = append(out, charts.Point{X: float64(l.Objects), Y: float64(l.CPU)})
			}
		}
		return out
	})
}

func (c Comparison) sizeCurves() []charts.Curve {
	return curves(func(server string) (out []charts.Point) {
		for _, s := range c.Sizes {
			if s.Server == server {
				out = append(out, charts.Point{X: float64(s.Objects), Y: float64(s.Full) / (1 << 20)})
			}
		}
		return out
	})
}
