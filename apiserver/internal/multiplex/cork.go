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
	defer c.mu.Unlock()
	held := c.held
	c.holding, c.held = false, nil
	defer func() { buffers.Put(&held) }()
	if len(held) == 0 {
		return nil
	}
	_, err := c.Conn.Write(held)
	return err
}

func (c *corked) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.holding {
		return c.Conn.Write(p)
	}
	c.held = append(c.held, p...)
	return len(p), nil
}
