package view

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/internal/printable"
)

// Table prints objects as kubectl does. If mixed is true, their names include the kind.
func Table(w io.Writer, objects []map[string]any, now time.Time, wide, mixed bool) error {
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	header := "NAMESPACE\tNAME\tMANAGERS\tAGE"
	if wide {
		header += "\tAPIVERSION\tGENERATION\tRESOURCEVERSION\tUID"
	}
	fmt.Fprintln(tw, header)
	for _, obj := range objects {
		name := manifest.NameOf(obj)
		if gvk, err := manifest.GVKOf(obj); mixed && err == nil {
			name = place.Reference(gvk.GroupKind(), name)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s", orDash(manifest.TextAt(obj, "namespace")), printable.Text(name),
			orDash(managers(obj)), age(obj, now))
		if wide {
			metadata, _ := obj["metadata"].(map[string]any)
			for _, value := range []any{
				obj["apiVersion"], metadata["generation"],
				manifest.TextAt(obj, "resourceVersion"), manifest.TextAt(obj, "uid"),
			} {
				fmt.Fprintf(tw, "\t%s", printable.Text(fmt.Sprint(value)))
			}
		}
		fmt.Fprintln(tw)
	}
	return tw.Flush()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return printable.Text(s)
}

// managers returns the names of an object's managers, each once, sorted.
func managers(obj map[string]any) string {
	list, _ := manifest.ManagedFields(obj).([]any)
	var names []string
	for _, item := range list {
		entry, _ := item.(map[string]any)
		if name, _ := entry["manager"].(string); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ",")
}

func age(obj map[string]any, now time.Time) string {
	created, err := time.Parse(time.RFC3339, manifest.TextAt(obj, "creationTimestamp"))
	if err != nil {
		return "-"
	}
	return duration.HumanDuration(now.Sub(created))
}
