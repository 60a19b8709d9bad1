package verbs

import (
	"io"
	"os"
	"sync"
)

// A spool keeps the elements of a list until their size is known, which comes first in protobuf: in blocks of memory,
// and all that do not fit into these in a file.
//
// Invariant: all blocks but the last one are full, and len(blocks) <= maxBlocks.
type spool struct {
	blocks [][]byte
	file   *os.File
	size   int64
}

// blockSize is the size of a block, and maxBlocks how many a spool has at most.
const (
	blockSize = 256 << 10
	maxBlocks = 32
)

// blocks are those of spools that have ended, so that lists leave no garbage.
var blocks = sync.Pool{New: func() any { return new([blockSize]byte) }}

// add appends a copy of bytes.
func (s *spool) add(data []byte) error {
	s.size += int64(len(data))
	for len(data) > 0 {
		last := len(s.blocks) - 1
		if last < 0 || len(s.blocks[last]) == blockSize {
			if err := s.grow(); err != nil {
				return err
			}
			last = len(s.blocks) - 1
		}
		n := min(len(data), blockSize-len(s.blocks[last]))
		s.blocks[last] = append(s.blocks[last], data[:n]...)
		data = data[n:]
	}
	return nil
}

// grow adds an empty block. It writes the others to the file first if there are too many, or if there is a file.
func (s *spool) grow() error {
	if s.file == nil && len(s.blocks) == maxBlocks {
		file, err := os.CreateTemp("", "tenure-list-")
		if err != nil {
			return err
		}
		s.file = file
		// The file has no name from here on, so that nothing is left of it.
		if err := os.Remove(file.Name()); err != nil {
			return err
		}
	}
	if s.file != nil {
		for _, block := range s.blocks {
			if _, err := s.file.Write(block); err != nil {
				return err
			}
		}
		s.free()
	}
	s.blocks = append(s.blocks, blocks.Get().(*[blockSize]byte)[:0])
	return nil
}

// free gives the blocks back.
func (s *spool) free() {
	for _, block := range s.blocks {
		blocks.Put((*[blockSize]byte)(block[:blockSize]))
	}
	clear(s.blocks)
	s.blocks = s.blocks[:0]
}

// writeTo writes all that was added.
func (s *spool) writeTo(w io.Writer) error {
	if s.file != nil {
		if _, err := s.file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		buffer := blocks.Get().(*[blockSize]byte)
		defer blocks.Put(buffer)
		if _, err := io.CopyBuffer(onlyWriter{w}, onlyReader{s.file}, buffer[:]); err != nil {
			return err
		}
	}
	for _, block := range s.blocks {
		if _, err := w.Write(block); err != nil {
			return err
		}
	}
	return nil
}

// onlyWriter hides ReadFrom, onlyReader WriteTo.
type (
	onlyWriter struct{ io.Writer }
	onlyReader struct{ io.Reader }
)

func (s *spool) close() error {
	s.free()
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}
