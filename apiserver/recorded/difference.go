package recorded

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var generatedText = []*regexp.Regexp{
	regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`),
	regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`),
	regexp.MustCompile(`(resourceVersion\\?"?: ?\\?"?|in record \(|resource version: |` +
		`current: |too old resource version: \d+ \()\d+`),
	regexp.MustCompile(`gen-[a-z0-9]{5}\b`),
	regexp.MustCompile(`\b[0-9A-F]{128}\b`),
	regexp.MustCompile(`\b10\.\d+\.\d+\.\d+\b`),
}

// Generic replaces generated values in a text by #.
func Generic(s string) string {
	for _, re := range generatedText {
		s = re.ReplaceAllStringFunc(s, func(m string) string {
			if i := strings.LastIndexAny(m, `:("`); i >= 0 && !strings.Contains(m, "T") {
				return m[:i+1] + "#"
			}
			return "#"
		})
	}
	return s
}

// Difference lists the differences between two JSON values, except for generated values, and stops after about a dozen.
// It remembers which generated value of this server corresponds to which recorded value.
func (r *Replayer) Difference(got, want any) []string { return r.difference("", got, want, nil) }

// CompareVersions returns a difference if only one of two servers wrote the object. got is the response of this server,
// and want is the response of the recorded server. A response with the resourceVersion of an earlier response shows
// that its server wrote nothing. If there is no difference, the result is "".
func (r *Replayer) CompareVersions(got, want map[string]any) string {
	ours := (&unstructured.Unstructured{Object: got}).GetResourceVersion()
	recorded := (&unstructured.Unstructured{Object: want}).GetResourceVersion()
	if ours == "" || recorded == "" {
		return ""
	}
	known, isKnown := r.versions[recorded]
	isOurs := slices.Contains(slices.Collect(maps.Values(r.versions)), ours)
	switch {
	case isKnown && known != ours:
		return "the object is written, and was not"
	case !isKnown && isOurs:
		return "the object is not written, and was"
	}
	return ""
}

func (r *Replayer) difference(path string, got, want any, out []string) []string {
	if len(out) > 12 {
		return out
	}
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return append(out, fmt.Sprintf("%s is %s, want %s", path, short(got), short(want)))
		}
		names := slices.AppendSeq(slices.Collect(maps.Keys(w)), maps.Keys(g))
		slices.Sort(names)
		for _, k := range slices.Compact(names) {
			gv, gok := g[k]
			wv, wok := w[k]
			switch {
			case !gok:
				out = append(out, fmt.Sprintf("%s.%s is missing, want %s", path, k, short(wv)))
			case !wok:
				out = append(out, fmt.Sprintf("%s.%s is %s, want none", path, k, short(gv)))
			default:
				out = r.difference(path+"."+k, gv, wv, out)
			}
		}
		return out
	case []any:
		g, ok := got.([]any)
		if !ok {
			return append(out, fmt.Sprintf("%s is %s, want a list", path, short(got)))
		}
		for i := range min(len(g), len(w)) {
			out = r.difference(fmt.Sprintf("%s[%d]", path, i), g[i], w[i], out)
		}
		if len(g) != len(w) {
			out = append(out, fmt.Sprintf("%s has %d items, want %d", path, len(g), len(w)))
		}
		return out
	case string:
		g, ok := got.(string)
		if ok && isAge(path, g) && isAge(path, w) {
			return out
		}
		if ok && r.generated(path, g, w) {
			return out
		}
		if r.sameClock && strings.Contains(path, ".managedFields[") {
			break
		}
		if ok && Generic(g) == Generic(w) {
			return out
		}
	}
	if !reflect.DeepEqual(got, want) {
		out = append(out, fmt.Sprintf("%s is %s, want %s", path, short(got), short(want)))
	}
	return out
}

// generated reports whether servers generate a value, and remembers which value of this server corresponds to the
// recorded value.
func (r *Replayer) generated(path, got, want string) bool {
	switch path[strings.LastIndexByte(path, '.')+1:] {
	case "resourceVersion":
		r.versions[want] = got
		return (got == "") == (want == "")
	case "uid", "clusterIP":
		r.uids[want] = got
		return (got == "") == (want == "")
	case "serverAddress":
		return (got == "") == (want == "")
	case "continue":
		if want != "" {
			r.tokens[want] = got
		}
		return (got == "") == (want == "")
	}
	return false
}

// isAge reports whether a value is the age of an object, such as 5s.
func isAge(path, value string) bool {
	return strings.Contains(path, ".cells[") && age.MatchString(value)
}

var age = regexp.MustCompile(`^(\d+[smhdy])+$`)

func short(v any) string {
	data, _ := json.Marshal(v)
	if len(data) > 400 {
		return string(data[:400]) + "…"
	}
	return string(data)
}
