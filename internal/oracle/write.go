package oracle

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Manager returns the name of a manager, often the one that it returned before. An apply by kubectl also updates the
// last-applied annotation, if the object has one.
func (g *Gen) Manager() string {
	switch {
	case g.manager != "" && g.Chance(2):
	case g.managers > 0 && g.Chance(6):
		g.manager = fmt.Sprintf("m%d", g.Intn(g.managers))
	default:
		g.manager = []string{"kubectl", "ctl", "b", "hpa"}[g.Intn(4)]
	}
	return g.manager
}

// Metadata is the schema of the metadata in writes, without the name.
var Metadata = func() spec.Schema {
	words := schemaOf("object")
	words.AdditionalProperties = &spec.SchemaOrBool{Allows: true, Schema: new(schemaOf("string"))}
	owner := schemaOf("object")
	owner.Required = []string{"apiVersion", "kind", "name", "uid"}
	owner.Properties = map[string]spec.Schema{"controller": schemaOf("boolean")}
	for _, name := range owner.Required {
		owner.Properties[name] = schemaOf("string")
	}
	s := schemaOf("object")
	s.Properties = map[string]spec.Schema{
		"labels": words, "annotations": words, "finalizers": listOf(schemaOf("string"), "set"),
		"ownerReferences": extended(listOf(owner, "map"), "x-kubernetes-list-map-keys", []any{"uid"}),
	}
	return s
}()

// Intent makes an intent with some of the fields whose schemas are in the argument fields, by name. The values are new,
// or are edited copies of values in live or in last, the manager's last intent. live and last may be nil. Sometimes
// Intent returns last itself. If the object exists, the name, or all of metadata, is sometimes omitted.
func (g *Gen) Intent(last, live map[string]any, fields map[string]*spec.Schema) map[string]any {
	out := map[string]any{"metadata": map[string]any{"name": "thing"}}
	if last != nil && g.Chance(8) {
		return runtime.DeepCopyJSON(last) // even if the schema has changed since
	}
	how := g.Intn(6)
	for _, name := range sortedKeys(fields) {
		old, ok := last[name]
		if how == 5 || how > 2 && last == nil {
			old, ok = live[name]
		}
		switch {
		case how == 4 && ok:
			out[name] = g.lessItems(runtime.DeepCopyJSONValue(old))
		case how > 0 && ok:
			out[name] = g.Edit(old, fields[name], 0)
		case g.Intn(4) > 0:
			out[name] = g.Value(fields[name], 0)
		}
	}
	metadata := out["metadata"].(map[string]any)
	if how := g.Intn(8); how > 2 {
		old, _ := last["metadata"].(map[string]any)
		g.metadata(metadata, old, 0)
	} else if live != nil {
		switch how {
		case 1:
			delete(out, "metadata")
		case 2:
			out["metadata"] = nil
		}
	}
	if live != nil && g.Chance(6) {
		delete(metadata, "name")
	}
	return out
}

// Update returns live with random changes, as in an update.
func (g *Gen) Update(live map[string]any, fields map[string]*spec.Schema) map[string]any {
	out := map[string]any{"metadata": map[string]any{"name": "thing"}}
	if live != nil {
		out = runtime.DeepCopyJSON(live)
	}
	onlyDuplicates := g.Chance(8)
	for _, name := range sortedKeys(fields) {
		if old, ok := out[name]; ok && onlyDuplicates {
			out[name] = g.moreItems(old)
		} else if ok {
			out[name] = g.Edit(old, fields[name], 3)
		} else if g.Chance(2) {
			out[name] = g.Value(fields[name], 3)
		}
	}
	metadata, ok := out["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		out["metadata"] = metadata
	}
	if g.Chance(3) {
		g.metadata(metadata, metadata, 3)
	}
	return out
}

// lessItems returns v without some items of its lists, and without some fields of their content.
func (g *Gen) lessItems(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range sortedKeys(v) {
			v[name] = g.lessItems(v[name])
		}
	case []any:
		kept := v[:0]
		for i, item := range v {
			m, isMap := item.(map[string]any)
			switch {
			case i > 64 || g.Chance(2):
				kept = append(kept, item)
			case isMap && g.Chance(2):
				delete(m, []string{"a", "b", "c"}[g.Intn(3)])
				kept = append(kept, m)
			}
		}
		return kept
	}
	return v
}

// moreItems returns v with some items of its lists duplicated. It may change v.
func (g *Gen) moreItems(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range sortedKeys(v) {
			v[name] = g.moreItems(v[name])
		}
	case []any:
		out := slices.Clone(v)
		for range 1 + g.Intn(3) {
			if len(v) > 0 {
				item := runtime.DeepCopyJSONValue(v[g.below(len(v))])
				out = slices.Insert(out, g.below(len(out)+1), item)
			}
		}
		return out
	}
	return v
}

// metadata sets labels and similar fields in metadata, by editing old, which has some of them.
func (g *Gen) metadata(metadata, old map[string]any, dup int) {
	was, items := g.strict, g.items
	if g.strict = true; !g.Chance(5) {
		g.items = 0 // large lists are for the spec
	}
	defer func() { g.strict, g.items = was, items }()
	edited, schema := map[string]any{}, Metadata
	if g.served { // other metadata has a meaning in a cluster
		schema.Properties = map[string]spec.Schema{
			"labels": Metadata.Properties["labels"], "annotations": Metadata.Properties["annotations"],
		}
	}
	for name := range schema.Properties {
		if v, ok := old[name]; ok {
			edited[name] = v
		}
		delete(metadata, name)
	}
	if len(edited) == 0 {
		edited, _ = g.Value(&schema, dup).(map[string]any)
	} else {
		edited, _ = g.Edit(edited, &schema, dup).(map[string]any)
	}
	if maps.Copy(metadata, edited); g.served {
		return
	}
	// An accessor reads a null annotation as an empty string.
	if annotations, ok := metadata["annotations"].(map[string]any); ok && g.Chance(3) {
		annotations[g.name()] = nil
	} else if g.Chance(8) {
		metadata["annotations"] = nil
	}
}

func (g *Gen) write(w *World) Write {
	write := Write{
		Apply:   g.Intn(3) > 0 || w.Live == nil && g.Intn(2) == 1,
		Version: cmp.Or(w.only, g.version(w.versions())),
		Manager: g.Manager(),
		Force:   g.Intn(2) == 0,
	}
	if write.Version == w.gone {
		write.Version = Versions[0]
	}
	if w.Live != nil && g.Chance(6) && (w.defined == nil || w.defined.HasStatus) {
		write.Subresource = "status"
	}
	fields := w.fields(write.Version)
	if (g.Intn(3) != 0 || g.served) && write.Subresource == "" {
		delete(fields, "status")
	}
	if g.served && write.Subresource == "status" {
		maps.DeleteFunc(fields, func(name string, _ *spec.Schema) bool { return name != "status" })
	}
	var live map[string]any
	if w.Live != nil {
		live = w.Live.Object
	}
	var obj map[string]any
	if write.Apply {
		last := w.intents[write.Manager]
		if obj = last; last == nil || !w.retyped || g.Chance(2) {
			obj = g.Intent(last, live, fields)
		}
		w.intents[write.Manager] = obj
	} else {
		obj = g.Update(live, fields)
		g.editManagedFields(obj["metadata"].(map[string]any))
		if g.Chance(4) {
			g.lastApplied(w, obj)
		}
	}
	write.Object = &unstructured.Unstructured{Object: runtime.DeepCopyJSON(obj)}
	write.Object.SetGroupVersionKind(w.kind(write.Version))
	w.prune(write.Version, write.Object.Object)
	return write
}

// again returns a copy of write for another, similar object, w.Live: an update gets the managed fields of the object,
// and a write that creates the object gets a name.
func (w *World) again(write Write) Write {
	write.Object = write.Object.DeepCopy()
	metadata, isMap := write.Object.Object["metadata"].(map[string]any)
	if w.Live == nil {
		if !isMap {
			metadata = map[string]any{}
			write.Object.Object["metadata"] = metadata
		}
		metadata["name"] = "thing"
	}
	delete(metadata, "managedFields")
	if w.Live != nil && !write.Apply {
		if list := managedFields(w.Live.Object); len(list) > 0 {
			metadata["managedFields"] = list
		}
	}
	return write
}

// version chooses one of several versions, the first less often than the last.
func (g *Gen) version(versions []string) string {
	last := len(versions) - 1
	return versions[min(g.Intn(max(4, last+1)), last)]
}

// lastApplied adds to an updated object what client-side apply stores.
func (g *Gen) lastApplied(w *World, obj map[string]any) {
	version := g.version(w.versions())
	intent := map[string]any{
		"apiVersion": w.kind(version).GroupVersion().String(), "kind": w.kind(version).Kind,
		"metadata": map[string]any{"name": "thing"}, "spec": obj["spec"],
	}
	if s := w.fields(version)["spec"]; s != nil && g.Chance(3) {
		intent["spec"] = g.Value(s, 0)
	}
	metadata := obj["metadata"].(map[string]any)
	annotations, ok := metadata["annotations"].(map[string]any)
	if !ok || len(annotations) == 0 {
		annotations = map[string]any{}
		metadata["annotations"] = annotations
	}
	annotations["kubectl.kubernetes.io/last-applied-configuration"] = JSON(intent)
}

// editManagedFields edits managed fields in an update as clients do.
func (g *Gen) editManagedFields(metadata map[string]any) {
	list, _ := metadata["managedFields"].([]any)
	if g.odd && len(list) > 0 && g.Chance(3) {
		metadata["managedFields"] = g.oddEntries(list)
		return
	}
	if !g.Chance(6) {
		return
	}
	switch g.Intn(4) {
	case 0:
		delete(metadata, "managedFields")
	case 1:
		metadata["managedFields"] = []any{map[string]any{}}
	case 2:
		if len(list) > 1 || len(list) > 0 && !g.served { // servers treat an empty list differently
			metadata["managedFields"] = list[1:]
		}
	case 3:
		metadata["managedFields"] = []any{map[string]any{"manager": "x", "operation": "Wrong"}}
	}
}

// oddEntries returns managed fields as a client may have edited them: most can be decoded, but do not have the form
// that a server writes.
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

// oddFields changes the form of a FieldsV1, and a little of its content.
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
