package attacks_test

import (
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership/blame"
	"github.com/tenure-ssa/tenure/ownership/conflictreport"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// evil contains characters that affect a terminal or a reader: an escape sequence, its C1 form, an override of the text
// direction, and an invisible character.
const evil = "\x1b[2J\u009b31m\u202e\u200b\U000e0041"

// harmless returns an error for a text that contains any of evil.
func harmless(text string) error {
	if i := strings.IndexAny(text, evil[:1]+"\u009b\u202e\u200b\U000e0041"); i >= 0 {
		return fmt.Errorf("%.20q is printed", text[i:])
	}
	return nil
}

var printing = []attack{
	{
		name: "escape sequences and bidirectional controls in names, keys, values and managers", size: 250,
		why: "a terminal, which does what they say, and a reader, who sees another order",
		gets: "every report, table, message and document of the library and the command shows them by their numbers, " +
			"as `\\u202e`; JSON and YAML stay the same value",
		build: func(n int) func() error {
			data := tree{}
			for i := range n {
				data[fmt.Sprint(evil, i)] = evil
			}
			obj := object(tree{"map": data}).Object
			fields := tree{"f:spec": tree{"f:map": tree{".": tree{}}}}
			obj["metadata"] = tree{"name": evil, "managedFields": []any{entry(evil, "Apply", "example.dev/v1", fields)}}
			owner := managedfields.KeyOf(evil, metav1.ManagedFieldsOperationUpdate, evil, evil)
			var all conflicts.Conflicts
			var lost []conflictreport.Loss
			for name := range data {
				path := fieldpath.NewPath("spec", "map", name)
				all = append(all, conflicts.Conflict{Owner: owner, Path: path, Live: evil, Applied: evil + "x"})
				lost = append(lost, conflictreport.Loss{Owner: all[0].Entry(), Fields: []fieldpath.Path{path}})
			}
			report := conflictreport.Report{Object: evil, Manager: evil, Conflicts: all,
				Ways: []conflictreport.WayOut{{Decision: conflicts.Force, Losses: lost}}}
			return func() error {
				var b strings.Builder
				if err := report.Render(&b, conflictreport.Style{}); err != nil {
					return err
				}
				lines, err := blame.New(runtime.DeepCopyJSON(obj), blame.Options{})
				if err != nil {
					return err
				}
				if err := blame.Text(&b, nil, lines); err != nil {
					return err
				}
				data, err := json.Marshal(obj)
				if err != nil {
					return err
				}
				yaml, err := printable.YAML(data)
				if err != nil {
					return err
				}
				return harmless(b.String() + string(yaml) + string(printable.JSON(data)))
			}
		},
	},
}
