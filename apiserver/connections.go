package apiserver

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// connections knows on which connections requests are under way. http.Server would
// keep those of HTTP/2 open for a second after their last request when it ends; who
// starts a server for each test should not wait for that.
type connections struct {
	mu     sync.Mutex
	active map[net.Conn]struct{}
	quiet  chan struct{} // closed when there is none; nil: nobody waits
}

// changed is an http.Server's ConnState.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if state == http.StateActive {
		if c.active == nil {
			c.active = map[net.Conn]struct{}{}
		}
		c.active[conn] = struct{}{}
		return
	}
	delete(c.active, conn)
	if len(c.active) == 0 && c.quiet != nil {
		close(c.quiet)
		c.quiet = nil
	}
}

// wait returns when no request is under way, or ctx's error.
func (c *connections) wait(ctx context.Context) error {
	c.mu.Lock()
	if len(c.active) == 0 {
		c.mu.Unlock()
		return nil
	}
	if c.quiet == nil {
		c.quiet = make(chan struct{})
	}
	quiet := c.quiet
	c.mu.Unlock()
	select {
	case <-quiet:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// shutdown ends a server as http.Server.Shutdown does, as soon as no request is
// under way. When ctx ends before, connections are cut.
func (c *connections) shutdown(ctx context.Context, server *http.Server) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- server.Shutdown(ctx) }()
	quiet := make(chan error, 1)
	go func() { quiet <- c.wait(ctx) }()
	select {
	case err := <-ended:
		if err == nil {
			return nil
		}
	case <-quiet:
	}
	return server.Close()
}
