package apiserver

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// connections knows on which connections requests are under way. http.Server would
// keep those of HTTP/2 open for a second after their last request when it ends; who
// starts a server for each test should not wait for that.
type connections struct {
	mu     sync.Mutex
	active map[net.Conn]struct{}
	quiet  time.Time // since when active is empty, if it is
}

// grace is for what is still to be sent on a connection without requests: HTTP/2
// calls it idle when it has the end of the last answer, which is a moment before
// that is sent.
const grace = 50 * time.Millisecond

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
	if _, was := c.active[conn]; was {
		delete(c.active, conn)
		c.quiet = time.Now()
	}
}

// ended reports whether all requests are answered.
func (c *connections) ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.active) == 0 && time.Since(c.quiet) >= grace
}

// shutdown ends a server as http.Server.Shutdown does, as soon as all requests are
// answered. When ctx ends before, connections are cut.
func (c *connections) shutdown(ctx context.Context, server *http.Server) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- server.Shutdown(ctx) }()
	look := time.NewTicker(grace / 10)
	defer look.Stop()
	for !c.ended() {
		select {
		case err := <-done:
			if err == nil {
				return nil
			}
			return server.Close()
		case <-look.C:
		}
	}
	return server.Close()
}
