package ui

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tenure-ssa/tenure/cmd/internal/lines"
	"github.com/tenure-ssa/tenure/cmd/internal/page"
	"github.com/tenure-ssa/tenure/cmd/internal/view"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/internal/secrets"
	"github.com/tenure-ssa/tenure/ownership/blame"
	"github.com/tenure-ssa/tenure/ownership/fights"
	"github.com/tenure-ssa/tenure/typed"
)

// shown is an object as it is sent to the page. Object and Findings are HTML.
type shown struct {
	Object   string    `json:"object"`
	Findings string    `json:"findings"`
	Versions []version `json:"versions"`
	Number   int       `json:"number"` // number of the shown version
	HasPlan  bool      `json:"hasPlan"`
}

// errNotKept reports that a version is not kept any more, or that the object does not exist.
var errNotKept = errors.New("this object does not exist, or this version is not kept")

// maxChanges is the maximal number of changes that are listed.
const maxChanges = 12

// render returns a version of an object, or its plan. Number 0 is the latest version.
func (m *Model) render(key string, number int, asPlan bool) (*shown, error) {
	out, plan, findings := m.read(key)
	object := plan
	out.HasPlan = plan != nil
	if len(out.Versions) > 0 && (plan == nil || !asPlan) {
		out.Number = cmp.Or(number, out.Versions[len(out.Versions)-1].Number)
		i := slices.IndexFunc(out.Versions, func(v version) bool { return v.Number == out.Number })
		if i < 0 {
			return nil, errNotKept
		}
		var err error
		if object, err = m.pageOf(out.Versions[:i+1], number == 0); err != nil {
			return nil, err
		}
		if plan != nil && number == 0 {
			for path, mark := range plan.Marks {
				if mark == page.Conflict {
					object.Marks[path] = mark
				}
			}
		}
	}
	if object == nil {
		return nil, errNotKept
	}
	var html, side strings.Builder
	err := page.WriteObject(&html, *object, func(owner string) int {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.hue(owner)
	})
	if err == nil {
		err = templates.ExecuteTemplate(&side, "findings", findings)
	}
	out.Object, out.Findings = html.String(), side.String()
	return out, err
}

// read returns the data about an object.
func (m *Model) read(key string) (out *shown, plan *page.Object, findings []page.Finding) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out = &shown{Versions: []version{}}
	if o := m.objects[key]; o != nil {
		out.Versions = append(out.Versions, o.versions...)
		for _, source := range slices.Sorted(maps.Keys(o.facts)) {
			findings = append(findings, o.facts[source].Findings...)
			if f := o.facts[source]; f.Plan != nil {
				plan = f.Plan
			}
		}
	}
	return out, plan, findings
}

// pageOf returns the last of the given versions as an object of a page, with the changes of the versions before it.
// isLive says whether the last version is the live object.
func (m *Model) pageOf(versions []version, isLive bool) (*page.Object, error) {
	last := &versions[len(versions)-1]
	now := last.seen()
	if isLive {
		now = m.Now()
	}
	var tree map[string]any
	if err := utiljson.Unmarshal(last.data, &tree); err != nil {
		return nil, err
	}
	gvk := schema.FromAPIVersionAndKind(fmt.Sprint(tree["apiVersion"]), fmt.Sprint(tree["kind"]))
	t, otherPaths := m.Type(gvk)
	report, err := blame.New(view.Hide(tree), blame.Options{
		Now: now, Type: t, OtherPaths: otherPaths, TypeAt: func(version string) *typed.Type {
			at, _ := m.Type(schema.FromAPIVersionAndKind(version, gvk.Kind))
			return at
		},
	})
	if err != nil {
		return nil, err
	}
	out := &page.Object{Title: printable.Text(report.Title()), Notes: report.Notes(), Lines: lines.Of(report),
		Marks: map[string]page.Mark{}, Latest: map[string]*page.Change{}}
	table := page.Table{Title: fmt.Sprintf("Changed in the last %.0f minutes", m.Recent.Minutes()),
		Head: []string{"When", "By", "Field", "Before", "After"}}
	left := 0
	for _, v := range slices.Backward(versions) {
		if now.Sub(v.seen()) > m.Recent {
			break
		}
		for _, c := range v.changes {
			change := &page.Change{Old: hidden(c.Old), By: sideOf(c.Side), When: ago(now, v.seen())}
			if path := c.Path.String(); out.Latest[path] == nil {
				out.Marks[path], out.Latest[path] = page.Changed, change
			}
			if len(table.Rows) == maxChanges {
				left++
				continue
			}
			table.Rows = append(table.Rows, []string{change.When, change.By, c.Path.Short(), change.Old, hidden(c.New)})
		}
	}
	if left > 0 {
		table.Title += fmt.Sprintf(", and %d changes before these", left)
	}
	if len(table.Rows) > 0 {
		out.Tables = append(out.Tables, table)
	}
	return out, nil
}

func sideOf(s fights.Side) string { return printable.Text(s.String()) }

// hidden returns the text of a value with *** in place of values of a Secret.
func hidden(text string) string { return printable.Text(secrets.ReplaceStandIns(text, secrets.Hidden)) }

func ago(now, when time.Time) string { return duration.HumanDuration(now.Sub(when)) + " ago" }
