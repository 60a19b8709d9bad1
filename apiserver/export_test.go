package apiserver

// StartOn is Start with a listener of the test's.
var StartOn = startOn

// LimitWatches sets how many events a watch may be behind.
func (s *Server) LimitWatches(events int64) { s.verbs.Watches.Limit(events) }
