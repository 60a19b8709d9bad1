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
		if advice := FightAdvice(suggest, f); advice != "" {
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

// FightAdvice returns what to do about a fight: the ways out of a conflict, for the managers that are
// in it. It is empty for other findings.
func FightAdvice(suggest Suggest, f fights.Finding) string {
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

// FindingJSON is a finding as JSON, on one line of a stream.
type FindingJSON struct {
	Kind       fights.Kind `json:"kind"`
	APIVersion string      `json:"apiVersion"`
	ObjectKind string      `json:"objectKind"`
	Namespace  string      `json:"namespace,omitempty"`
	Name       string      `json:"name"`
	UID        string      `json:"uid,omitempty"`
	Field      string      `json:"field,omitempty"`
	Sides      []SideJSON  `json:"sides,omitempty"`
	Returns    int         `json:"returns,omitempty"`
	Rate       float64     `json:"perMinute,omitempty"`
	Since      time.Time   `json:"since"`
	Last       time.Time   `json:"last"`
	Before     *SizeJSON   `json:"before,omitempty"`
	After      *SizeJSON   `json:"after,omitempty"`
	Advice     string      `json:"advice,omitempty"`
}

// SideJSON is one side of a finding.
type SideJSON struct {
	Manager     string `json:"manager"`
	Operation   string `json:"operation,omitempty"`
	Subresource string `json:"subresource,omitempty"`
	Value       string `json:"value,omitempty"`
	Turns       int    `json:"turns,omitempty"`
	Forced      int    `json:"forced,omitempty"`
}

// SizeJSON is the size of managed fields.
type SizeJSON struct {
	Entries int `json:"entries"`
	Bytes   int `json:"bytes"`
}

// NewFindingJSON returns a finding as it is printed in JSON.
func NewFindingJSON(suggest Suggest, f fights.Finding) FindingJSON {
	out := FindingJSON{
		Kind: f.Kind, APIVersion: f.Object.APIVersion, ObjectKind: f.Object.Kind, Namespace: f.Object.Namespace,
		Name: f.Object.Name, UID: f.Object.UID, Returns: f.Returns, Rate: f.Rate(), Since: f.Since, Last: f.Last,
		Advice: FightAdvice(suggest, f),
	}
	if f.Kind == fights.Fight {
		out.Field = f.Path.String()
	}
	if f.Kind == fights.Growth {
		out.Before = &SizeJSON{f.Before.Entries, f.Before.Bytes}
		out.After = &SizeJSON{f.After.Entries, f.After.Bytes}
	}
	for _, s := range f.Sides {
		out.Sides = append(out.Sides, SideJSON{
			Manager: s.Manager, Operation: string(s.Operation), Subresource: s.Subresource, Value: s.Value, Turns: s.Turns,
			Forced: s.Forced,
		})
	}
	return out
}
