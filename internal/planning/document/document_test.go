package document

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPacked(t *testing.T) {
	whole := func() map[string]any {
		return map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": int64(1), "b": 1.5, "c": nil},
			"metadata": map[string]any{"name": "c", "namespace": "n", "labels": map[string]any{"a": "b"}},
		}
	}
	packed := Document{Source: "f", Tree: whole()}.Packed()
	require.Equal(t, map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c", "namespace": "n"},
	}, packed.Tree)
	require.Equal(t, packed, packed.Packed())
	require.Equal(t, Document{Source: "f", Tree: whole()}, packed.Unpacked())

	for _, row := range []struct {
		why string
		doc Document
	}{
		{"an error", Document{Err: errors.New("no file")}},
		{"metadata that is none", Document{Tree: map[string]any{"metadata": "x", "spec": int64(1)}}},
		{"nothing that identifies it", Document{Tree: map[string]any{"spec": int64(1)}}},
	} {
		require.Equal(t, row.doc, row.doc.Packed().Unpacked(), row.why)
	}
}
