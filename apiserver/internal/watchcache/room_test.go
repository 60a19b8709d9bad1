package watchcache

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Small encoded items are kept when there is no room for large ones. Where they have filled their own room, they use
// that of large ones. What leaves gives its room back.
func TestRoom(t *testing.T) {
	var r room
	r.small.Store(3000)
	r.large.Store(10_000)
	encodedOf := func(size int) func() (Encoded, error) {
		return func() (Encoded, error) { return Encoded{Data: make([]byte, size)}, nil }
	}
	row, object := Form{MediaType: "row"}, Form{MediaType: "object"}
	items := []*Item{{room: &r}, {room: &r}, {room: &r}, {room: &r}, {room: &r}, {room: &r}}
	for i, want := range []struct{ row, object bool }{
		{true, true}, {true, true}, {true, false}, {true, false}, {true, false}, {false, false},
	} {
		_, kept, err := items[i].Encoded(object, encodedOf(4000))
		require.NoError(t, err)
		require.Equal(t, want.object, kept, "object %d", i)
		_, kept, err = items[i].Encoded(row, encodedOf(1000))
		require.NoError(t, err)
		require.Equal(t, want.row, kept, "row %d", i)
	}
	require.Zero(t, r.small.Load())
	require.Zero(t, r.large.Load())
	items[0].leave()
	require.Equal(t, int64(1000), r.small.Load())
	require.Equal(t, int64(4000), r.large.Load())
	_, kept, err := items[5].Encoded(row, encodedOf(1000))
	require.NoError(t, err)
	require.True(t, kept)
	for _, item := range items {
		item.leave()
	}
	require.Equal(t, int64(3000), r.small.Load())
	require.Equal(t, int64(10_000), r.large.Load())
}
