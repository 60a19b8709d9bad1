package conflictreport

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/printable"
)

// Limits for values in a table.
const (
	beforeFirst = 12  // characters shown before a long string's first difference
	maxDiffers  = 100 // maximal number of differences that are counted
	maxDepth    = 100 // maximal depth of a difference, as a value may contain itself
)

// missing takes the place of a missing value, because a null is a value.
type missing struct{}

// ConflictTexts returns the texts of both values of a conflict, as [Texts] does.
func ConflictTexts(c conflicts.Conflict) (live, applied string) {
	a, b := c.Live, c.Applied
	if a == nil && !c.LiveNull {
		a = missing{}
	}
	if b == nil && !c.AppliedNull {
		b = missing{}
	}
	return Texts(a, b)
}

// ChangeTexts returns the texts of both values of a change, as [Texts] does.
func ChangeTexts(c plans.Change) (before, after string) {
	switch c.Kind {
	case plans.Added:
		return Texts(missing{}, c.After)
	case plans.Removed:
		return Texts(c.Before, missing{})
	}
	return Texts(c.Before, c.After)
}

// Texts returns the texts of two different values for the columns of a table. If one text would be too long, both texts
// show only the first difference: the path of the differing value, the value, and the number of other differences. For
// long strings, they show the part around the first differing character.
//
//	{"limits": {"cpu": "1"}, …}    {"limits": {"cpu": "2"}, …}    =>    .limits.cpu: "1"    .limits.cpu: "2"
func Texts(a, b any) (string, string) {
	x, other := text(a, 4*valueWidth), text(b, 4*valueWidth) // 4 bytes: the longest UTF-8 character
	if utf8.RuneCountInString(x) <= valueWidth && utf8.RuneCountInString(other) <= valueWidth {
		return x, other
	}
	d := difference{}
	d.find("", a, b, maxDepth)
	if d.count == 0 {
		return printable.Short(x, valueWidth), printable.Short(other, valueWidth)
	}
	more := ""
	if d.count > 1 {
		more = fmt.Sprintf(" +%d", d.count-1)
	}
	if d.path != "" {
		d.path += ": "
	}
	width := max(valueWidth-utf8.RuneCountInString(d.path)-len(more), valueWidth/2)
	x, other = around(d.a, d.b, width)
	return d.path + x + more, d.path + other + more
}

// difference is the first difference between two values.
type difference struct {
	path  string
	a, b  any
	count int // number of all differences, up to maxDiffers
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// find finds the differences between two values at a path. It compares maps by name, and lists by position.
func (d *difference) find(path string, a, b any, depth int) {
	if d.count >= maxDiffers || depth == 0 {
		return
	}
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			for _, name := range sets.List(sets.KeySet(x).Union(sets.KeySet(y))) {
				fieldPath := path + "." + name
				if !plainName.MatchString(name) {
					fieldPath = fmt.Sprintf("%s[%q]", path, name)
				}
				d.find(fieldPath, fieldOf(x, name), fieldOf(y, name), depth-1)
			}
			return
		}
	case []any:
		if y, ok := b.([]any); ok {
			for i := range max(len(x), len(y)) {
				d.find(fmt.Sprintf("%s[%d]", path, i), itemAt(x, i), itemAt(y, i), depth-1)
			}
			return
		}
	}
	if text(a, maxText) == text(b, maxText) {
		return
	}
	if d.count++; d.count == 1 {
		d.path, d.a, d.b = path, a, b
	}
}

// itemAt returns the item at a position of a list.
func itemAt(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return missing{}
}

// fieldOf returns a field of a map.
func fieldOf(m map[string]any, name string) any {
	if v, ok := m[name]; ok {
		return v
	}
	return missing{}
}

// around returns the texts of two values, cut to a width. For strings, it returns the part around the first difference.
func around(a, b any, width int) (string, string) {
	x, isText := a.(string)
	y, areTexts := b.(string)
	if !isText || !areTexts || len(x) <= width && len(y) <= width {
		return printable.Short(text(a, 4*width), width), printable.Short(text(b, 4*width), width)
	}
	start := 0
	for start < len(x) && start < len(y) && x[start] == y[start] {
		start++
	}
	for back := 0; start > 0 && (back < beforeFirst || !utf8.RuneStart(x[start])); back++ {
		start--
	}
	cut := func(s string) string {
		part := text(s[start:], 4*width)
		if start > 0 {
			part = "…" + part
		}
		return printable.Short(part, width)
	}
	return cut(x), cut(y)
}

// text returns the beginning of a value's JSON: at least the given number of bytes, if the JSON is that long.
func text(v any, bytes int) string {
	if v == (missing{}) {
		return "absent"
	}
	v = head(v, &bytes, maxDepth)
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return fmt.Sprint(v) // JSON can't represent NaN and the infinities
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// maxText is the number of bytes of a value's JSON that are compared.
const maxText = 64 << 10

// head returns the beginning of v, about as much as left bytes of JSON, with null for values below depth. It visits
// only that part, so that large values are cheap and values that contain themselves are safe.
func head(v any, left *int, depth int) any {
	if depth == 0 {
		return nil
	}
	switch t := v.(type) {
	case string:
		t = t[:min(len(t), max(*left, 0))]
		*left -= len(t)
		return t
	case map[string]any:
		out := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(t)) {
			if *left <= 0 {
				break
			}
			*left -= len(name) + len(`"":,`)
			out[name] = head(t[name], left, depth-1)
		}
		return out
	case []any:
		out := []any{}
		for i := 0; i < len(t) && *left > 0; i++ {
			*left -= len(`,`)
			out = append(out, head(t[i], left, depth-1))
		}
		return out
	}
	return v
}
