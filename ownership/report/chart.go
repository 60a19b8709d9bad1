package report

import (
	"fmt"
	"strings"
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

// bar is a name, a bar before another one, and a figure, in the units of the chart.
type bar struct {
	Name, Figure, Tip, Class string
	Y, TextY                 int
	Width, Back, FigureX     int
}

// The measures of a chart: its bars begin at 176 of 560.
const (
	barStart  = 176
	barLength = 290
	barStep   = 21
	maxBars   = 14
)

// bars places bars; value is how long one is, and of how long the one behind it.
func bars[T any](list []T, value func(*T) (front, back int), show func(*T) bar) (out []bar, height int) {
	longest := 1
	for i := range list {
		front, back := value(&list[i])
		longest = max(longest, front, back)
	}
	for i := range list {
		front, back := value(&list[i])
		b := show(&list[i])
		if runes := []rune(b.Name); len(runes) > 26 {
			b.Name = string(runes[:25]) + "…"
		}
		b.Y = i * barStep
		b.TextY = b.Y + 11
		b.Width, b.Back = front*barLength/longest, back*barLength/longest
		if front > 0 {
			b.Width = max(b.Width, 2)
		}
		b.FigureX = barStart + max(b.Width, b.Back) + 6
		out = append(out, b)
	}
	return out, len(list) * barStep
}

func charts(s *Summary, classes map[string]string) []chart {
	first := func(count int) string {
		if count <= maxBars {
			return ""
		}
		return fmt.Sprintf("the first %d of %d", maxBars, count)
	}
	managers := chart{Title: "Managed fields by manager", Note: first(len(s.Managers))}
	managers.Bars, managers.Height = bars(s.Managers[:min(len(s.Managers), maxBars)],
		func(m *Manager) (int, int) { return m.ManagedFields, 0 },
		func(m *Manager) bar {
			name := webpage.ManagerName(m.Name)
			return bar{Name: name, Class: classes[m.Name], Figure: Bytes(m.ManagedFields),
				Tip: fmt.Sprintf("%s: %d fields of %d objects", name, m.Fields, m.Objects)}
		})
	kinds := chart{Title: "Managed fields in objects, by kind", Note: first(len(s.Kinds))}
	kinds.Bars, kinds.Height = bars(s.Kinds[:min(len(s.Kinds), maxBars)],
		func(k *Kind) (int, int) { return k.ManagedFields, k.Size },
		func(k *Kind) bar {
			name := printable.Text(k.Name)
			return bar{Name: name, Figure: fmt.Sprintf("%s, %.0f %%", Bytes(k.ManagedFields), k.Share()*100),
				Tip: fmt.Sprintf("%s: %d objects of %s", name, k.Objects, Bytes(k.Size))}
		})
	ages := chart{Title: "Age of entries", Note: "since the manager last changed something"}
	ages.Bars, ages.Height = bars(s.Ages, func(a *Age) (int, int) { return a.Entries, 0 }, func(a *Age) bar {
		name := "older"
		if a.Below.Duration > 0 {
			name = "less than " + days(a.Below.Duration)
		}
		return bar{Name: name, Figure: fmt.Sprint(a.Entries), Tip: counted(a.Entries, "entry", "entries") + " " + name}
	})
	return []chart{managers, kinds, ages}
}

// days returns a duration in hours or days.
func days(d time.Duration) string {
	if d <= 24*time.Hour {
		return counted(int(d/time.Hour), "hour", "hours")
	}
	return strings.TrimSpace(counted(int(d/(24*time.Hour)), "day", "days"))
}
