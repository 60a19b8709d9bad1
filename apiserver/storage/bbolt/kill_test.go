package bbolt_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/bbolt"
)

// childFile, set in the environment, makes this binary write to a store until it is
// killed.
const childFile = "STORE_TO_WRITE_TO"

func TestMain(m *testing.M) {
	if path := os.Getenv(childFile); path != "" {
		if err := writeForever(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// writeForever says on its standard output what was acknowledged, a line for each
// write: key, revision, and whether it was removed.
func writeForever(path string) error {
	s, err := bbolt.Open(path, bbolt.Options{Retention: storage.Retention{Revisions: -1}})
	if err != nil {
		return err
	}
	fail := make(chan error)
	for writer := range 16 {
		go func() {
			for n := 0; ; n++ {
				key := fmt.Sprintf("/%d", (n+writer)%7)
				if err := writeOnce(s, key, n%5 == 0); err != nil {
					fail <- err
				}
			}
		}()
	}
	return <-fail
}

func writeOnce(s storage.Store, key string, remove bool) error {
	ctx := context.Background()
	current, _, err := s.Get(ctx, key, 0)
	if err != nil {
		return err
	}
	var expected, revision int64
	if current != nil {
		expected = current.Revision
	}
	if remove = remove && current != nil; remove {
		revision, err = s.Delete(ctx, key, expected)
	} else {
		revision, err = s.Put(ctx, key, valueAfter(key, expected), expected)
	}
	if conflict := (*storage.ConflictError)(nil); errors.As(err, &conflict) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = os.Stdout.WriteString(fmt.Sprintln(key, revision, remove)) // one write, so that lines do not mix
	return err
}

// valueAfter is what is written over a revision: of various sizes, up to some pages.
func valueAfter(key string, revision int64) []byte {
	value := fmt.Appendf(nil, "%s after %d ", key, revision)
	return append(value, make([]byte, revision*997%10_000)...)
}

type acknowledgement struct {
	key     string
	removed bool
}

// TestKilled kills a process that writes, over and over: what it was told to be
// written is there, once, under its revision.
func TestKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	acknowledged := map[int64]acknowledgement{}
	for round := range 6 {
		written := killWhileWriting(t, path, 50+150*round)
		for revision, write := range written {
			require.NotContains(t, acknowledged, revision, "a revision that was given before")
			acknowledged[revision] = write
		}
		checkHistory(t, path, acknowledged)
	}
}

// killWhileWriting returns what was acknowledged by the time the process had died,
// which is after count writes or a little later.
func killWhileWriting(t *testing.T, path string, count int) map[int64]acknowledgement {
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childFile+"="+path)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	written := map[int64]acknowledgement{}
	kill := sync.OnceFunc(func() { require.NoError(t, child.Process.Kill()) })
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var key string
		var revision int64
		var removed bool
		_, err := fmt.Sscan(lines.Text(), &key, &revision, &removed)
		require.NoError(t, err)
		require.NotContains(t, written, revision)
		written[revision] = acknowledgement{key, removed}
		if len(written) >= count {
			kill()
		}
	}
	require.ErrorContains(t, child.Wait(), "killed")
	require.GreaterOrEqual(t, len(written), count)
	return written
}

func checkHistory(t *testing.T, path string, acknowledged map[int64]acknowledgement) {
	s := openAt(t, path, bbolt.Options{})
	defer func() { require.NoError(t, s.Close()) }()
	last, err := s.Revision(t.Context())
	require.NoError(t, err)
	w, err := s.Watch(t.Context(), "/", 1)
	require.NoError(t, err)
	latest, found := map[string]storage.Event{}, 0
	for revision := int64(2); revision <= last; revision++ {
		event := <-w.Events()
		require.Equal(t, revision, event.Revision)
		before := int64(0)
		if event.Previous != nil {
			before = event.Previous.Revision
			require.Equal(t, latest[event.Key].Value, event.Previous.Value)
		}
		if event.Value != nil {
			require.Equal(t, valueAfter(event.Key, before), event.Value)
		}
		latest[event.Key] = event
		// A write may be there that the process was killed before it could tell.
		if told, ok := acknowledged[revision]; ok {
			found++
			require.Equal(t, told, acknowledgement{event.Key, event.Value == nil}, strconv.FormatInt(revision, 10))
		}
	}
	require.Len(t, acknowledged, found, "a write that was acknowledged is not there")
	for key, event := range latest {
		got, _, err := s.Get(t.Context(), key, 0)
		require.NoError(t, err)
		if event.Value == nil {
			require.Nil(t, got)
		} else {
			require.Equal(t, &storage.Record{Key: key, Value: event.Value, Revision: event.Revision}, got)
		}
	}
}
