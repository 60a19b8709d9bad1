package fieldpath_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// naiveParse decodes a FieldsV1 the slow way: token by token, and element by element.
// errRare says that it does not know.
func naiveParse(data []byte, leniency fieldpath.Leniency) (*fieldpath.Set, error) {
	if len(bytes.Trim(data, " \t\r\n")) == 0 && leniency == fieldpath.Lenient {
		return nil, nil
	}
	if !json.Valid(data) {
		return nil, errors.New("no JSON")
	}
	set, _, err := naiveObject(json.NewDecoder(bytes.NewReader(data)), leniency == fieldpath.Lenient)
	return set, err
}

var errRare = errors.New("a key that only lenient decoders accept")

func naiveObject(tokens *json.Decoder, lenient bool) (set *fieldpath.Set, member bool, err error) {
	begin, err := tokens.Token()
	if err != nil || begin == nil {
		return nil, true, err
	}
	if begin != json.Delim('{') {
		return nil, false, fmt.Errorf("expected an object, got %v", begin)
	}
	var b fieldpath.Builder
	seen := map[string]bool{}
	for tokens.More() {
		token, err := tokens.Token()
		if err != nil {
			return nil, false, err
		}
		name := token.(string)
		e, err := fieldpath.ParseElement(name)
		if err != nil && (name == "." || strings.Contains(err.Error(), "unknown kind of member") && lenient) {
			var value any
			if err := tokens.Decode(&value); err != nil {
				return nil, false, err
			}
			if name == "." && seen[name] && !lenient {
				return nil, false, fmt.Errorf("duplicate")
			}
			seen[name] = true
			continue
		}
		if err != nil && lenient && strings.HasPrefix(name, "k:") {
			return nil, false, errRare
		}
		if err != nil {
			return nil, false, err
		}
		id := fmt.Sprint(e.Kind(), e.Text())
		if seen[id] && !lenient {
			return nil, false, fmt.Errorf("duplicate %s", name)
		}
		seen[id] = true
		sub, member, err := naiveObject(tokens, lenient)
		if err != nil {
			return nil, false, err
		}
		b.Add(e, member, sub)
	}
	_, err = tokens.Token() // }
	set = b.Set()
	return set, set == nil || seen["."], err
}

// outcome is what a decoder answers.
func outcome(set *fieldpath.Set, err error) string {
	if err != nil {
		return err.Error()
	}
	return string(set.AppendJSON(nil))
}

// requireWarm decodes data several times, each time with more of it in the tables
// of common parts and in a cache, and requires the same answer each time; and the
// naive one, where there is one.
func requireWarm(t *testing.T, data []byte) {
	t.Helper()
	fieldpath.ForgetCommon()
	cache := fieldpath.NewCache(64 << 10)
	var first [2]string
	for round := range 5 {
		for i, leniency := range []fieldpath.Leniency{fieldpath.Lenient, fieldpath.Strict} {
			set, err := fieldpath.Parse(data, leniency)
			require.NoError(t, fieldpath.CheckInvariants(set))
			got := outcome(set, err)
			if round == 0 {
				first[i] = got
				if want, naiveErr := naiveParse(data, leniency); utf8.Valid(data) && naiveErr != errRare &&
					!strings.Contains(got, "nested deeper than") { // which is not naive
					require.Equal(t, naiveErr == nil, err == nil, "the naive one says %v, Parse %v", naiveErr, err)
					require.True(t, want.Equal(set))
				}
			}
			require.Equal(t, first[i], got, "round %d", round)
		}
		cached, err := cache.Parse(data)
		require.Equal(t, first[0], outcome(cached, err), "round %d", round)
	}
	var tree map[string]any
	if json.Unmarshal(data, &tree) != nil {
		return
	}
	for _, leniency := range []fieldpath.Leniency{fieldpath.Lenient, fieldpath.Strict} {
		fieldpath.ForgetCommon()
		cold := outcome(fieldpath.FromTree(tree, leniency))
		for range 3 {
			_, _ = fieldpath.Parse(data, leniency)
			require.Equal(t, cold, outcome(fieldpath.FromTree(tree, leniency)))
		}
	}
}

func TestWarm(t *testing.T) {
	for _, c := range decodeCases {
		if len(c.in) <= maxFuzz {
			t.Run(c.name, func(t *testing.T) { requireWarm(t, []byte(c.in)) })
		}
	}
	t.Run("Pod", func(t *testing.T) { requireWarm(t, []byte(podFields)) })
}

func FuzzWarm(f *testing.F) {
	for _, c := range decodeCases {
		if len(c.in) <= maxFuzz {
			f.Add([]byte(c.in))
		}
	}
	f.Add([]byte(podFields))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) <= maxFuzz {
			requireWarm(t, data)
		}
	})
}

// TestCommonNames decodes names that are written alike, but mean different things
// in JSON and in a tree.
func TestCommonNames(t *testing.T) {
	for _, c := range []struct{ why, written, json, tree string }{
		{"an escape, and a backslash", `f:a\u0041`, `f:aA`, `f:a\u0041`},
		{"an escape, and two characters", `f:a\n`, "f:a\n", `f:a\n`},
		{"no JSON", "f:a\x00", "", "f:a\x00"},
		{"no JSON at all", `f:a"`, "", `f:a"`},
		{"the usual", "f:a", "f:a", "f:a"},
	} {
		fieldpath.ForgetCommon()
		for range 4 {
			set, err := fieldpath.FromTree(map[string]any{c.written: nil}, fieldpath.Strict)
			require.NoError(t, err)
			require.True(t, set.Has(fieldpath.Fields(c.tree[2:])), c.why)
			set, err = fieldpath.Parse([]byte(`{"`+c.written+`":{}}`), fieldpath.Strict)
			if c.json == "" {
				require.Error(t, err, c.why)
				continue
			}
			require.NoError(t, err)
			require.True(t, set.Has(fieldpath.Fields(c.json[2:])), c.why)
		}
	}
}

// TestCommonPartsAreCompared puts other things at the places of hashes: a hit needs more than an equal hash.
func TestCommonPartsAreCompared(t *testing.T) {
	const text = `{"f:a":{"f:name":{},"f:value":{}}}`
	fieldpath.ForgetCommon()
	fieldpath.PlantCommon("f:wrong", "f:a", `{"f:name":{},"f:wrong":{}}`, `{"f:name":{},"f:value":{}}`)
	for range 4 {
		set, err := fieldpath.Parse([]byte(text), fieldpath.Lenient)
		require.NoError(t, err)
		require.Equal(t, text, string(set.AppendJSON(nil)))
	}
	fieldpath.ForgetCommon()
}

// TestLimitsOfCommonParts requires the limits on depth to be what they are whether
// the innermost parts are common or not.
func TestLimitsOfCommonParts(t *testing.T) {
	for range 4 {
		for depth := fieldpath.MaxDepth - 300; depth <= fieldpath.MaxDepth; depth += 100 {
			inner := deep(30, `{"f:b":{}}`) // 31 deep
			_, err := fieldpath.Parse([]byte(deep(depth-31, inner)), fieldpath.Lenient)
			require.NoError(t, err)
			_, err = fieldpath.Parse([]byte(deep(fieldpath.MaxDepth-30, inner)), fieldpath.Lenient)
			require.ErrorContains(t, err, "nested deeper than 1000")
		}
	}
}

// TestSmallSetOfLargeText requires a set to hold on to nothing but what it is made of.
func TestSmallSetOfLargeText(t *testing.T) {
	const large = 4 << 20
	before := heap()
	var sets []*fieldpath.Set
	for i := range 10 {
		text := fmt.Sprintf(`{"f:a%d":{},"k:{\"a\":\"%d\"}":{},"v:%d":{},"x:y":"%s"}`, i, i, i, strings.Repeat("x", large))
		set, err := fieldpath.Parse([]byte(text), fieldpath.Lenient)
		require.NoError(t, err)
		sets = append(sets, set)

		many := fmt.Sprintf(`{"f:b":{},"f:%d%s":{}}`, i, strings.Repeat("y", fieldpath.MaxElement/2))
		set, err = fieldpath.Parse([]byte(many), fieldpath.Lenient)
		require.NoError(t, err)
		sets = append(sets, set.Intersection(fieldpath.NewSet(fieldpath.Fields("b"))))
	}
	require.Less(t, int64(heap())-int64(before), int64(fieldpath.MaxElement/2))
	runtime.KeepAlive(sets)
}

// TestCommonPartsAreShared decodes two FieldsV1 that have parts in common.
func TestCommonPartsAreShared(t *testing.T) {
	fieldpath.ForgetCommon()
	const item = `{".":{},"f:name":{},"f:value":{}}`
	below := func(text string) *fieldpath.Set {
		var set *fieldpath.Set
		for range 3 {
			var err error
			set, err = fieldpath.Parse([]byte(text), fieldpath.Lenient)
			require.NoError(t, err)
		}
		_, set = set.At(fieldpath.Field("a"))
		return set
	}
	require.Same(t, below(`{"f:a":`+item+`}`), below(`{"f:a":`+item+`,"f:b":{}}`))
	want := below(`{"f:a":` + item + `}`)
	tree, err := fieldpath.FromTree(map[string]any{"f:a": map[string]any{".": nil, "f:value": nil, "f:name": nil}},
		fieldpath.Lenient)
	require.NoError(t, err)
	_, got := tree.At(fieldpath.Field("a"))
	require.Same(t, want, got, "whether it was text or a tree")
}
