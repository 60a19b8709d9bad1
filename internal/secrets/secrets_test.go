package secrets

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func secret(data map[string]any) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "a"}, "data": data}
}

// TestStandIns: stand-ins are equal if and only if their values are, also in base64, and have the type and the encoding
// of the value.
func TestStandIns(t *testing.T) {
	encode := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	long := strings.Repeat("long ", 100)
	in := secret(map[string]any{
		"a": encode("x"), "same": encode("x"), "other": encode("y"), "empty": "", "no base64": "%", "folded": "eA\n==",
		"number": int64(3), "list": []any{true, nil}, "long": encode(long),
	})
	in["stringData"] = map[string]any{"a": "x", "b": "b"}
	out := Shown(in)
	require.Equal(t, in["metadata"], out["metadata"])
	data, texts := out["data"].(map[string]any), out["stringData"].(map[string]any)
	require.Equal(t, data["a"], data["same"])
	require.NotEqual(t, data["a"], data["other"])
	require.Equal(t, data["a"], encode(texts["a"].(string)), "a server encodes stringData")
	require.Equal(t, "", data["empty"])
	_, err := base64.StdEncoding.DecodeString(data["no base64"].(string))
	require.Error(t, err)
	require.Equal(t, data["a"].(string)+"\n", data["folded"], "the same value, in another text")
	require.IsType(t, int64(0), data["number"])
	require.NotEqual(t, int64(3), data["number"])
	require.Equal(t, []any{true, nil}, data["list"])
	require.Len(t, data["long"], len(encode(long)))
	for name := range data {
		if text, ok := data[name].(string); ok && text != "" {
			require.Equal(t, "***", strings.TrimSuffix(ReplaceStandIns(text, "***"), "\n"), name)
		}
	}
	const like = "Kioq KioqYWJjZGVmZ2hpamtsbW5vcHFyc3Q= ***"
	require.Equal(t, like, ReplaceStandIns(like, "x"))

	configMap := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": "b"}}
	require.Equal(t, configMap, Shown(configMap))
}

// TestStandInsOfAnnotations: the last-applied annotation stays JSON, with the stand-ins of data, and stays canonical.
func TestStandInsOfAnnotations(t *testing.T) {
	in := secret(map[string]any{"a": "eA=="})
	canonical, err := json.Marshal(in)
	require.NoError(t, err)
	for _, row := range []struct {
		text        string
		isCanonical bool
	}{{string(canonical), true}, {string(canonical) + "\n", true}, {" " + string(canonical), false}} {
		in["metadata"] = map[string]any{"name": "a", "annotations": map[string]any{
			"kubectl.kubernetes.io/last-applied-configuration": row.text, "other": row.text}}
		out := Shown(in)
		annotations := out["metadata"].(map[string]any)["annotations"].(map[string]any)
		require.Regexp(t, `^\*\*\*[0-9a-f]+$`, annotations["other"])
		applied, text := map[string]any{}, annotations["kubectl.kubernetes.io/last-applied-configuration"].(string)
		require.NoError(t, json.Unmarshal([]byte(text), &applied))
		require.Equal(t, out["data"], applied["data"])
		again, err := json.Marshal(applied)
		require.NoError(t, err)
		require.Equal(t, row.isCanonical, string(again) == strings.TrimSuffix(text, "\n"))
	}

	// Without a kind it is still an object, so errors about it say what is missing.
	in["metadata"] = map[string]any{"annotations": map[string]any{lastApplied: `{"data":{"a":"eA=="}}`}}
	applied := Shown(in)["metadata"].(map[string]any)["annotations"].(map[string]any)[lastApplied]
	require.Regexp(t, `^\{"data":\{"a":"Kioq[0-9A-Za-z+/=]+"\}\}$`, applied)
}

func TestWithoutValues(t *testing.T) {
	in := secret(map[string]any{"long": "bG9uZyBwYXNzd29yZA==", "short": "YWI=", "number": int64(41)})
	for _, row := range []struct{ why, text, want string }{
		{"plain, and in base64", "long password bG9uZyBwYXNzd29yZA==", "*** ***"},
		{"a part of it", `data: "ng passwo..."`, `data: "***..."`},
		{"fewer characters than anybody could use", "passwd: word", "passwd: word"},
		{"a short value, where it is a word", "ab (ab) abc ab ab", "*** (***) abc *** ***"},
		{"a number", "expected a string, got 41", "expected a string, got ***"},
	} {
		require.Equal(t, row.want, WithoutValues(row.text, in), row.why)
	}

	// Names stay, although a value equals a word of them; a value that contains more than a name is hidden.
	in = secret(map[string]any{"helm": "aGVsbQ==", "data": "ZGF0YQ==", "v1": "djE=", "a": "b2YgU2VjcmV0ICJzIiBpcw=="})
	in["metadata"] = map[string]any{"name": "s", "managedFields": []any{
		map[string]any{"manager": "helm", "operation": "Update", "apiVersion": "v1"},
	}}
	for _, text := range []string{
		`secrets "s" is forbidden`, `Apply failed with 1 conflict: conflict with "helm" using v1: .data.helm`, "data[helm]",
		"Conflicts with data.helm.",
	} {
		require.Equal(t, text, WithoutValues(text, in))
	}
	require.Equal(t, `*** data[helm] is ***, ***, v11`, WithoutValues(`v1 data[helm] is helm, of Secret "s" is, v11`, in))

	require.Equal(t, "b", WithoutValues("b", map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": "b"}))
}
