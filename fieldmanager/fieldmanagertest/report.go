package fieldmanagertest

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/internal/printable"
)

// maxRows is the maximum number of orders that a report lists.
const maxRows = 24

// String returns a report for people: the numbers of orders and results, each order, and the two diverging orders with
// the difference between their results.
func (r *Interleaving) String() string {
	var b strings.Builder
	conflicting, refusing := 0, 0
	for _, o := range r.Orders {
		if slices.ContainsFunc(o.Errs, apierrors.IsConflict) {
			conflicting++
		}
		if slices.ContainsFunc(o.Errs, refused) {
			refusing++
		}
	}
	fmt.Fprintf(&b, "%d of %s orders run", len(r.Orders), r.Total)
	if r.Interrupted {
		b.WriteString(", interrupted")
	}
	if r.Total != nil && r.Total.Cmp(big.NewInt(int64(len(r.Orders)))) > 0 {
		b.WriteString(", a sample")
	}
	verdict := "they converge"
	switch {
	case len(r.Orders) == 0:
		return b.String() + "\n"
	case !r.Converges():
		verdict = "they diverge"
	case !slices.ContainsFunc(r.Orders, hasSuccess):
		verdict = "every write was refused" // so the results have no meaning
	}
	fmt.Fprintf(&b, "; %s: %s, %s of owners; %s with conflicts", verdict,
		printable.Counted(len(r.Objects), "object", "objects"), printable.Counted(len(r.Owners), "set", "sets"),
		printable.Counted(conflicting, "order", "orders"))
	if refusing > 0 {
		fmt.Fprintf(&b, ", %s with refused writes", printable.Counted(refusing, "order", "orders"))
	}
	b.WriteByte('\n')
	for i, o := range r.Orders {
		if i == maxRows {
			fmt.Fprintf(&b, "  … and %d more\n", len(r.Orders)-i)
			break
		}
		fmt.Fprintf(&b, "  %s\n", o)
	}
	r.refusals(&b)
	if r.Diverging == nil {
		return b.String()
	}
	x, y := r.Diverging[0], r.Diverging[1]
	xs, ys := strings.Join(x.Writes, " "), strings.Join(y.Writes, " ")
	fmt.Fprintf(&b, "one swap makes the difference: %s, or %s\n", xs, ys)
	b.WriteString(diff(xs, ys, r.Objects[x.Object], r.Objects[y.Object]))
	b.WriteString(diff(xs, ys, r.Owners[x.Owners], r.Owners[y.Owners]))
	return b.String()
}

func hasSuccess(o Order) bool { return slices.Contains(o.Errs, nil) }

// refusals writes the distinct errors of rejected writes.
func (r *Interleaving) refusals(b *strings.Builder) {
	met := map[string]bool{}
	for _, o := range r.Orders {
		for i, err := range o.Errs {
			if !refused(err) {
				continue
			}
			line := fmt.Sprintf("%s is refused: %s\n", o.Writes[i], printable.Text(err.Error()))
			if !met[line] && len(met) < maxRows {
				met[line] = true
				b.WriteString(line)
			}
		}
	}
}

// String returns the order in one line: its writes, results and errors.
func (o Order) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: object %d, owners %d", strings.Join(o.Writes, " "), o.Object+1, o.Owners+1)
	for i, err := range o.Errs {
		var c conflicts.Conflicts
		switch {
		case errors.As(err, &c):
			var owners []string
			for _, conflict := range c {
				owners = append(owners, fmt.Sprintf("%s over %s", conflict.Owner.Manager, conflict.Path))
			}
			fmt.Fprintf(&b, ", %s in conflict with %s", o.Writes[i], strings.Join(owners, " and "))
		case err != nil:
			fmt.Fprintf(&b, ", %s refused", o.Writes[i])
		}
	}
	return b.String()
}

// renderYAML renders a value as printable YAML with sorted keys. The value must be one that JSON can represent.
func renderYAML(v any) string {
	b, err := printable.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%v\n", v)
	}
	return string(b)
}

// diff returns the unified diff of two texts that end with a newline; empty if they are equal.
func diff(nameA, nameB, a, b string) string {
	text, _ := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{ // fails only if its writer fails
		A: slices.Collect(strings.Lines(a)), B: slices.Collect(strings.Lines(b)),
		FromFile: nameA, ToFile: nameB, Context: 3,
	})
	return text
}
