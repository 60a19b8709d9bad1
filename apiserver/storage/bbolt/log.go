package bbolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	bolt "go.etcd.io/bbolt"

	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// entry is a write in the log:
//
//	1 byte     0 a put, 1 a removal
//	8 bytes    when it was written, in nanoseconds since 1970, the highest first
//	8 bytes    revision of the write before it to the same key, 0 for none
//	uvarint    length of the key
//	           key
//	           value, to the end
type entry struct {
	removed  bool
	written  int64
	previous int64
	key      []byte
	value    []byte
}

const entryHeader = 1 + 8 + 8

func (e *entry) encode() []byte {
	data := make([]byte, 0, entryHeader+binary.MaxVarintLen64+len(e.key)+len(e.value))
	data = append(data, flag(e.removed))
	data = binary.BigEndian.AppendUint64(data, uint64(e.written))
	data = binary.BigEndian.AppendUint64(data, uint64(e.previous))
	data = binary.AppendUvarint(data, uint64(len(e.key)))
	data = append(data, e.key...)
	return append(data, e.value...)
}

// decodeEntry decodes an entry. The result shares memory with data.
func decodeEntry(data []byte) (e entry, err error) {
	if len(data) <= entryHeader || data[0] > 1 {
		return entry{}, errDamaged
	}
	e.removed = data[0] == 1
	e.written = int64(binary.BigEndian.Uint64(data[1:]))
	e.previous = int64(binary.BigEndian.Uint64(data[9:]))
	data = data[entryHeader:]
	length, n := binary.Uvarint(data)
	if n <= 0 || length > uint64(len(data)-n) {
		return entry{}, errDamaged
	}
	e.key, e.value = data[n:n+int(length)], data[n+int(length):]
	return e, nil
}

var errDamaged = errors.New("the file is damaged")

func flag(removed bool) byte {
	if removed {
		return 1
	}
	return 0
}

func encodeRevision(revision int64) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(revision))
}

func decodeRevision(data []byte) (int64, error) {
	if len(data) != 8 {
		return 0, errDamaged
	}
	return int64(binary.BigEndian.Uint64(data)), nil
}

// state is the store as one transaction sees it.
type state struct {
	records, log        *bolt.Bucket
	revision, compacted int64
	cursor              *bolt.Cursor // in log; kept because Get creates one for each call
}

func load(tx *bolt.Tx) (*state, error) {
	st := &state{records: tx.Bucket(recordsBucket), log: tx.Bucket(logBucket)}
	if st.records == nil || st.log == nil {
		return nil, errDamaged
	}
	st.cursor = st.log.Cursor()
	st.revision, st.compacted = int64(st.log.Sequence()), int64(st.records.Sequence())
	if st.compacted < 1 || st.revision < st.compacted {
		return nil, errDamaged
	}
	return st, nil
}

// resolve returns the revision to read, the last one for 0, or an error if it can't be read.
func (st *state) resolve(revision int64) (int64, error) {
	switch {
	case revision == 0:
		return st.revision, nil
	case revision > st.revision:
		return 0, fmt.Errorf("revision %d: %w, the last is %d", revision, storage.ErrFuture, st.revision)
	case revision < st.compacted:
		return 0, fmt.Errorf("revision %d: %w, up to %d", revision, storage.ErrCompacted, st.compacted)
	}
	return revision, nil
}

// entry returns the write of a revision; false for a deletion that was compacted.
func (st *state) entry(revision int64) (e entry, ok bool, err error) {
	var wanted [8]byte
	binary.BigEndian.PutUint64(wanted[:], uint64(revision))
	key, data := st.cursor.Seek(wanted[:])
	if !bytes.Equal(key, wanted[:]) {
		if revision > st.compacted {
			err = fmt.Errorf("revision %d: %w", revision, errDamaged)
		}
		return entry{}, false, err
	}
	if e, err = decodeEntry(data); err != nil {
		return entry{}, false, fmt.Errorf("revision %d: %w", revision, err)
	}
	return e, true, nil
}

// last returns the revision of the last write to a key, from its value in records; 0 for none.
func last(data []byte) (revision int64, removed bool, err error) {
	if data == nil {
		return 0, false, nil
	}
	if len(data) != 9 || data[8] > 1 {
		return 0, false, errDamaged
	}
	revision, err = decodeRevision(data[:8])
	return revision, data[8] == 1, err
}

// find returns the revision of the record of a key at a revision, 0 if there was none. data is
// the value of the key in records. It follows the log backwards from the last write.
func (st *state) find(data []byte, at int64) (int64, error) {
	revision, removed, err := last(data)
	if err != nil || removed && revision <= at {
		return 0, err
	}
	if revision <= at {
		return revision, nil
	}
	for revision > at {
		e, _, err := st.entry(revision)
		if err != nil {
			return 0, err
		}
		if e.previous < 0 || e.previous >= revision {
			return 0, fmt.Errorf("revision %d: %w", revision, errDamaged)
		}
		revision = e.previous
	}
	if revision == 0 {
		return 0, nil
	}
	if e, ok, err := st.entry(revision); err != nil || !ok || e.removed {
		return 0, err
	}
	return revision, nil
}

// record returns a copy of the record written at a revision; nil for 0 and for a deletion.
func (st *state) record(revision int64) (*storage.Record, error) {
	if revision == 0 {
		return nil, nil
	}
	e, ok, err := st.entry(revision)
	if err != nil || !ok || e.removed {
		return nil, err
	}
	return &storage.Record{Key: string(e.key), Value: clone(e.value), Revision: revision}, nil
}

// clone copies memory of a transaction. The result is never nil.
func clone(data []byte) []byte {
	copied := make([]byte, len(data))
	copy(copied, data)
	return copied
}

// readBytes is the approximate number of bytes that are read for a watch at once.
const readBytes = 4 << 20

// read implements feed.Read.
func (s *Store) read(prefix string, after, upto int64, limit int) (events []storage.Event, reached int64, err error) {
	err = s.view(func(st *state) error {
		if after < st.compacted {
			return fmt.Errorf("%w up to %d", storage.ErrCompacted, st.compacted)
		}
		size := 0
		for reached = after; reached < upto && limit > 0 && size < readBytes; limit-- {
			reached++
			e, _, err := st.entry(reached)
			if err != nil {
				return err
			}
			if !strings.HasPrefix(string(e.key), prefix) {
				continue
			}
			event := storage.Event{Key: string(e.key), Revision: reached}
			if event.Previous, err = st.record(e.previous); err != nil {
				return err
			}
			if !e.removed {
				event.Value = clone(e.value)
			}
			if event.Previous != nil {
				size += len(event.Previous.Value)
			}
			size += len(event.Value)
			events = append(events, event)
		}
		return nil
	})
	return events, reached, err
}
