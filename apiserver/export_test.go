package apiserver

import (
	"net/http"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// Unchanged returns how many no-op applies a server remembers.
func Unchanged(s *Server) int {
	if s.writes.Unchanged == nil {
		return 0
	}
	return s.writes.Unchanged.Len()
}

// Resources returns the resources that a server serves.
func Resources(s *Server) *resources.Table { return s.tables.Table() }

// Watching returns how many watches a server serves, except watches of administrators.
func Watching(s *Server) int {
	s.watches.mu.Lock()
	defer s.watches.mu.Unlock()
	return s.watches.all.requests
}

// Unread returns how many bytes wait for clients.
func Unread(s *Server) int64 {
	s.unread.mu.Lock()
	defer s.unread.mu.Unlock()
	return s.unread.all.bytes
}

// Unavailable returns the API error for an error of a storage.
func Unavailable(err error) error { return unavailable(err) }

// UnreadWriter counts what a client does not read.
func UnreadWriter(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
	return newUnread(Limits{}).writer(w, r, 0)
}
