package multiplex

import "context"

func init() { minWindow = 1 << 20 } // so that tests need little traffic

// Context returns the context of the requests of a connection.
func (c *Conn) Context() context.Context {
	return context.WithValue(context.Background(), connKey{}, c)
}

// Tracked returns how many streams the connection tracks, and how many wait for its window.
func (c *Conn) Tracked() (streams, waiting int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.streams), len(c.short) + len(c.fed)
}
