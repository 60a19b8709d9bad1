package multiplex

import (
	"encoding/binary"
	"sync"
	"time"
)

// add adds a DATA frame to the batch. The caller holds c.batch.
func (c *Conn) add(id uint32, payload []byte) {
	if c.buf == nil {
		c.buf = (*buffers.Get().(*[]byte))[:0]
	}
	head := [headerSize]byte{3: frameData}
	putLength(head[:], len(payload))
	binary.BigEndian.PutUint32(head[5:], id)
	c.buf = append(append(c.buf, head[:]...), payload...)
	if len(c.buf) >= maxBatch {
		c.flush()
	}
}

// buffers are those of batches.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// flush writes the batch. The caller holds c.batch.
func (c *Conn) flush() {
	if len(c.buf) == 0 {
		return
	}
	c.wire.Lock()
	defer c.wire.Unlock()
	for c.out.within() && c.failed == nil {
		c.boundary.Wait()
	}
	if c.failed == nil {
		c.failed = c.writeBatch()
	}
	buf := c.buf
	c.buf = nil
	buffers.Put(&buf)
}

func (c *Conn) writeBatch() error {
	c.limitWrites(time.Now().Add(c.timeout))
	c.below.begin()
	_, err := c.Conn.Write(c.buf)
	if e := c.below.end(); err == nil {
		err = e
	}
	c.limitWrites(time.Time{})
	if err != nil {
		_ = c.NetConn().Close() // the server finds that it can't read, and ends all streams
	}
	return err
}

// pump sends what streams have until none is ready.
func (c *Conn) pump() {
	c.batch.Lock()
	defer c.batch.Unlock()
	for round := 1; ; round++ {
		c.mu.Lock()
		ready := c.ready
		if len(ready) == 0 && len(c.buf) == 0 {
			c.pumping = false
			c.mu.Unlock()
			return
		}
		c.ready, c.spare = c.spare, nil
		for _, s := range ready {
			s.queued = false
		}
		c.mu.Unlock()
		for _, s := range ready {
			if c.serve(s) {
				s.Ready()
			}
		}
		if clear(ready); len(ready) > 0 {
			c.spare = ready[:0]
		}
		if len(ready) == 0 || round%patience == 0 {
			c.flush()
			c.batch.Unlock() // for streams that end
			c.batch.Lock()
		}
	}
}

// patience is after how many rounds a pump lets streams end that wait for it.
const patience = 16
