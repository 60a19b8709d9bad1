package engine

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func environment(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

func TestModes(t *testing.T) {
	for text, want := range map[string]Mode{"": Tenure, "upstream": Upstream, "tenure": Tenure, "shadow": Shadow} {
		got, err := ModeFrom(environment(map[string]string{ModeVariable: text}))
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := New(environment(map[string]string{ModeVariable: "Shadow"}))
	require.EqualError(t, err, `TENURE_FIELD_MANAGEMENT is "Shadow": expected upstream, tenure or shadow`)
	e, err := New(environment(map[string]string{ModeVariable: "upstream"}))
	require.NoError(t, err)
	require.Nil(t, e, "nothing is registered")
	e, err = New(environment(nil))
	require.NoError(t, err)
	require.True(t, e.Answers())
	_, err = New(environment(map[string]string{ModeVariable: "shadow", "TENURE_SHADOW_RATE": "2"}))
	require.EqualError(t, err, `TENURE_SHADOW_RATE is "2": expected a number from 0 to 1`)
	e, err = New(environment(map[string]string{ModeVariable: "shadow", "TENURE_SHADOW_TRACES": t.TempDir()}))
	require.NoError(t, err)
	require.False(t, e.Answers(), "upstream answers")
}
