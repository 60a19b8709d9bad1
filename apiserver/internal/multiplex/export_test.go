package multiplex

import "context"

// Context returns the context of the requests of a connection.
func (c *Conn) Context() context.Context {
	return context.WithValue(context.Background(), connKey{}, c)
}
