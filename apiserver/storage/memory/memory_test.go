package memory_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
	"github.com/tenure-ssa/tenure/apiserver/storage/storagetest"
)

func open(*testing.T) storage.Store {
	return memory.New(memory.Options{Progress: 10 * time.Millisecond})
}

func TestStore(t *testing.T) {
	storagetest.Run(t, open, storagetest.TellsProgress())
}

func TestStartsAtOne(t *testing.T) {
	s := open(t)
	revision, err := s.Revision(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, revision)
	revision, err = s.Put(t.Context(), "/a", nil, 0)
	require.NoError(t, err)
	require.EqualValues(t, 2, revision)
	got, _, err := s.Get(t.Context(), "/a", 1)
	require.NoError(t, err)
	require.Nil(t, got, "as it was before the first write")
}

func BenchmarkStore(b *testing.B) {
	storagetest.Bench(b, func(*testing.B) storage.Store { return memory.New(memory.Options{}) })
}
