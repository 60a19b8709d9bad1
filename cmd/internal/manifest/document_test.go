package manifest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSplit(t *testing.T) {
	for _, row := range []struct {
		name string // why the row is there
		text string
		want []string // number@line place: value or error
	}{
		{"nothing", "", nil},
		{"only comments and markers", "# a\n---\n# b\n---\n...\n", nil},
		{"byte order mark and carriage returns", "\ufeffa: 1\r\n---\r\nb: 2\r\n",
			[]string{"1@1: map[a:1]", "2@3: map[b:2]"}},
		{"a marker in a block is text", "a: |\n  ---\n  b\n", []string{"1@1: map[a:---\nb\n]"}},
		{"what looks like a marker", "a: 1\n---b: 2\n", []string{"1@1: map[---b:2 a:1]"}},
		{"content behind a marker", "--- {a: 1}\n--- # c\nb: 2\n", []string{"1@1: map[a:1]", "2@3: map[b:2]"}},
		{"the end of a document", "a: 1\n...\nb: 2\n", []string{"1@1: map[a:1]", "2@3: map[b:2]"}},
		{"JSON values in a row", "{\"a\": 1}\n {\"b\": 2}{\"c\": 3}",
			[]string{"1@1: map[a:1]", "2@2: map[b:2]", "3@2: map[c:3]"}},
		{"JSON between markers", "{\"a\": 1}\n---\nb: 2\n---\n{\"c\": 3}",
			[]string{"1@1: map[a:1]", "2@3: map[b:2]", "3@5: map[c:3]"}},
		{"flow YAML begins like JSON", "{a: 1}", []string{"1@1: map[a:1]"}},
		{"the lines of errors are those of the file", "a: 1\n---\n\nb: 2\nc: [\n",
			[]string{"1@1: map[a:1]", "2@4: not YAML: line 5: did not find expected node content"}},
		{"a list of lists", "kind: List\nitems:\n- {kind: List, items: [{a: 1}]}\n- {b: 2}\n",
			[]string{"1@1 .items[0].items[0]: map[a:1]", "1@1 .items[1]: map[b:2]"}},
		{"a list that is not whole", "kind: List\nitems:\n- {a: 1}\n- {kind: List, items: [3]}\n",
			[]string{"1@1 .items[1].items[0]: expected an object, got a number"}},
		{"items inherit the kind of their list", "kind: PodList\napiVersion: v1\nitems: [{a: 1}, {kind: Other}]\n",
			[]string{"1@1 .items[0]: map[a:1 apiVersion:v1 kind:Pod]", "1@1 .items[1]: map[kind:Other]"}},
		{"a kind that ends in List", "kind: AllowList\nmetadata: {name: a}\nitems: [3]\n",
			[]string{"1@1: map[items:[3] kind:AllowList metadata:map[name:a]]"}},
		{"an empty List", "kind: List\n", nil},
		{"a List without items", "kind: List\nitems: null\n", nil},
		{"a List of no list", "kind: List\nitems: {a: 1}\n", []string{"1@1: .items: expected a list, got an object"}},
		{"a List of no list in a list", "kind: List\nitems: [{kind: List, items: x}]\n",
			[]string{"1@1 .items[0]: .items: expected a list, got a string"}},
		{"a number that is too large", `{"a": 1e999}`,
			[]string{"1@1: not JSON: json: cannot unmarshal number 1e999 into Go value of type float64"}},
		{"a number that JSON has not", "a: .inf", []string{"1@1: not YAML: json: unsupported value: +Inf"}},
		{"JSON that ends early", `{"a": `, []string{"1@1: not JSON: unexpected EOF"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var got []string
			for _, doc := range Split("f", []byte(row.text)) {
				s := fmt.Sprintf("%d@%d", doc.number, doc.line)
				if doc.item != "" {
					s += " " + doc.item
				}
				if doc.Err != nil {
					got = append(got, fmt.Sprintf("%s: %v", s, doc.Err))
				} else {
					got = append(got, fmt.Sprintf("%s: %v", s, doc.Tree))
				}
			}
			require.Equal(t, row.want, got)
		})
	}
}
