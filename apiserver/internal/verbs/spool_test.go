package verbs

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// A spool has what was added, in order, in memory and in its file; shared bytes do not count.
func TestSpool(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for _, test := range []struct {
		why    string
		parts  int
		shared bool
		spills bool
	}{
		{why: "nothing"},
		{why: "in memory", parts: 10},
		{why: "shared bytes stay where they are", parts: 40, shared: true},
		{why: "in a file, and the rest in memory", parts: 40, spills: true},
	} {
		var s spool
		var want, got bytes.Buffer
		for i := range test.parts {
			part := bytes.Repeat([]byte{byte(i)}, 1<<20)
			want.Write(part)
			require.NoError(t, s.add(part, test.shared), test.why)
		}
		require.Equal(t, test.spills, s.file != nil, test.why)
		require.EqualValues(t, want.Len(), s.size, test.why)
		require.NoError(t, s.writeTo(&got), test.why)
		require.True(t, bytes.Equal(want.Bytes(), got.Bytes()), test.why)
		require.NoError(t, s.close(), test.why)
	}
}
