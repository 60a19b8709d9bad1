package verbs

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// A spool has what was added, in order, in memory and in its file, which has no name.
func TestSpool(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	for _, test := range []struct {
		name, why string
		parts     int
		size      int
		spills    bool
	}{
		{name: "nothing", why: "a list may have no elements"},
		{name: "small", why: "one block", parts: 10, size: 1000},
		{name: "as large as the blocks", why: "a full block needs no other", parts: maxBlocks, size: blockSize},
		{name: "one more", why: "all before it go to the file", parts: maxBlocks + 1, size: blockSize, spills: true},
		{name: "large", why: "parts end in the middle of blocks", parts: 5000, size: 7001, spills: true},
		{name: "large parts", why: "a part is larger than a block", parts: 11, size: 3*blockSize + 5, spills: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var s spool
			var want, got bytes.Buffer
			part := make([]byte, test.size)
			for i := range test.parts {
				part = append(part[:0], bytes.Repeat([]byte{byte(i)}, test.size)...) // the spool has a copy
				want.Write(part)
				require.NoError(t, s.add(part), test.why)
			}
			require.Equal(t, test.spills, s.file != nil, test.why)
			require.LessOrEqual(t, len(s.blocks), maxBlocks)
			require.EqualValues(t, want.Len(), s.size)
			require.NoError(t, s.writeTo(&got))
			require.True(t, bytes.Equal(want.Bytes(), got.Bytes()), test.why)
			require.NoError(t, s.close())
			left, err := os.ReadDir(folder)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}
