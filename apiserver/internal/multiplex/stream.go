package multiplex

import (
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// A Stream is the response to a request that was taken from the HTTP/2 server. Its handler's goroutine calls Run and
// then Write; any calls Ready.
type Stream struct {
	conn   *Conn
	id     uint32
	done   <-chan struct{} // the request has ended
	limits Limits
	ended  chan struct{} // next has said that the stream ends
	moved  chan struct{} // a stream that was released and parked may send again

	// Guarded by conn.mu.
	window   int64 // what the client grants
	started  bool  // the server has sent the header of the response
	written  int64 // bytes of the body that the server has sent
	expected int64 // the value of written at which arrived is closed
	arrived  chan struct{}
	taken    bool
	gone     bool        // closed, for the client or the server
	queued   bool        // in conn.ready
	parked   bool        // waits for a window, with something pending
	short    bool        // in conn.short or conn.fed
	got      bool        // something, in the turn in which it was parked
	stalled  bool        // was parked, and has not sent all that was pending since
	stuck    *time.Timer // runs while the stream is stalled
	released bool        // Run has returned

	// Guarded by conn.batch.
	next    func() (waits, ends bool)
	ends    bool     // next has said so
	pending [][]byte // what next has appended
	passed  int      // how many of pending are in a batch
	turn    int      // how many bytes are, of this turn of the stream
	panics  any      // of next
}

// Limits are those of a Stream.
type Limits struct {
	// Stuck is how long a client may take to grant the window for what is pending. Then Expire is called, which must end
	// the request.
	Stuck  time.Duration
	Expire func()
}

// streamField returns the header field with the number of a stream as HPACK encodes it: a literal that is not indexed,
// with the lengths of its name and its value.
func (c *Conn) streamField(id uint32) []byte {
	const name = "tenure-stream"
	value := strconv.AppendUint([]byte(c.secret), uint64(id), 10)
	field := make([]byte, 0, 3+len(name)+len(value))
	field = append(append(field, 0, byte(len(name))), name...)
	return append(append(field, byte(len(value))), value...)
}

// streamOf returns the number of the stream of a request; 0 if it has none that Conn added.
func (c *Conn) streamOf(r *http.Request) uint32 {
	for _, value := range r.Header[streamHeader] {
		if text, ok := strings.CutPrefix(value, c.secret); ok {
			id, _ := strconv.ParseUint(text, 10, 32) // as streamField made it
			return uint32(id)
		}
	}
	return 0
}

// Take takes the stream of a request from the HTTP/2 server. The handler has written so many bytes of the body, and
// flushed them; it must write no more to its ResponseWriter. ok is false if the request is not one of a Conn, or has a
// body, or its client grants too little: the handler must go on with the ResponseWriter then.
func Take(r *http.Request, written int64, limits Limits) (s *Stream, ok bool) {
	c, _ := r.Context().Value(connKey{}).(*Conn)
	if c == nil || r.ContentLength != 0 { // 100 Continue, which a body may cause, looks like the header of the response
		return nil, false
	}
	s, arrived := c.take(c.streamOf(r), written)
	if s == nil {
		return nil, false
	}
	s.done, s.limits = r.Context().Done(), limits
	s.stuck = time.AfterFunc(limits.Stuck, s.expire)
	s.stuck.Stop()
	// What the handler has flushed may be in a buffer of the server.
	select {
	case <-arrived:
	case <-s.done:
	}
	return s, true
}

// take marks a stream as taken, if it can be. arrived is closed when the server has sent so many bytes of its body.
func (c *Conn) take(id uint32, written int64) (s *Stream, arrived <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s = c.streams[id]; s == nil || c.share == 0 || s.taken {
		return nil, nil
	}
	s.taken, s.expected = true, written
	s.ended, s.moved = make(chan struct{}), make(chan struct{}, 1)
	all := make(chan struct{})
	if s.arrived = all; s.started && s.written >= written {
		close(all)
		s.arrived = nil
	}
	return s, all
}

// Run calls next until it says that the stream ends, or until stop is closed. next calls Append with what there is. If
// it says that it waits, it is called again after Ready; if not, when what it appended was sent. It is called in
// another goroutine, which other streams need, so it must not block. Run returns when all that was appended is sent, or
// the request has ended. If next panics, Run does.
func (s *Stream) Run(stop <-chan struct{}, next func() (waits, ends bool)) {
	c := s.conn
	c.batch.Lock()
	s.next = next
	c.batch.Unlock()
	s.Ready()
	select {
	case <-stop:
	case <-s.ended:
	}
	c.batch.Lock() // nothing of the stream is in the batch
	c.mu.Lock()
	s.released = true
	c.mu.Unlock()
	s.next = nil
	c.batch.Unlock()
	if s.panics != nil {
		panic(s.panics)
	}
	s.Write()
}

// Append adds to what the stream sends. next alone calls it. The bytes must not change afterwards.
func (s *Stream) Append(data ...[]byte) { s.pending = append(s.pending, data...) }

// Write sends data after Run. It blocks until it is sent, or the request has ended.
func (s *Stream) Write(data ...[]byte) {
	c := s.conn
	c.batch.Lock()
	defer c.batch.Unlock()
	s.turn = 0
	for s.Append(data...); !s.drain(); {
		c.flush()
		c.batch.Unlock()
		select {
		case <-s.moved:
		case <-s.done:
		}
		c.batch.Lock()
		select {
		case <-s.done:
			s.pending = nil
			return
		default:
		}
	}
	c.flush()
}

// End ends the use of the stream, before its handler returns.
func (s *Stream) End() { s.stuck.Stop() }

// Ready makes the connection call next soon. It does not block.
func (s *Stream) Ready() {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	s.queue()
}

// queue is Ready. The caller holds conn.mu.
func (s *Stream) queue() {
	c := s.conn
	if s.parked {
		// What is pending goes first, and next is called then.
		if s.window <= 0 || c.room <= 0 {
			s.awaitRoom()
			return
		}
		s.parked = false
		if s.released {
			select {
			case s.moved <- struct{}{}:
			default: // Write looks at the windows anyway
			}
			return
		}
	}
	if s.queued || s.released {
		return
	}
	s.queued = true
	c.ready = append(c.ready, s)
	if !c.pumping {
		c.pumping = true
		go c.pump()
	}
}

// grow changes the window. The caller holds conn.mu.
func (s *Stream) grow(more int64) {
	if s.window += more; s.parked {
		s.queue()
	}
}

// park makes the stream wait for a window. The caller holds conn.batch and conn.mu.
func (s *Stream) park() {
	s.parked = true
	if !s.stalled {
		s.stalled = true
		s.stuck.Reset(s.limits.Stuck)
	}
	s.awaitRoom()
}

// awaitRoom makes the stream wait for the window of the connection, if that is what it lacks. Those that got nothing in
// their turn are the first that get more. The caller holds conn.mu.
func (s *Stream) awaitRoom() {
	c := s.conn
	if s.window <= 0 || c.room > 0 || s.short {
		return
	}
	if s.short = true; s.got {
		c.fed = append(c.fed, s)
	} else {
		c.short = append(c.short, s)
	}
}

// expire ends a stream that is stalled for too long.
func (s *Stream) expire() {
	s.conn.mu.Lock()
	stalled := s.stalled
	s.conn.mu.Unlock()
	if stalled {
		s.limits.Expire()
	}
}

// serve sends what a stream has until it waits or is parked, or its turn is over: then again is true. The caller holds
// c.batch.
func (c *Conn) serve(s *Stream) (again bool) {
	defer func() {
		if p := recover(); p != nil {
			s.panics = fmt.Sprintf("%v\n%s", p, debug.Stack())
			s.end()
		}
	}()
	s.turn = 0
	for waits := false; s.next != nil && s.drain() && !waits; {
		switch {
		case s.ends:
			s.end()
			return false
		case s.turn >= maxBatch:
			return true
		}
		waits, s.ends = s.next()
		waits = waits && !s.ends
	}
	return false
}

func (s *Stream) end() {
	s.next = nil
	close(s.ended)
}

// drain adds what is pending to the batch, and reports whether that was all. If not, the stream is parked. The caller
// holds conn.batch.
func (s *Stream) drain() bool {
	for s.passed < len(s.pending) {
		data := s.pending[s.passed]
		n, gone := s.reserve(len(data))
		if gone {
			break
		}
		if n == 0 && len(data) > 0 {
			return false
		}
		if n > 0 {
			s.turn += n
			s.conn.add(s.id, data[:n])
		}
		if s.pending[s.passed] = data[n:]; n == len(data) {
			s.passed++
		}
	}
	clear(s.pending)
	s.pending, s.passed = s.pending[:0], 0
	s.moving()
	return true
}

// moving notes that all that was pending is sent.
func (s *Stream) moving() {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	if s.stalled {
		s.stalled = false
		s.stuck.Stop()
	}
}

// reserve takes up to size bytes from the windows. If there are none, the stream is parked.
func (s *Stream) reserve(size int) (n int, gone bool) {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.gone {
		return 0, true
	}
	n = int(min(int64(size), maxPayload, s.window, c.room))
	if n <= 0 && size > 0 {
		s.got = s.turn > 0
		s.park()
		return 0, false
	}
	s.window -= int64(n)
	c.window -= int64(n)
	c.room -= int64(n)
	return n, false
}
