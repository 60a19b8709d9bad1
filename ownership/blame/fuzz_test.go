package blame

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/ownership/internal/items"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// FuzzNew checks, for any object: the lines equal the output of sigs.k8s.io/yaml, if that is printable; parsing the
// lines of a value returns the value; the owners of each value equal the result of a naive search for every path of
// every entry; and no output can control a terminal or end a script.
func FuzzNew(f *testing.F) {
	for _, s := range []string{
		`{}`,
		`{"spec":{"a":1,"b":[],"c":{},"d":null,"e":[[1,[2]],{"x":[{"y":1}]}]}}`,
		`{"data":{"k":"line\n\nline\n","l":"\n lead","m":"trail\n\n","n":"` + strings.Repeat("word ",
			40) + `","o":"a\r\nb","p":"\u2028x","q":"\u001b[31m\u009b\u007f"}}`,
		`{"data":{"` + strings.Repeat("k", 130) + `":{"a":[1,{"b":2}]},"two\nlines":["x\ny",{"` + strings.Repeat("q",
			200) + `":[[1]]}],"? ":1,"'a":2,"\"":3,"<<":4,"a: b":5,"c:":6,"#":7,"- x":8," ":9,"":10,"~":11,"\u2028":12}}`,
		`{"data":{"k":"0\r","l":"a\r\nb\n"}}`,
		`{"a":["` + strings.Repeat("word ", 40) + `","|","- a","x\ny\n",[],{},[{}],["a\nb"]]}`,
		`{"spec":{"l":[{"name":"a","v":1},{"name":"a"},{"name":"b","port":80},{"port":80,"protocol":"TCP"},3],
			"s":["a","b","a",1,1.5,true,null]},"metadata":{"managedFields":[
			{"manager":"m","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{
			"f:l":{"k:{\"name\":\"a\"}":{".":{},"f:v":{}},"k:{\"port\":80}":{},
			"k:{\"port\":80,\"protocol\":\"TCP\"}":{"f:port":{}},"i:4":{}},"f:s":{"v:\"a\"":{},"v:1":{},"v:null":{}}}}},
			{"manager":"n\u001b]0;x\u0007\u202e</script>","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1",
			"fieldsV1":{"f:spec":{".":{},"f:l":{},"f:gone":{"f:x":{}}}}},
			{"manager":"broken"},7]}}`,
		`{"spec":{"l":[{"name":"a","v":[1]},{"name":"a","v":{"w":1}}]},"metadata":{"managedFields":[
			{"manager":"m","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{
			"f:l":{"k:{\"name\":\"a\"}":{}}}}}]}}`,
		`{"metadata":{"managedFields":{},"name":"</script><img src=x onerror=alert(1)>"}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var obj map[string]any
		if utiljson.Unmarshal(data, &obj) != nil {
			return
		}
		before, err := json.Marshal(obj)
		require.NoError(t, err)
		o := Options{Now: time.Unix(1700000000, 0), ManagedFields: len(data)%2 == 0}
		r, err := New(obj, o)
		shown := obj
		if metadata, ok := obj["metadata"].(map[string]any); ok && !o.ManagedFields {
			shown, metadata = maps.Clone(obj), maps.Clone(metadata)
			delete(metadata, "managedFields")
			shown["metadata"] = metadata
		}
		want, cannot := yaml.Marshal(shown)
		if err != nil {
			require.Error(t, cannot, "kubectl can print it, but %v", err)
			return
		}
		// kubectl prints the name << without quotes, which would be read as a merge key.
		if cannot == nil && printable.Lines(string(want)) == string(want) && !bytes.Contains(data, []byte("<<")) {
			require.Equal(t, string(want), yamlOf(r), "as kubectl prints it")
		}
		after, err := json.Marshal(obj)
		require.NoError(t, err)
		require.JSONEq(t, string(before), string(after), "the object was changed")
		checkLines(t, r)

		root, err := lay(shown, []byte(yamlOf(r)))
		require.NoError(t, err)
		checkLayout(t, root, r)
		checkOwners(t, root, obj)

		var text bytes.Buffer
		require.NoError(t, Text(&text, nil, r))
		require.True(t, utf8.Valid(text.Bytes()))
		require.Equal(t, printable.Lines(text.String()), text.String())
	})
}

// checkLines checks that the lines are numbered, and that each shows a field.
func checkLines(t *testing.T, r *Report) {
	for i, line := range r.Lines {
		require.Equal(t, i+1, line.Number)
		require.True(
			t,
			len(line.Fields) > 0 || len(r.Lines) == 1 && line.Text == "{}",
			"line %d shows nothing: %q",
			i+1,
			line.Text,
		)
		for _, f := range line.Fields {
			require.Equal(t, f.State == Owned || f.State == Whole, len(f.Owners) > 0)
			require.NotEmpty(t, f.Kind)
		}
	}
}

// checkLayout parses the lines of every node, and compares the result with the node's value.
func checkLayout(t *testing.T, root *node, r *Report) {
	var visit func(n *node, col int)
	visit = func(n *node, col int) {
		var lines []string
		for _, line := range r.Lines[n.first : n.last+1] {
			lines = append(lines, line.Text[min(col, len(line.Text)):])
		}
		var want any = []any{n.value}
		_, item := n.parent.value.([]any)
		if !item {
			want = map[string]any{n.elem.Text(): n.value}
		}
		got, err := yaml.YAMLToJSON([]byte(strings.Join(lines, "\n") + "\n"))
		if err == nil { // fragments may be invalid YAML on their own
			data, err := json.Marshal(want)
			require.NoError(t, err)
			require.JSONEq(t, string(data), string(got), "%s", n.path())
		}
		inline := item || strings.HasPrefix(lines[0], "? ")
		_, list := n.value.([]any)
		for _, child := range n.children {
			if inline || !list {
				visit(child, col+2)
			} else {
				visit(child, col)
			}
		}
	}
	for _, child := range root.children {
		visit(child, 0)
	}
}

// checkOwners compares the result of attribute with a search for each path of each entry.
func checkOwners(t *testing.T, root *node, obj map[string]any) {
	metadata, _ := obj["metadata"].(map[string]any)
	list, _ := metadata["managedFields"].([]any)
	var r Report
	cursors := r.decode(any(list), time.Time{})
	r.attribute(root, nil, cursors)

	want, twice := map[*node][]int{}, map[*node][]int{}
	for i, c := range cursors {
		lost := 0
		for path := range c.below.All() {
			found := search(root, path)
			for _, n := range found {
				if !slices.Contains(want[n], i) {
					want[n] = append(want[n], i)
				}
				isTwice := c.below.Leaves().Has(path) && len(selected(n.parent, path[len(path)-1])) > 1
				if isTwice && !slices.Contains(twice[n], i) {
					twice[n] = append(twice[n], i)
				}
			}
			several := false // the path leads through duplicate items
			for i := range path {
				several = several || len(search(root, path[:i])) > 1
			}
			if len(found) == 0 && !several {
				lost++
			}
		}
		require.Equal(t, lost, r.Entries[i].AbsentCount, "paths of entry %d that lead nowhere", i)
	}
	var visit func(n *node, whole []int)
	visit = func(n *node, whole []int) {
		switch {
		case n.state == Owned:
			require.Equal(t, want[n], n.entries, "%s", n.path())
		case len(whole) > 0:
			require.Equal(t, Whole, n.state, "%s", n.path())
			require.Equal(t, whole, n.entries, "%s", n.path())
		default:
			require.NotEqual(t, Whole, n.state, "%s", n.path())
		}
		if n.state != Owned {
			require.Empty(t, want[n], "%s", n.path())
		}
		switch {
		case n.kind == Atomic && n.state == Owned:
			whole = n.entries
		case len(twice[n]) > 0:
			whole = twice[n]
		}
		for _, child := range n.children {
			visit(child, whole)
		}
	}
	visit(root, nil)
}

// search is the naive twin of attribute: it visits every child of every node that a path leads through.
func search(n *node, path fieldpath.Path) []*node {
	if len(path) == 0 {
		return []*node{n}
	}
	var found []*node
	for _, child := range selected(n, path[0]) {
		found = append(found, search(child, path[1:])...)
	}
	return found
}

// selected returns the children of n that an element selects.
func selected(n *node, e fieldpath.Element) []*node {
	var out []*node
	_, list := n.value.([]any)
	key, isKey := e.Key()
	if list && isKey {
		return selectedByKey(n, key)
	}
	for i, child := range n.children {
		name, isField := e.Field()
		index, isIndex := e.Index()
		_, isValue := e.Value()
		if !list && isField && name == child.elem.Text() || list && isIndex && index == i ||
			list && isValue && items.IsScalar(child.value) && fieldpath.ValueElement(child.value).Equal(e) {
			out = append(out, child)
		}
	}
	return out
}

func selectedByKey(n *node, key []fieldpath.KeyField) []*node {
	var best []*node
	most := 0
	for _, child := range n.children {
		m, _ := child.value.(map[string]any)
		has, fits := 0, true
		for _, f := range key {
			v, ok := m[f.Name]
			if ok && items.IsScalar(v) {
				has++
				fits = fits && fieldpath.ValueElement(v).Equal(fieldpath.ValueElement(f.Value))
			}
		}
		if !fits || has == 0 || has < len(key) && len(key) > 4 || has < most {
			continue
		}
		if has > most {
			best, most = nil, has
		}
		best = append(best, child)
	}
	return best
}

func yamlOf(r *Report) string {
	var b strings.Builder
	for _, line := range r.Lines {
		b.WriteString(line.Text + "\n")
	}
	return b.String()
}
