package view

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership/advice"
	"github.com/tenure-ssa/tenure/ownership/fights"
)

// Findings writes findings as a table, and below it, suggestions for each fight. The table shows how long before now
// each finding began and last occurred. If now is zero, it shows the times themselves.
func Findings(w io.Writer, suggest Suggest, findings []fights.Finding, now time.Time) error {
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(tw, "FINDING\tNAMESPACE\tOBJECT\tFIELD\tBY\tTIMES\tRATE\tSINCE\tLAST")
	for _, f := range findings {
		f = HideFinding(f)
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", f.Kind, orDash(f.Object.Namespace),
			printable.Text(objectOf(f.Object)), printable.Text(fieldOf(f)), printable.Text(sidesOf(f)), timesOf(f), rateOf(f),
			ago(now, f.Since), ago(now, f.Last))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, f := range findings {
		what := printable.Text(title(f.Object) + ", " + f.Path.String())
		switch f.Kind {
		case fights.Flap:
			fmt.Fprintf(w, "\n%s: %s\n", what, printable.Text(fightAdvice(f)[0].Why))
		case fights.Fight:
			fmt.Fprintf(w, "\n%s: decide who keeps the field.\n", what)
			for _, s := range fightAdvice(f) {
				fmt.Fprintf(w, "  - %s\n", printable.Text(s.Why))
				if line := suggest.line(s); line != "" {
					fmt.Fprintf(w, "    %s\n", printable.Text(line))
				}
			}
		}
	}
	return nil
}

func objectOf(o fights.Object) string {
	gv, _ := schema.ParseGroupVersion(o.APIVersion)
	return document.Reference(schema.GroupKind{Group: gv.Group, Kind: o.Kind}, o.Name)
}

func fieldOf(f fights.Finding) string {
	switch f.Kind {
	case fights.Fight, fights.Flap:
		return f.Path.String()
	case fights.Growth:
		return ".metadata.managedFields"
	}
	return "-"
}

func sidesOf(f fights.Finding) string {
	var out []string
	for _, s := range f.Sides {
		text := s.Side.String()
		if f.Kind != fights.IdleWriter {
			text += "=" + s.Value
		}
		out = append(out, text)
	}
	if f.Kind == fights.Growth {
		return fmt.Sprintf("%d -> %d entries, %d -> %d bytes",
			f.Before.Entries, f.After.Entries, f.Before.Bytes, f.After.Bytes)
	}
	return strings.Join(out, " ")
}

func timesOf(f fights.Finding) string {
	if f.Kind == fights.Growth {
		return "-"
	}
	return fmt.Sprint(f.Returns)
}

func rateOf(f fights.Finding) string {
	if rate := f.Rate(); rate > 0 {
		return fmt.Sprintf("%.1f/min", rate)
	}
	return "-"
}

func ago(now, when time.Time) string {
	if now.IsZero() {
		return when.UTC().Format(time.RFC3339)
	}
	return duration.HumanDuration(now.Sub(when)) + " ago"
}

// title returns the kind, name and namespace of an object as command arguments.
func title(o fights.Object) string {
	if o.Namespace != "" {
		return objectOf(o) + " -n " + o.Namespace
	}
	return objectOf(o)
}

// fightAdvice returns suggestions for a finding.
func fightAdvice(f fights.Finding) []advice.Suggestion {
	gv, _ := schema.ParseGroupVersion(f.Object.APIVersion)
	kind := document.Resource(schema.GroupKind{Group: gv.Group, Kind: f.Object.Kind})
	switch f.Kind {
	case fights.Flap:
		return []advice.Suggestion{advice.Separate(f.Sides[0].Manager)}
	case fights.Fight:
		var sides []managedfields.Key
		for _, s := range f.Sides {
			if s.Side != fights.Nobody {
				sides = append(sides, managedfields.Key{Manager: s.Manager, Operation: s.Operation})
			}
		}
		o := advice.Objects{Kinds: []string{kind}, Namespace: f.Object.Namespace, Name: f.Object.Name}
		return advice.Decide(o, f.Path, sides)
	}
	return nil
}

// FindingJSON returns a finding for JSON output, where it is one line of a stream.
func FindingJSON(suggest Suggest, f fights.Finding) any {
	out := struct {
		fights.Finding
		Rate        float64             `json:"perMinute,omitempty"`
		Suggestions []advice.Suggestion `json:"suggestions,omitempty"`
	}{f, f.Rate(), fightAdvice(f)}
	for i, s := range out.Suggestions {
		out.Suggestions[i] = suggest.with(s)
	}
	return out
}
