package report

import (
	"fmt"
	"time"

	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/internal/webpage"
)

// chart is bars, one below the other.
type chart struct {
	Title, Note string
	Height      int
	Bars        []bar
}

// bar is a name, a bar before another one, and a figure. newChart sets the places, in the units of the chart.
type bar struct {
	Name, Figure, Tip, Class string
	Front, Back              int

	Y, TextY       int
	Width, FigureX int
	BackWidth      int
}

// The measures of a chart: its bars begin at 176 of 560.
const (
	barStart  = 176
	barLength = 290
	barStep   = 21
	maxBars   = 14
)

// newChart returns a chart of the first of the bars.
func newChart(title, note string, bars []bar) chart {
	if len(bars) > maxBars {
		note = fmt.Sprintf("the first %d of %d", maxBars, len(bars))
		bars = bars[:maxBars]
	}
	longest := 1
	for _, b := range bars {
		longest = max(longest, b.Front, b.Back)
	}
	for i := range bars {
		b := &bars[i]
		b.Name = printable.Short(b.Name, 26)
		b.Y = i * barStep
		b.TextY = b.Y + 11
		b.Width, b.BackWidth = b.Front*barLength/longest, b.Back*barLength/longest
		if b.Front > 0 {
			b.Width = max(b.Width, 2)
		}
		b.FigureX = barStart + max(b.Width, b.BackWidth) + 6
	}
	return chart{Title: title, Note: note, Height: len(bars) * barStep, Bars: bars}
}

func charts(s *Summary, classes map[string]string) []chart {
	var managers, kinds, ages []bar
	for i := range s.Managers {
		m := &s.Managers[i]
		name := webpage.ManagerName(m.Name)
		managers = append(managers, bar{
			Name: name, Class: classes[m.Name], Front: m.ManagedFields, Figure: Bytes(m.ManagedFields),
			Tip: fmt.Sprintf("%s: %d fields of %d objects", name, m.Fields, m.Objects),
		})
	}
	for i := range s.Kinds {
		k := &s.Kinds[i]
		name := printable.Text(k.Name)
		kinds = append(kinds, bar{
			Name: name, Front: k.ManagedFields, Back: k.Size,
			Figure: fmt.Sprintf("%s, %.0f %%", Bytes(k.ManagedFields), k.Share()*100),
			Tip:    fmt.Sprintf("%s: %d objects of %s", name, k.Objects, Bytes(k.Size)),
		})
	}
	for _, a := range s.Ages {
		name := "older"
		if a.Below.Duration > 0 {
			name = "less than " + days(a.Below.Duration)
		}
		ages = append(ages, bar{
			Name: name, Front: a.Entries, Figure: fmt.Sprint(a.Entries),
			Tip: counted(a.Entries, "entry", "entries") + " " + name,
		})
	}
	return []chart{
		newChart("Managed fields by manager", "", managers),
		newChart("Managed fields in objects, by kind", "", kinds),
		newChart("Age of entries", "since the manager last changed something", ages),
	}
}

// days returns a duration in hours or days.
func days(d time.Duration) string {
	if d <= 24*time.Hour {
		return counted(int(d/time.Hour), "hour", "hours")
	}
	return counted(int(d/(24*time.Hour)), "day", "days")
}
