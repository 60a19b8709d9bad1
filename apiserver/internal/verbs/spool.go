package verbs

import (
	"io"
	"os"
)

// maxSpool is how much a spool holds in memory.
const maxSpool = 16 << 20

// A spool keeps the elements of a list until their size is known, which comes first in protobuf.
// It keeps a large one in a file. Bytes that are shared are not copied.
type spool struct {
	parts [][]byte
	owned int // the size of parts that are not shared
	file  *os.File
	size  int64
}

// add appends bytes. The caller does not change them; shared is whether others keep them too.
func (s *spool) add(data []byte, shared bool) error {
	s.parts = append(s.parts, data)
	s.size += int64(len(data))
	if !shared {
		s.owned += len(data)
	}
	if s.owned <= maxSpool {
		return nil
	}
	return s.spill()
}

// spill writes the parts to the file.
func (s *spool) spill() (err error) {
	if s.file == nil {
		if s.file, err = os.CreateTemp("", "tenure-list-"); err != nil {
			return err
		}
		// The file has no name from here on, so that nothing is left of it.
		if err := os.Remove(s.file.Name()); err != nil {
			return err
		}
	}
	for _, part := range s.parts {
		if _, err := s.file.Write(part); err != nil {
			return err
		}
	}
	clear(s.parts)
	s.parts, s.owned = s.parts[:0], 0
	return nil
}

// writeTo writes all that was added.
func (s *spool) writeTo(w io.Writer) error {
	if s.file != nil {
		if _, err := s.file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.Copy(onlyWriter{w}, s.file); err != nil {
			return err
		}
	}
	for _, part := range s.parts {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// onlyWriter hides ReadFrom.
type onlyWriter struct{ io.Writer }

func (s *spool) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}
