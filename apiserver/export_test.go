package apiserver

// Unchanged returns how many applies that changed nothing a server remembers.
func Unchanged(s *Server) int {
	if s.writes.Unchanged == nil {
		return 0
	}
	return s.writes.Unchanged.Len()
}
