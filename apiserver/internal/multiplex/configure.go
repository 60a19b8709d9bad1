package multiplex

import (
	"context"
	"crypto/tls"
	"net/http"
	"time"

	"golang.org/x/net/http2"
)

//lint:file-ignore SA1019 what replaces these functions serves no connection but a *tls.Conn

// Configure makes the connections of a server Conns, with the timeout of New, if their clients speak HTTP/2. It is
// called before the server serves.
func Configure(server *http.Server, timeout time.Duration) error {
	h2 := &http2.Server{}
	if err := http2.ConfigureServer(server, h2); err != nil {
		return err
	}
	server.TLSNextProto[http2.NextProtoTLS] = func(server *http.Server, conn *tls.Conn, handler http.Handler) {
		c, ctx := New(conn, timeout), context.Background()
		// net/http passes the context of the connection so.
		if based, ok := handler.(interface{ BaseContext() context.Context }); ok {
			ctx = based.BaseContext()
		}
		ctx = context.WithValue(ctx, connKey{}, c)
		h2.ServeConn(c, &http2.ServeConnOpts{Context: ctx, BaseConfig: server, Handler: handler})
	}
	return nil
}
