package custom

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	kjson "sigs.k8s.io/json"

	"k8s.io/client-go/util/jsonpath"
)

// A path finds what client-go finds, in the order of names where that finds it in any.
func TestJSONPath(t *testing.T) {
	var tree map[string]any
	require.NoError(t, kjson.UnmarshalCaseSensitivePreserveInts([]byte(`{"spec":{"a":"x","n":3,"f":1.5,"b":true,
		"none":null,"empty":"",
		"list":[{"type":"Ready","status":"True","n":1},{"type":"Other","n":2},{"n":3,"deep":{"a":[{"a":"y"}]}}],
		"names":["p","q","r","s"],"map":{"k.l":"dots","x":{"a":1},"y":{"a":2}}}}`), &tree))
	for _, path := range []string{
		".spec.a", ".spec.n", ".spec.f", ".spec.b", ".spec.none", ".spec.nowhere", ".spec.a.below", ".spec.none.below", ".",
		".spec",
		".spec.list[0].type", ".spec.list[-1].n", ".spec.list[7].n", ".spec.list[*].n", ".spec.list[0:2].n",
		".spec.list[::2].n", ".spec.list[1:].n",
		".spec.list[:-1].n", ".spec.list[2:1]", ".spec.list[1:1]", ".spec.a[0]", ".spec.none[0]", ".spec.names[0,2]",
		".spec.names[-2:]",
		`.spec.list[?(@.type=="Ready")].status`, `.spec.list[?(@.type)].n`, `.spec.list[?(@.n>1)].n`,
		`.spec.list[?(@.n>=2)].n`, `.spec.list[?(@.n<2)].n`,
		`.spec.list[?(@.n<=2)].n`, `.spec.list[?(@.n!=2)].n`, `.spec.list[?(@.type>1)].n`, `.spec.list[?(@.deep..a)].n`,
		`.spec.map[?(@.a)]`,
		".spec.map.*.a", ".spec..a", ".spec..a..a", "..a", ".spec.map..*", `.spec.map.k\.l`, ".spec['a','n']",
		".spec.names.*", ".spec.list[0:9].n",
		".spec.none[*]", ".spec.empty..a", "..",
	} {
		t.Run(path, func(t *testing.T) {
			upstream := jsonpath.New("").AllowMissingKeys(true)
			parseErr := upstream.Parse("{" + path + "}")
			p, err := parseJSONPath("", path)
			require.Equal(t, parseErr == nil, err == nil)
			if err != nil {
				return
			}
			found, wantErr := upstream.FindResults(tree)
			visits := maxVisits
			got, err := p.find(tree, &visits)
			require.Equal(t, wantErr == nil, err == nil, "expected %v, got %v", wantErr, err)
			if err != nil {
				return
			}
			var want, have []string
			for _, v := range found[0] {
				want = append(want, fmt.Sprintf("%T %[1]v", v.Interface()))
			}
			for _, v := range got {
				have = append(have, fmt.Sprintf("%T %[1]v", v))
			}
			if strings.Contains(path, "..") || strings.Contains(path, "*") {
				slices.Sort(want)
				slices.Sort(have)
			}
			require.Equal(t, want, have)
		})
	}
}

// A path does not visit more than it may, however it multiplies what it finds.
func TestJSONPathVisits(t *testing.T) {
	var tree any = "leaf"
	for range 120 {
		tree = map[string]any{"a": tree}
	}
	list := slices.Repeat([]any{map[string]any{"a": tree}}, 1_000)
	for _, row := range []struct{ path, why string }{
		{"..a..a..a..a", "each step finds all below what the step before found"},
		{".list[?(@..a..a..a)]", "in conditions as well"},
		{"['list','list'][*]..a..a", "unions"},
	} {
		p, err := parseJSONPath("", row.path)
		require.NoError(t, err)
		visits := maxVisits
		_, err = p.find(map[string]any{"a": tree, "list": list}, &visits)
		require.ErrorIs(t, err, errVisits, row.why)
	}
	p, err := parseJSONPath("", ".a.a.a")
	require.NoError(t, err)
	visits := maxVisits
	_, err = p.find(tree, &visits)
	require.NoError(t, err)
	require.Greater(t, visits, maxVisits-20, "a plain path visits its steps")
}
