package storagetest

import (
	"slices"
	"strings"

	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// model is the slow, simple twin of a store: the list of all writes.
type model struct {
	start     int64 // the revision before the first write
	writes    []storage.Record
	compacted int64
}

func (m *model) revision() int64 {
	if len(m.writes) == 0 {
		return m.start
	}
	return m.writes[len(m.writes)-1].Revision
}

// resolve returns the revision to read, or the expected error.
func (m *model) resolve(revision int64) (int64, error) {
	switch {
	case revision == 0:
		return m.revision(), nil
	case revision > m.revision():
		return 0, storage.ErrFuture
	case revision < m.compacted:
		return 0, storage.ErrCompacted
	}
	return revision, nil
}

// get returns the record at a revision.
func (m *model) get(key string, revision int64) *storage.Record {
	for _, w := range slices.Backward(m.writes) {
		if w.Revision <= revision && w.Key == key {
			if w.Value == nil {
				return nil
			}
			return &w
		}
	}
	return nil
}

func (m *model) list(prefix string, revision int64, after string, limit int) (page storage.Page) {
	var keys []string
	for _, w := range m.writes {
		if strings.HasPrefix(w.Key, prefix) && (after == "" || w.Key > after) {
			keys = append(keys, w.Key)
		}
	}
	slices.Sort(keys)
	page.Revision = revision
	for _, key := range slices.Compact(keys) {
		switch record := m.get(key, revision); {
		case record == nil:
		case limit > 0 && len(page.Records) == limit:
			page.Remaining++
		default:
			page.Records = append(page.Records, *record)
		}
	}
	return page
}

// events returns the events of a watch after a revision, without the first ones.
func (m *model) events(prefix string, after int64, skip int) (events []storage.Event) {
	for _, w := range m.writes {
		if w.Revision <= after || !strings.HasPrefix(w.Key, prefix) {
			continue
		}
		if skip > 0 {
			skip--
			continue
		}
		previous := m.get(w.Key, w.Revision-1)
		events = append(events, storage.Event{Key: w.Key, Value: w.Value, Previous: previous, Revision: w.Revision})
	}
	return events
}
