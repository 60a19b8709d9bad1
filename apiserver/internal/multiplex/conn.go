// Package multiplex writes the events of many watches of an HTTP/2 connection at once.
//
// net/http hands each DATA frame from the handler to the loop of the connection, from there to a goroutine that writes
// it, and back. For a watch that is most of what an event costs. A [Conn] stands between the HTTP/2 server and TLS:
//
//	handlers    watches whose streams were taken
//	   |               |
//	HTTP/2 server      |
//	   |               |
//	 Conn.Write     Conn.pump     DATA frames of many streams in one write
//	   |               |
//	TLS, in records of 16 KiB
//	   |
//	 corked         the records of one write in one system call
//
// The server goes on to do all else: it opens and closes streams, answers SETTINGS and PING, and limits what clients
// may do. Conn looks at the frames in both directions, because flow control (RFC 9113, section 5.2) needs it. These
// are the invariants:
//
//   - Frames are written whole: a batch starts where a frame of the server ends.
//   - The server sends no DATA frames of a taken stream, but for an empty one that ends it. So the window of the stream
//     is Conn's alone: the server does not see its WINDOW_UPDATEs.
//   - The window of the connection is divided: Conn keeps a half of it, its share, and the server sees the rest. What
//     the client grants later fills the share first. So both together never send more than was granted. Where one of
//     them has used up its half, the client has at least a half to grant again. Some clients wait for more than that,
//     so that only windows as large as those of Go's clients, 1 GiB, are divided: streams of others can't be taken.
//   - All frames of a taken stream are written, or dropped, before its handler returns: before the server ends it.
//
// A batch may be on its way when the client makes windows smaller, or resets a stream. So may what any server sends.
package multiplex

import (
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

// The numbers of RFC 9113 that Conn knows.
const (
	frameData         = 0x0
	frameHeaders      = 0x1
	frameReset        = 0x3
	frameSettings     = 0x4
	frameWindowUpdate = 0x8
	frameContinuation = 0x9

	flagEndStream  = 0x1
	flagAck        = 0x1
	flagEndHeaders = 0x4
	flagPadded     = 0x8

	settingInitialWindow = 0x4

	headerSize    = 9
	preface       = len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	initialWindow = 1<<16 - 1 // of the connection, and of a stream until SETTINGS say otherwise
	maxWindow     = 1<<31 - 1
	maxPayload    = 1 << 14 // what every client reads
)

const (
	// streamHeader is the request header with the number of the stream, which Conn adds: net/http does not tell handlers.
	// The secret keeps users of a proxy, who share its connection, from naming each other's streams.
	streamHeader = "Tenure-Stream"
	// maxStreams is how many streams are tracked, which is more than the server allows. What it drops without an answer
	// would be tracked for as long as the connection lives.
	maxStreams = 1000
	// maxSettings is the size of the largest SETTINGS frame that is read. There are about ten settings of six bytes.
	maxSettings = 1 << 12
	// maxBatch is the size from which a batch is written.
	maxBatch = 1 << 16
)

// minWindow is the least window of a connection that is divided. Tests make it smaller.
var minWindow int64 = 1 << 29

// A Conn is a connection of an HTTP/2 server, which alone calls Read and Write.
//
// Locks are taken in the order batch, wire, mu or deadline. Whoever calls Stream.Ready may hold other locks, so nothing
// is called with mu held.
type Conn struct {
	*tls.Conn
	below   *corked       // nil: each record of TLS is a system call
	timeout time.Duration // of a write of a batch
	secret  string        // what only the numbers of streams that Conn has added begin with

	in inbound // used by Read alone

	batch sync.Mutex // held from the first frame in buf until buf is written
	buf   []byte

	wire     sync.Mutex // held for a write to TLS
	out      outbound
	boundary *sync.Cond // of wire: a frame of the server is complete, or failed is set
	failed   error

	deadline sync.Mutex // held to set that of a write
	closing  bool       // guarded by deadline: Close sets that of its alert

	mu      sync.Mutex
	streams map[uint32]*Stream // open ones
	initial int64              // the window with which streams start
	window  int64              // of the connection
	widest  int64              // the maximum of window
	share   int64              // of widest; 0: nothing can be taken
	room    int64              // what is left of share
	ready   []*Stream          // that pump shall look at
	spare   []*Stream          // an empty slice for ready
	short   []*Stream          // that wait for room, and got none when they had their turn
	fed     []*Stream          // that wait for room, and got some
	pumping bool               // pump runs
}

// inbound is the state of Read: what the server reads next is first, rest bytes of the client, and last.
type inbound struct {
	frame  []byte // what was read of a header, and of its payload if Conn must know it
	first  []byte
	rest   int
	last   []byte
	opened uint32 // the last stream that the client has opened
}

// outbound is the state of Write: of the header of a frame, have bytes are written, or of its payload all but rest.
type outbound struct {
	head   [headerSize]byte
	have   int
	rest   int
	fields bool // CONTINUATION frames follow: nothing else may (RFC 9113, section 6.10)
}

// New returns a connection for an HTTP/2 server. If the client does not take what is written in timeout, it breaks.
func New(conn *tls.Conn, timeout time.Duration) *Conn {
	c := &Conn{Conn: conn, timeout: timeout, secret: rand.Text(), streams: map[uint32]*Stream{},
		initial: initialWindow, window: initialWindow}
	c.below, _ = conn.NetConn().(*corked)
	c.boundary = sync.NewCond(&c.wire)
	c.in.rest = preface
	return c
}

// connKey is the key of the Conn in the context of its requests.
type connKey struct{}

// Read reads what the client sends, as the server shall see it.
func (c *Conn) Read(p []byte) (int, error) {
	in := &c.in
	for {
		switch {
		case len(in.first) > 0:
			n := copy(p, in.first)
			in.first = in.first[n:]
			return n, nil
		case in.rest > 0:
			n, err := c.Conn.Read(p[:min(len(p), in.rest)])
			in.rest -= n
			return n, err
		case len(in.last) > 0:
			in.first, in.last = in.last, nil
		default:
			if err := c.nextFrame(); err != nil {
				return 0, err
			}
		}
	}
}

// fill reads frame up to a size.
func (c *Conn) fill(size int) error {
	in := &c.in
	in.frame = slices.Grow(in.frame, size-len(in.frame))
	for len(in.frame) < size {
		n, err := c.Conn.Read(in.frame[len(in.frame):size])
		in.frame = in.frame[:len(in.frame)+n]
		if err != nil && len(in.frame) < size {
			return err
		}
	}
	return nil
}

// nextFrame reads the header of a frame, and its payload if Conn must know it, and sets what the server reads of it.
func (c *Conn) nextFrame() error {
	in := &c.in
	if err := c.fill(headerSize); err != nil {
		return err
	}
	length, kind, flags, id := readHeader(in.frame)
	switch {
	case kind == frameWindowUpdate && length == 4, kind == frameSettings && flags&flagAck == 0:
		if length > maxSettings {
			return errors.New("http2: expected at most 4 KiB of SETTINGS")
		}
		if err := c.fill(headerSize + length); err != nil {
			return err
		}
		if payload := in.frame[headerSize:]; kind == frameSettings {
			c.settings(payload)
		} else if forward, err := c.windowUpdate(id, payload); err != nil {
			return err
		} else if !forward {
			in.frame = in.frame[:0]
		}
		length = 0
	case kind == frameHeaders && id > in.opened:
		in.opened = id
		c.open(id)
		// A field that stays out of the table of HPACK may follow any other (RFC 7541, section 6.2.2).
		if field := c.streamField(id); flags&flagEndHeaders != 0 && flags&flagPadded == 0 && length+len(field) <= maxPayload {
			putLength(in.frame, length+len(field))
			in.last = field
		}
	case kind == frameReset:
		c.closed(id)
	}
	in.first, in.rest, in.frame = in.frame, length, in.frame[:0]
	return nil
}

// readHeader reads the header of a frame.
func readHeader(h []byte) (length int, kind, flags byte, id uint32) {
	return int(h[0])<<16 | int(h[1])<<8 | int(h[2]), h[3], h[4], binary.BigEndian.Uint32(h[5:]) & maxWindow
}

func putLength(h []byte, length int) {
	h[0], h[1], h[2] = byte(length>>16), byte(length>>8), byte(length)
}

// open adds a stream that the client opens.
func (c *Conn) open(id uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.streams) < maxStreams {
		c.streams[id] = &Stream{conn: c, id: id, window: c.initial}
	}
}

// closed removes a stream that the client resets. The server ends its request.
func (c *Conn) closed(id uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(c.streams[id])
}

// remove removes a stream, if it is open. The caller holds c.mu.
func (c *Conn) remove(s *Stream) {
	if s == nil {
		return
	}
	s.gone = true
	delete(c.streams, s.id)
	if is := func(other *Stream) bool { return other == s }; s.short {
		c.short, c.fed = slices.DeleteFunc(c.short, is), slices.DeleteFunc(c.fed, is)
	}
}

// settings reads the payload of a SETTINGS frame. A new window of streams is for those that are open as well (RFC 9113,
// section 6.9.2). The server refuses what is not valid.
func (c *Conn) settings(payload []byte) {
	initial := int64(-1)
	for ; len(payload) >= 6; payload = payload[6:] {
		if binary.BigEndian.Uint16(payload) == settingInitialWindow {
			initial = int64(binary.BigEndian.Uint32(payload[2:]))
		}
	}
	if initial < 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.streams {
		s.grow(initial - c.initial)
	}
	c.initial = initial
}

// windowUpdate reads the payload of a WINDOW_UPDATE frame and replaces it by what the server gets of it. forward is
// false if it gets nothing.
func (c *Conn) windowUpdate(id uint32, payload []byte) (forward bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	more := int64(binary.BigEndian.Uint32(payload) & maxWindow)
	if more == 0 {
		return true, nil // an error, which is the server's to report
	}
	if id > 0 {
		s := c.streams[id]
		if s == nil {
			return true, nil
		}
		if s.grow(more); s.taken && s.window > maxWindow {
			return false, fmt.Errorf("http2: the window of stream %d: expected at most %d bytes", id, maxWindow)
		}
		return !s.taken, nil
	}
	if c.window += more; c.window > maxWindow {
		return false, fmt.Errorf("http2: the window of the connection: expected at most %d bytes", maxWindow)
	}
	c.widest = max(c.widest, c.window)
	// What the server was told can't be taken back, so that all that the share grows by must be in this grant.
	if half := c.widest / 2; c.widest >= minWindow && half-c.share <= more {
		c.share = half
	}
	mine := min(more, c.share-c.room)
	if c.room += mine; mine > 0 {
		waiting := append(c.short, c.fed...)
		c.short, c.fed = nil, nil
		for _, s := range waiting {
			s.short = false
			s.queue()
		}
	}
	binary.BigEndian.PutUint32(payload, uint32(more-mine))
	return more > mine, nil
}

// Write writes what the server sends.
func (c *Conn) Write(p []byte) (int, error) {
	c.wire.Lock()
	defer c.wire.Unlock()
	c.note(p)
	c.limitWrites(time.Now().Add(c.timeout))
	n, err := c.Conn.Write(p)
	c.limitWrites(time.Time{})
	if err != nil {
		c.failed = err
	}
	if err != nil || !c.out.within() {
		c.boundary.Broadcast()
	}
	return n, err
}

// limitWrites sets the deadline of writes. That of the alert which Close writes stays, or Close would take as long as a
// write may.
func (c *Conn) limitWrites(deadline time.Time) {
	c.deadline.Lock()
	defer c.deadline.Unlock()
	if !c.closing {
		_ = c.SetWriteDeadline(deadline) // if it fails, the write does
	}
}

// Close closes the connection. A batch that waits for the end of a frame waits no more.
func (c *Conn) Close() error {
	c.deadline.Lock()
	c.closing = true
	c.deadline.Unlock()
	err := c.Conn.Close()
	c.wire.Lock()
	defer c.wire.Unlock()
	if c.failed == nil {
		c.failed = net.ErrClosed
	}
	c.boundary.Broadcast()
	return err
}

// within reports whether a frame of the server has begun, or the fields of a header, and is not complete.
func (o *outbound) within() bool { return o.have > 0 || o.rest > 0 || o.fields }

// note reads the headers of the frames in what the server sends.
func (c *Conn) note(p []byte) {
	o := &c.out
	for len(p) > 0 {
		if o.rest > 0 {
			n := min(o.rest, len(p))
			o.rest -= n
			p = p[n:]
			continue
		}
		n := copy(o.head[o.have:], p)
		o.have += n
		p = p[n:]
		if o.have < headerSize {
			return
		}
		length, kind, flags, id := readHeader(o.head[:])
		o.have, o.rest = 0, length
		if kind == frameHeaders || kind == frameContinuation {
			o.fields = flags&flagEndHeaders == 0
		}
		if kind == frameData || kind == frameHeaders || kind == frameReset {
			c.sent(id, kind, flags, int64(length))
		}
	}
}

// sent notes a frame of the server. The caller holds wire.
func (c *Conn) sent(id uint32, kind, flags byte, length int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if kind == frameData {
		c.window -= length
	}
	s := c.streams[id]
	if s == nil {
		return
	}
	if kind == frameData {
		s.window -= length
		s.written += length
	}
	s.started = true
	if s.arrived != nil && s.written >= s.expected {
		close(s.arrived)
		s.arrived = nil
	}
	if kind == frameReset || flags&flagEndStream != 0 {
		c.remove(s)
	}
}
