package storagetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// testRandom runs the same calls on a store and on the model and compares the results.
func testRandom(t *testing.T, s storage.Store) {
	start := now(t, s)
	r := &randomly{
		Rand:  rand.New(rand.NewPCG(1, 2)),
		store: s,
		model: model{start: start, compacted: start},
	}
	for range 1500 {
		switch n := r.IntN(100); {
		case n < 45:
			r.write(t)
		case n < 70:
			r.get(t)
		case n < 90:
			r.list(t)
		case n < 96:
			r.watch(t)
		case n < 98:
			r.catchUp(t)
		default:
			// A watch that lags behind could miss compacted events.
			r.catchUp(t)
			r.compact(t)
		}
		require.Equal(t, r.model.revision(), now(t, s))
	}
	r.catchUp(t)
	for _, w := range r.watches {
		w.cancel()
		require.Empty(t, rest(t, w.Watcher), "more than was written")
		require.NoError(t, w.Err())
	}
}

type randomly struct {
	*rand.Rand
	store   storage.Store
	model   model
	watches []*watched
}

// watched is a watch and the number of events that were read.
type watched struct {
	storage.Watcher
	cancel context.CancelFunc
	prefix string
	after  int64
	seen   int
}

func (r *randomly) key() string { return oddKeys[r.IntN(len(oddKeys))] }

// prefix returns a prefix of a key, which may end within a rune.
func (r *randomly) prefix() string {
	key := r.key()
	return key[:r.IntN(len(key)+1)]
}

func (r *randomly) value() []byte {
	value := make([]byte, r.IntN(20))
	for i := range value {
		value[i] = byte(r.IntN(256))
	}
	return value
}

// revision returns 0 or a revision from slightly too old to slightly too new.
func (r *randomly) revision() int64 {
	if r.IntN(3) == 0 {
		return 0
	}
	from, to := max(r.model.start, r.model.compacted-3), r.model.revision()+2
	return from + r.Int64N(to-from+1)
}

func (r *randomly) write(t *testing.T) {
	key, expected := r.key(), int64(0)
	current := r.model.get(key, r.model.revision())
	if current != nil {
		expected = current.Revision
	}
	if r.IntN(5) == 0 {
		expected = r.revision()
	}
	right := current == nil && expected == 0 || current != nil && expected == current.Revision
	write := storage.Record{Key: key}
	var err error
	if r.IntN(3) > 0 {
		write.Value = r.value()
		write.Revision, err = r.store.Put(t.Context(), key, write.Value, expected)
	} else {
		write.Revision, err = r.store.Delete(t.Context(), key, expected)
		right = right && current != nil
	}
	if right {
		require.NoError(t, err)
		require.Greater(t, write.Revision, r.model.revision())
		r.model.writes = append(r.model.writes, write)
		return
	}
	var conflict *storage.ConflictError
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, storage.ConflictError{Key: key, Expected: expected, Current: current}, *conflict)
}

// agree reports whether both calls succeeded. It fails the test if their errors differ.
func agree(t *testing.T, want, got error) bool {
	t.Helper()
	if want == nil {
		require.NoError(t, got)
		return true
	}
	require.True(t, errors.Is(got, want), "expected %v, got %v", want, got)
	return false
}

func (r *randomly) get(t *testing.T) {
	key, asked := r.key(), r.revision()
	got, revision, err := r.store.Get(t.Context(), key, asked)
	resolved, expected := r.model.resolve(asked)
	if agree(t, expected, err) {
		require.Equal(t, resolved, revision)
		require.Equal(t, r.model.get(key, revision), got, "%q at %d", key, asked)
	}
}

func (r *randomly) list(t *testing.T) {
	prefix := r.prefix()
	options := storage.ListOptions{Revision: r.revision()}
	if r.IntN(2) == 0 {
		options.Limit = 1 + r.IntN(10)
	}
	if r.IntN(2) == 0 {
		options.After = r.prefix()
	}
	page, err := r.store.List(t.Context(), prefix, options)
	resolved, expected := r.model.resolve(options.Revision)
	if agree(t, expected, err) {
		require.Equal(t, r.model.list(prefix, resolved, options.After, options.Limit), page, "%q %+v", prefix, options)
	}
}

func (r *randomly) watch(t *testing.T) {
	asked := r.revision()
	ctx, cancel := context.WithCancel(t.Context())
	w := &watched{cancel: cancel, prefix: r.prefix()}
	var err, expected error
	w.Watcher, err = r.store.Watch(ctx, w.prefix, asked)
	w.after, expected = r.model.resolve(asked)
	if !agree(t, expected, err) {
		cancel()
		return
	}
	r.watches = append(r.watches, w)
	if len(r.watches) > 30 {
		r.watches[0].cancel()
		r.watches = r.watches[1:]
	}
}

// catchUp reads the remaining events of the watches.
func (r *randomly) catchUp(t *testing.T) {
	for _, w := range r.watches {
		for _, want := range r.model.events(w.prefix, w.after, w.seen) {
			require.Equal(t, want, next(t, w.Watcher), "%q after %d", w.prefix, w.after)
			w.seen++
		}
	}
}

func (r *randomly) compact(t *testing.T) {
	revision := r.revision()
	if revision < r.model.compacted {
		revision = 0
	}
	_, expected := r.model.resolve(revision)
	if agree(t, expected, r.store.Compact(t.Context(), revision)) {
		r.model.compacted = max(r.model.compacted, revision)
	}
}
