package fieldpath

import (
	"sync"
	"sync/atomic"
)

// tally is an exact counter that goroutines increment without contention: each processor has a cell of its own, in
// most cases. When the pool drops a cell, only its assignment is lost, not its count.
type tally struct {
	cells [16]tallyCell
	given atomic.Uint32 // cells assigned so far
	own   sync.Pool     // of *tallyCell
}

// tallyCell fills a cache line (64 bytes).
type tallyCell struct {
	n atomic.Uint64
	_ [56]byte
}

func (t *tally) add() {
	cell, _ := t.own.Get().(*tallyCell)
	if cell == nil {
		cell = &t.cells[t.given.Add(1)%uint32(len(t.cells))]
	}
	cell.n.Add(1)
	t.own.Put(cell)
}

func (t *tally) sum() (n uint64) {
	for i := range t.cells {
		n += t.cells[i].n.Load()
	}
	return n
}
