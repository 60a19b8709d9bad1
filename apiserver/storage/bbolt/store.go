package bbolt

import (
	"context"
	"errors"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// view runs a read transaction.
func (s *Store) view(do func(*state) error) error {
	err := guard(func() error {
		return s.db.View(func(tx *bolt.Tx) error {
			st, err := load(tx)
			if err != nil {
				return err
			}
			return do(st)
		})
	})
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return storage.ErrClosed
	}
	return err
}

// Get implements [storage.Store].
func (s *Store) Get(ctx context.Context, key string, revision int64) (record *storage.Record, at int64, err error) {
	if err := check(ctx, key); err != nil {
		return nil, 0, err
	}
	err = s.view(func(st *state) (err error) {
		if at, err = st.resolve(revision); err != nil {
			return err
		}
		written, err := st.find(st.records.Get([]byte(key)), at)
		if err != nil {
			return err
		}
		record, err = st.record(written)
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	return record, at, nil
}

// List implements [storage.Store].
func (s *Store) List(ctx context.Context, prefix string, options storage.ListOptions) (page storage.Page, err error) {
	if err := ctx.Err(); err != nil {
		return storage.Page{}, err
	}
	err = s.view(func(st *state) (err error) {
		if page.Revision, err = st.resolve(options.Revision); err != nil {
			return err
		}
		start, end, ok := storage.Span(prefix, options.After)
		if !ok {
			return nil
		}
		cursor := st.records.Cursor()
		seen := 0
		for key, data := cursor.Seek([]byte(start)); key != nil && string(key) < end; key, data = cursor.Next() {
			if seen++; seen%1024 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			written, err := st.find(data, page.Revision)
			if err != nil {
				return err
			}
			if written == 0 {
				continue
			}
			if options.Limit > 0 && len(page.Records) >= options.Limit {
				if page.Remaining++; options.SkipCount {
					break
				}
				continue
			}
			record, err := st.record(written)
			if err != nil {
				return err
			}
			if record == nil { // records says that it was written
				return errDamaged
			}
			page.Records = append(page.Records, *record)
		}
		return nil
	})
	if err != nil {
		return storage.Page{}, err
	}
	return page, nil
}

// Put implements [storage.Store].
func (s *Store) Put(ctx context.Context, key string, value []byte, expected int64) (int64, error) {
	if err := check(ctx, key); err != nil {
		return 0, err
	}
	if len(value) > maxValue {
		return 0, storage.ErrTooLarge
	}
	return s.do(ctx, &request{kind: isPut, key: key, value: value, revision: expected})
}

// Delete implements [storage.Store].
func (s *Store) Delete(ctx context.Context, key string, expected int64) (int64, error) {
	if err := check(ctx, key); err != nil {
		return 0, err
	}
	return s.do(ctx, &request{kind: isDelete, key: key, revision: expected})
}

// Watch implements [storage.Store].
func (s *Store) Watch(ctx context.Context, prefix string, after int64) (storage.Watcher, error) {
	err := s.view(func(st *state) (err error) {
		after, err = st.resolve(after)
		return err
	})
	if err != nil {
		return nil, err
	}
	return s.feed.Watch(ctx, prefix, after)
}

// Compact implements [storage.Store]. A large compaction runs in steps, between which other
// writes run. If ctx ends, the steps that are done stay.
func (s *Store) Compact(ctx context.Context, revision int64) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		reached, err := s.do(ctx, &request{kind: isCompact, revision: revision})
		if err != nil || reached >= revision {
			return err
		}
	}
}

// Revision implements [storage.Store].
func (s *Store) Revision(ctx context.Context) (revision int64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	err = s.view(func(st *state) error {
		revision = st.revision
		return nil
	})
	return revision, err
}

func check(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return storage.CheckKey(key)
}
