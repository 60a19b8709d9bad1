package multiplex

import (
	"net"
	"sync"
)

// Listen returns a listener for the connections below TLS. Without it, a batch takes a system call for each record.
func Listen(l net.Listener) net.Listener { return listener{l} }

type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &corked{Conn: conn}, nil
}

// corked is a connection below TLS. What is written between begin and end is written at once. A nil corked does
// nothing.
type corked struct {
	net.Conn
	mu      sync.Mutex
	holding bool
	writing bool // what was held
	held    []byte
}

// begin starts to hold back what is written.
func (c *corked) begin() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holding = true
	c.held = (*buffers.Get().(*[]byte))[:0]
}

// end writes what was held back.
func (c *corked) end() error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	held := c.held
	c.holding, c.held, c.writing = false, nil, true
	c.mu.Unlock()
	_, err := c.Conn.Write(held)
	buffers.Put(&held)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writing = false
	return err
}

// Write writes to the connection, or holds p back. While what was held is written, TLS has nothing to write but that it
// closes the connection, or that it answers a client's new key: it must not wait for a client that does not read.
func (c *corked) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.writing:
		return 0, net.ErrClosed
	case !c.holding:
		return c.Conn.Write(p)
	}
	c.held = append(c.held, p...)
	return len(p), nil
}
