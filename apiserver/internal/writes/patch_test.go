package writes

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// randomValue returns a random JSON value.
func randomValue(r *rand.Rand) string {
	values := []string{`null`, `1`, `-0`, `1e400`, `""`, `"a"`, `true`, `{}`, `[]`, `[null]`, `[1]`, `["a"]`, `{"a":null}`,
		`{"a":1}`, `{"a":{"b":[null,{"a":1}]}}`, `[[1],[null]]`, `[{"a":null},1,"x"]`, `{"":1}`, `{"a/b":{"c~d":1}}`}
	return values[r.IntN(len(values))]
}

func randomPath(r *rand.Rand) string {
	if r.IntN(8) == 0 {
		return []string{"", "/", "a", "//", "/-1", "#/a"}[r.IntN(6)]
	}
	parts := []string{"a", "b", "a", "list", "none", "", "0", "1", "2", "-", "-1", "-2", "-9", "99", "01", "a~1b", "c~0d",
		"~", "~2", "9999999999999999999"}
	var out strings.Builder
	for range 1 + r.IntN(4) {
		out.WriteString("/" + parts[r.IntN(len(parts))])
	}
	return out.String()
}

// randomPatch returns random operations. Some have members that are missing, null or of a wrong type.
func randomPatch(r *rand.Rand) string {
	var ops []string
	for range 1 + r.IntN(5) {
		if r.IntN(40) == 0 {
			ops = append(ops, randomValue(r))
			continue
		}
		var members []string
		for _, name := range []string{"op", "path", "from", "value"} {
			text := randomValue(r)
			switch n := r.IntN(20); {
			case n == 0:
				continue
			case n == 1:
			case name == "op":
				text = `"` + []string{"add", "remove", "replace", "move", "copy", "test", "Add"}[r.IntN(7)] + `"`
			case name == "path", name == "from":
				text = fmt.Sprintf("%q", randomPath(r))
			}
			members = append(members, fmt.Sprintf("%q:%s", name, text))
		}
		ops = append(ops, "{"+strings.Join(members, ",")+"}")
	}
	return "[" + strings.Join(ops, ",") + "]"
}

// applyAsUpstream applies a patch as kube-apiserver does, and recovers from panics.
func applyAsUpstream(patch, before []byte) (after []byte, panicked bool, err error) {
	defer func() {
		if recover() != nil {
			after, panicked = nil, true
		}
	}()
	decoded, err := jsonpatch.DecodePatch(patch)
	if err == nil {
		after, err = decoded.Apply(before)
	}
	return after, false, err
}

// checkPatch checks that a patch gives kube-apiserver's result or error, or an error if kube-apiserver panics.
func checkPatch(t *testing.T, body, before []byte) (panicked bool) {
	t.Helper()
	want, panicked, wantErr := applyAsUpstream(body, before)
	patch, err := jsonpatch.DecodePatch(body)
	if err != nil {
		return false
	}
	got, err := applyOperations(patch, before)
	switch {
	case panicked:
		require.Error(t, err, "%s to %s: %s", body, before, got)
	case wantErr != nil:
		require.EqualError(t, err, wantErr.Error(), "%s to %s", body, before)
	default:
		require.NoError(t, err, "%s to %s", body, before)
		require.Equal(t, string(want), string(got), "%s to %s", body, before)
	}
	return panicked
}

const patched = `{"a":{"a":1,"b":[1,null,{"a":null}]},"b":null,"list":[null,"a",[null]],"a/b":{"c~d":1}}`

// FuzzJSONPatch compares the results of patches with the library, as kube-apiserver calls it.
func FuzzJSONPatch(f *testing.F) {
	for _, body := range []string{
		`[{"op":"replace","path":""},{"op":"add","path":"/","value":null}]`, `[{"op":"test","path":""}]`,
		`[{"op":"replace","path":"","value":null},{"op":"add","path":"/a","value":1}]`, `[null]`,
		`[{"op":"test","path":"/list","value":["b","a",[null]]}]`, `[{"op":"remove","path":""}]`,
		`[{"op":"add","path":"/n","value":null},{"op":"copy","from":"/n","path":"/m"},{"op":"add","path":"/m/x","value":1}]`,
	} {
		f.Add([]byte(body), []byte(patched))
	}
	f.Fuzz(func(t *testing.T, body, before []byte) {
		if json.Valid(before) {
			checkPatch(t, body, before)
		}
	})
}

// TestRandomJSONPatches is FuzzJSONPatch with patches that are close to valid ones.
func TestRandomJSONPatches(t *testing.T) {
	panics := 0
	for seed := range uint64(30_000) {
		if checkPatch(t, []byte(randomPatch(rand.New(rand.NewPCG(seed, 1)))), []byte(patched)) {
			panics++
		}
	}
	require.NotZero(t, panics, "patches that the library can't take")
}

// TestPatchOfWholeDocument checks that a missing value is treated as null, for which the library has an error.
func TestPatchOfWholeDocument(t *testing.T) {
	for op, want := range map[string]string{
		"replace": "replace operation value must be object or array: %!w(<nil>)",
		"test":    "testing value  failed: test failed",
	} {
		patch, err := jsonpatch.DecodePatch([]byte(`[{"op":"` + op + `","path":""}]`))
		require.NoError(t, err)
		_, err = applyOperations(patch, []byte(patched))
		require.EqualError(t, err, want)
	}
}

// TestPathsOfPatches checks that a long path into a large object is rejected: it would copy the object once for each
// level.
func TestPathsOfPatches(t *testing.T) {
	large := `{"x":"` + strings.Repeat("x", 1<<20) + `"}`
	for levels, refused := range map[int]bool{25: false, 900: true} {
		before := strings.Repeat(`{"a":`, levels) + large + strings.Repeat("}", levels)
		for _, op := range []string{`{"op":"add","path":"%s/b","value":1}`, `{"op":"copy","from":"%s/x","path":"/y"}`} {
			patch, err := jsonpatch.DecodePatch([]byte("[" + fmt.Sprintf(op, strings.Repeat("/a", levels)) + "]"))
			require.NoError(t, err)
			err = checkPaths(patch, len(before))
			require.Equal(t, refused, apierrors.IsRequestEntityTooLargeError(err), "%d levels: %v", levels, err)
		}
	}
}
