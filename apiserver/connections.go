package apiserver

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// connections tracks which connections have requests in flight. http.Server.Shutdown keeps
// HTTP/2 connections open for a second after their last request; programs that start a server
// for each test should not wait for that.
type connections struct {
	mu     sync.Mutex
	active map[net.Conn]struct{}
	quiet  time.Time // when active became empty
}

// grace is the delay before an idle connection is closed: HTTP/2 reports a connection as idle
// a moment before the end of the last response is sent.
const grace = 50 * time.Millisecond

// changed is the ConnState callback of an http.Server.
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

// ended reports whether no requests are in flight.
func (c *connections) ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.active) == 0 && time.Since(c.quiet) >= grace
}

// shutdown shuts down a server like http.Server.Shutdown, but returns as soon as no requests
// are in flight. It closes all connections if ctx ends first.
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
