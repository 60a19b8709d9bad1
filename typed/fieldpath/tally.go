package fieldpath

import (
	"sync"
	"sync/atomic"
)

// tally counts exactly, without goroutines that count at the same time in each
// other's way: a processor counts in a cell that as a rule is its own. What the pool
// forgets is only whose a cell is.
type tally struct {
	cells [16]tallyCell
	given atomic.Uint32 // how many cells were given to processors
	own   sync.Pool     // of *tallyCell
}

// tallyCell fills a cache line of today.
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
