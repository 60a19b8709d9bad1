package oracle

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// oddEntries returns managed fields as a client may have edited them: most of them
// can be decoded, but are not as a server writes them.
func (g *Gen) oddEntries(list []any) []any {
	list = runtime.DeepCopyJSONValue(list).([]any)
	for range 1 + g.Intn(2) {
		e, _ := list[g.Intn(len(list))].(map[string]any)
		switch g.Intn(8) {
		case 0:
			twin := maps.Clone(e)
			twin["fieldsV1"] = map[string]any{"f:metadata": map[string]any{"f:labels": map[string]any{}}}
			list = append(list, twin)
		case 1:
			slices.Reverse(list)
		case 2:
			e["time"] = []any{
				"2199-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "2026-01-02T03:04:05.5Z", "2026-01-02T03:04:05+02:00", nil,
			}[g.Intn(5)]
		case 3:
			e["subresource"] = []any{"", "status", nil}[g.Intn(3)]
		case 4:
			e["more"] = "x"
		case 5:
			e["apiVersion"] = group + "/" + Versions[g.Intn(2)]
		case 6:
			e["operation"] = []any{"Apply", "Update"}[g.Intn(2)]
		default:
			fields, _ := e["fieldsV1"].(map[string]any)
			g.oddFields(fields)
		}
	}
	return list
}

// oddFields changes how a FieldsV1 is written, and a little of what it says.
func (g *Gen) oddFields(fields map[string]any) {
	for _, name := range sortedKeys(fields) {
		below, _ := fields[name].(map[string]any)
		switch {
		case len(below) > 0 && !g.Chance(3):
			g.oddFields(below)
		case name == ".":
			if g.Chance(2) {
				delete(fields, name)
			}
		case g.Chance(2):
			if below == nil {
				continue
			}
			below["."] = map[string]any{}
		default:
			member := []string{
				"f:z", "x:z", `k:{"n": "a"}`, `k:{"p":1.0,"n":"a"}`, "v:7.0", `v:"\u007a"`, "i:007", "v: 8",
			}[g.Intn(8)]
			fields[member] = []any{
				map[string]any{}, map[string]any{".": map[string]any{}}, map[string]any{"f:y": map[string]any{}},
			}[g.Intn(3)]
		}
	}
}
