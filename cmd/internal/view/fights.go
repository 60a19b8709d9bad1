package view

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/ownership/fights"
)

// Suggest returns the command line of a command with arguments, in the place where this command acts.
type Suggest func(args ...string) string

// Findings prints what was found as a table, with what to do about each fight below it.
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
		if advice := fightAdvice(suggest, f); advice != "" {
			fmt.Fprintln(w)
			for line := range strings.Lines(advice) {
				if _, err := fmt.Fprintln(w, printable.Text(strings.TrimSuffix(line, "\n"))); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func objectOf(o fights.Object) string {
	gv, _ := schema.ParseGroupVersion(o.APIVersion)
	return place.Reference(schema.GroupKind{Group: gv.Group, Kind: o.Kind}, o.Name)
}

func fieldOf(f fights.Finding) string {
	switch f.Kind {
	case fights.Fight:
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
		if f.Kind == fights.Fight {
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

func ago(now, at time.Time) string { return duration.HumanDuration(now.Sub(at)) + " ago" }

// fightAdvice returns what to do about a fight: the ways out of a conflict, for the managers that are
// in it. It is empty for other findings.
func fightAdvice(suggest Suggest, f fights.Finding) string {
	if f.Kind != fights.Fight {
		return ""
	}
	object, field := objectOf(f.Object), f.Path.String()
	if f.Object.Namespace != "" {
		object += " -n " + f.Object.Namespace
	}
	var appliers, updaters []string
	for _, s := range f.Sides {
		switch {
		case s.Side == fights.Nobody:
		case s.Operation == metav1.ManagedFieldsOperationApply:
			appliers = append(appliers, s.Manager)
		default:
			updaters = append(updaters, s.Manager)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s: decide who keeps the field.\n", object, field)
	for _, manager := range appliers {
		args := []string{"handover", "-f", "MANIFEST", "--field-manager", manager, "--field", field}
		if f.Object.Namespace != "" {
			args = append(args, "-n", f.Object.Namespace)
		}
		fmt.Fprintf(&b, "  - not %s: take it out of what it applies; its value stays with\n    %s\n", manager,
			suggest(args...))
	}
	for _, manager := range updaters {
		fmt.Fprintf(&b, "  - not %s: turn off what makes it write the field\n", manager)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// FindingJSON returns a finding as it is printed in JSON, on one line of a stream.
func FindingJSON(suggest Suggest, f fights.Finding) any {
	return struct {
		fights.Finding
		Rate   float64 `json:"perMinute,omitempty"`
		Advice string  `json:"advice,omitempty"`
	}{f, f.Rate(), fightAdvice(suggest, f)}
}
